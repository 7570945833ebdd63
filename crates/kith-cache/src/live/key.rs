//! What entries and fills are about.

use kith_live::{AssociationKey, Effect, ListKey, ListPlace, RowQuery};

/// What one entry of the cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// An object, or that there is none.
    Object(u64),
    /// The length of a list.
    Count(ListKey),
    /// The newest part of a list, or all of it.
    Prefix(ListKey),
    /// One association, or that there is none: for what lies outside of the prefix.
    Association(AssociationKey),
}

impl Key {
    /// The key under which changes are remembered. The length of a list changes only when the list does.
    pub(crate) fn changes_with(self) -> Key {
        match self {
            Key::Count(list) => Key::Prefix(list),
            other => other,
        }
    }

    /// What an effect may change.
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

/// What one read of the database brings. Reads of equal keys wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FillKey {
    /// What an entry can hold. All lengths of a prefix have the same key.
    Entry(Key),
    /// Part of a list that does not begin with the newest association. It is not kept.
    Page(ListKey, ListPlace, u32),
}

impl FillKey {
    /// `None` for rows that are not cached.
    pub(crate) fn of(query: &RowQuery) -> Option<FillKey> {
        Some(match query {
            RowQuery::Object(id) => FillKey::Entry(Key::Object(*id)),
            RowQuery::Association(key) => FillKey::Entry(Key::Association(*key)),
            RowQuery::Count(list) => FillKey::Entry(Key::Count(*list)),
            RowQuery::List { list, after: None, .. } => FillKey::Entry(Key::Prefix(*list)),
            RowQuery::List { list, after: Some(after), limit } => FillKey::Page(*list, *after, *limit),
            RowQuery::Intents | RowQuery::PairStamp(_) | RowQuery::Floor(_) | RowQuery::Outcome(_) => {
                return None;
            }
        })
    }

    /// The key under which changes to it are remembered.
    pub(crate) fn changes_with(self) -> Key {
        match self {
            FillKey::Entry(key) => key.changes_with(),
            FillKey::Page(list, ..) => Key::Prefix(list),
        }
    }
}
