//! The keys of entries and of fills.

use super::query::Start;
use kith_live::{AssociationKey, Effect, IndexId, ListKey, RowQuery};
use kith_types::position_of_key;

/// The key of one entry of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// An object, or the proof that there is none.
    Object(u64),
    /// The length of a list.
    Count(ListKey),
    /// The newest part of a list, or all of it.
    Prefix(ListKey),
    /// One association outside of the prefix, or the proof that there is none.
    Association(AssociationKey),
    /// The objects under a key of an index, which is given by its hash. The entry has the key itself.
    Entries(IndexId, u64),
    /// All entries of indexes. Only changes are remembered under it.
    Indexes,
}

impl Key {
    /// Returns the key of the objects under a key of an index.
    pub(crate) fn of_entries(index: IndexId, key: &[u8]) -> Key {
        Key::Entries(index, position_of_key(key))
    }

    /// Returns the key under which changes are remembered. The length of a list changes only when the list does.
    pub(crate) fn changes_with(self) -> Key {
        match self {
            Key::Count(list) => Key::Prefix(list),
            other => other,
        }
    }

    /// Returns the keys whose values an effect may change, except for those of indexes.
    pub(crate) fn touched(effect: &Effect) -> Vec<Key> {
        let of_list =
            |list: ListKey, id2| vec![Key::Prefix(list), Key::Count(list), Key::Association(list.to(id2))];
        match effect {
            Effect::Object(object) => vec![Key::Object(object.id)],
            Effect::LargeObject(id) | Effect::NoObject(id) => vec![Key::Object(*id)],
            Effect::Association { list, now, .. } => of_list(*list, now.id2),
            Effect::NoAssociation { list, id2, .. } => of_list(*list, *id2),
        }
    }
}

/// The key of one read of the database. Concurrent reads with the same key share one flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FillKey {
    /// An entry. All lengths of a prefix have the same key.
    Entry(Key),
    /// A part of a list that does not begin with the newest association. It is not kept.
    Page(ListKey, Start, u32),
}

impl FillKey {
    /// Returns the key of a row query; `None` for rows that are not cached.
    pub(crate) fn of(query: &RowQuery) -> Option<FillKey> {
        Some(match query {
            RowQuery::Object(id) => FillKey::Entry(Key::Object(*id)),
            RowQuery::Association(key) => FillKey::Entry(Key::Association(*key)),
            RowQuery::Count(list) => FillKey::Entry(Key::Count(*list)),
            RowQuery::List { list, after: None, skip: 0, .. } => FillKey::Entry(Key::Prefix(*list)),
            RowQuery::List { list, after: None, skip, limit } => {
                FillKey::Page(*list, Start::Index(*skip), *limit)
            }
            RowQuery::List { list, after: Some(after), skip: 0, limit } => {
                FillKey::Page(*list, Start::After(*after), *limit)
            }
            RowQuery::Entries { index, key, after: None, .. } => FillKey::Entry(Key::of_entries(*index, key)),
            // Caches do not ask for such a list.
            RowQuery::List { after: Some(_), .. } | RowQuery::Entries { after: Some(_), .. } => return None,
            RowQuery::Intents
            | RowQuery::PairStamp(_)
            | RowQuery::Floor(_)
            | RowQuery::Outcome(_)
            | RowQuery::ObjectCount(_)
            | RowQuery::AssociationCount { .. } => return None,
        })
    }

    /// Returns the key under which changes to it are remembered.
    pub(crate) fn changes_with(self) -> Key {
        match self {
            FillKey::Entry(key) => key.changes_with(),
            FillKey::Page(list, ..) => Key::Prefix(list),
        }
    }
}
