//! The result of an evaluation, and the parts of it that nodes send.

use crate::{AssociationsEntry, EdgesEntry, Groups, ObjectEntry, Records};
use kith_schema::live::{AssociationAnswer, ListedAssociation};

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One entry per key, in the order of the keys.
    Lists(Vec<ListEntry>),
    /// Sorted, distinct ids.
    Set(Vec<u64>),
    /// A set and the union of its lists.
    Neighbourhood {
        /// The set: sorted, distinct.
        ids: Vec<u64>,
        /// Every id of any list of these ids: sorted, distinct.
        union: Vec<u64>,
    },
    /// Sorted, distinct ids and, at the same index, the number of lists that contain each.
    Tallies {
        /// The ids, sorted and distinct.
        ids: Vec<u64>,
        /// The counts, as many as `ids`, each at least 1.
        counts: Vec<u32>,
    },
    /// One entry per key, in the order of the keys.
    Edges(Vec<EdgesEntry>),
    /// One entry per key, in the order of the keys.
    Objects(Vec<ObjectEntry>),
    /// One entry per key, in the order of the keys.
    Associations(Vec<AssociationsEntry>),
    /// A number of ids.
    Count(u64),
    /// Whether any id qualifies.
    Exists(bool),
    /// One entry per key, in the order of the keys.
    Records(Records),
    /// Counts over the records of the keys.
    Groups(Groups),
}

impl Value {
    /// About how many bytes it takes in memory. `O(keys)`, and `O(associations)`.
    pub fn bytes(&self) -> u64 {
        let ids = |ids: &[u64]| size_of_val(ids);
        let bytes = match self {
            Self::Lists(entries) => {
                let list = |entry: &ListEntry| if let ListEntry::Ids(list) = entry { ids(list) } else { 0 };
                size_of_val(&entries[..]) + entries.iter().map(list).sum::<usize>()
            }
            Self::Set(set) => ids(set),
            Self::Neighbourhood { ids: set, union } => ids(set) + ids(union),
            Self::Tallies { ids: set, counts } => ids(set) + size_of_val(&counts[..]),
            Self::Edges(entries) => size_of_val(&entries[..]) + entries.iter().map(edges).sum::<usize>(),
            Self::Objects(entries) => size_of_val(&entries[..]) + entries.iter().map(object).sum::<usize>(),
            Self::Associations(entries) => {
                size_of_val(&entries[..]) + entries.iter().map(associations).sum::<usize>()
            }
            Self::Count(_) | Self::Exists(_) => 0,
            Self::Records(records) => return records.bytes(),
            Self::Groups(groups) => {
                let counts = size_of_val(&groups.counts[..]) as u64;
                let values: usize = groups.values.iter().map(<[u8]>::len).sum();
                return groups.records.bytes().saturating_add(counts + values as u64);
            }
        };
        bytes as u64
    }
}

fn edges(entry: &EdgesEntry) -> usize {
    let EdgesEntry::Page(page) = entry else { return 0 };
    let columns = page.columns.iter().map(|column| size_of_val(&column[..]));
    size_of_val(&page.ids[..]) + columns.sum::<usize>()
}

fn object(entry: &ObjectEntry) -> usize {
    let ObjectEntry::Found(object) = entry else { return 0 };
    object.kind.len() + object.data.len()
}

fn associations(entry: &AssociationsEntry) -> usize {
    let AssociationsEntry::Answer(lists) = entry else { return 0 };
    let data = |it: &ListedAssociation| it.data.as_ref().map_or(0, String::len);
    let list = |answer: &AssociationAnswer| match answer {
        AssociationAnswer::List { out, .. } => size_of_val(&out[..]) + out.iter().map(data).sum::<usize>(),
        AssociationAnswer::Count(_) => 0,
    };
    size_of_val(&lists[..]) + lists.iter().map(list).sum::<usize>()
}

/// The list of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListEntry {
    /// The key is not in the graph. This is different from having no edges.
    NotInGraph,
    /// The list: sorted, distinct, possibly empty.
    Ids(Vec<u64>),
    /// The list is longer than requested; this is its length.
    Longer(u64),
    /// No replica answered for the key. Possible only if the caller accepts partial answers. Operations treat the key as a
    /// member without edges.
    Unanswered,
}

/// The type of a [`Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKind {
    /// [`Value::Lists`].
    Lists,
    /// [`Value::Set`].
    Set,
    /// [`Value::Neighbourhood`].
    Neighbourhood,
    /// [`Value::Tallies`].
    Tallies,
    /// [`Value::Edges`].
    Edges,
    /// [`Value::Objects`].
    Objects,
    /// [`Value::Associations`].
    Associations,
    /// [`Value::Count`].
    Count,
    /// [`Value::Exists`].
    Exists,
    /// [`Value::Records`].
    Records,
    /// [`Value::Groups`].
    Groups,
}

impl ValueKind {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::Lists => "lists",
            ValueKind::Set => "a set",
            ValueKind::Neighbourhood => "a neighbourhood",
            ValueKind::Tallies => "tallies",
            ValueKind::Edges => "edges",
            ValueKind::Objects => "objects",
            ValueKind::Associations => "associations",
            ValueKind::Count => "a count",
            ValueKind::Exists => "an existence",
            ValueKind::Records => "records",
            ValueKind::Groups => "groups",
        }
    }

    /// Whether a key that two nodes answered can be removed from one part, or does no harm in both. This is impossible for
    /// a sum.
    pub fn is_by_key(self) -> bool {
        match self {
            ValueKind::Lists | ValueKind::Edges | ValueKind::Records => true,
            ValueKind::Objects | ValueKind::Associations => true,
            ValueKind::Set | ValueKind::Neighbourhood | ValueKind::Exists => true,
            ValueKind::Tallies | ValueKind::Count | ValueKind::Groups => false,
        }
    }
}

impl Value {
    /// The value's type.
    pub fn kind(&self) -> ValueKind {
        match self {
            Value::Lists(_) => ValueKind::Lists,
            Value::Set(_) => ValueKind::Set,
            Value::Neighbourhood { .. } => ValueKind::Neighbourhood,
            Value::Tallies { .. } => ValueKind::Tallies,
            Value::Edges(_) => ValueKind::Edges,
            Value::Objects(_) => ValueKind::Objects,
            Value::Associations(_) => ValueKind::Associations,
            Value::Count(_) => ValueKind::Count,
            Value::Exists(_) => ValueKind::Exists,
            Value::Records(_) => ValueKind::Records,
            Value::Groups(_) => ValueKind::Groups,
        }
    }

    /// The outcome of each key, for values that keep account of their keys.
    pub fn records(&self) -> Option<&Records> {
        match self {
            Value::Records(records) | Value::Groups(Groups { records, .. }) => Some(records),
            _ => None,
        }
    }

    /// The same as [`Value::records`], mutable.
    pub fn records_mut(&mut self) -> Option<&mut Records> {
        match self {
            Value::Records(records) | Value::Groups(Groups { records, .. }) => Some(records),
            _ => None,
        }
    }
}

/// One node's answer to its share of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The keys that it answers: 0-based indices into the keys of the fan-out, in the order in which the node received them;
    /// for a fan-out to partitions, the partitions.
    pub positions: Vec<u32>,
    /// The value that the node computed.
    pub value: Value,
}

impl Part {
    /// Removes these positions, ascending, which another part answers too. Only for kinds with [`ValueKind::is_by_key`]. A
    /// set keeps its ids, which the other part contains again.
    pub fn leave_out(&mut self, late: &[u32]) {
        let stays: Vec<bool> =
            self.positions.iter().map(|position| late.binary_search(position).is_err()).collect();
        let stays = |index: usize| stays.get(index).copied().unwrap_or(false);
        match &mut self.value {
            Value::Records(records) => records.retain(stays),
            Value::Lists(lists) => retain(lists, stays),
            Value::Edges(edges) => retain(edges, stays),
            Value::Objects(objects) => retain(objects, stays),
            Value::Associations(associations) => retain(associations, stays),
            Value::Set(_) | Value::Neighbourhood { .. } | Value::Exists(_) => {}
            Value::Tallies { .. } | Value::Count(_) | Value::Groups(_) => {
                debug_assert!(late.is_empty(), "a sum cannot be taken apart");
            }
        }
        retain(&mut self.positions, stays);
    }
}

fn retain<T>(all: &mut Vec<T>, stays: impl Fn(usize) -> bool) {
    let mut index = 0..;
    all.retain(|_| index.next().is_some_and(&stays));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgePage, Record, RecordsBuilder};
    use kith_schema::live::ObjectAnswer;

    #[test]
    fn values_take_what_they_hold() {
        let ids: Vec<u64> = (0..1_000).collect();
        let page = EdgePage { ids: ids.clone(), columns: vec![ids.clone(), ids.clone()], next: None };
        let data = "x".repeat(8_000);
        let object =
            ObjectAnswer { id: 1, kind: "page".to_owned(), version: 1, data: data.clone(), text_id: None };
        let association = ListedAssociation { id2: 1, time: 2, data: Some(data.clone()), version: None };
        let list = AssociationAnswer::List { out: vec![association], more: false };
        let mut builder = RecordsBuilder::with_capacity(1);
        assert!(builder.found(data.as_bytes()));
        for (value, bytes) in [
            (Value::Set(ids.clone()), 8_000),
            (Value::Lists(vec![ListEntry::Ids(ids.clone()), ListEntry::NotInGraph]), 8_000),
            (Value::Neighbourhood { ids: ids.clone(), union: ids.clone() }, 16_000),
            (Value::Tallies { ids, counts: vec![1; 1_000] }, 12_000),
            (Value::Edges(vec![EdgesEntry::Page(page)]), 24_000),
            (Value::Objects(vec![ObjectEntry::Found(object)]), 8_000),
            (Value::Associations(vec![AssociationsEntry::Answer(vec![list])]), 8_000),
            (Value::Records(builder.finish()), 8_000),
            (Value::Count(7), 0),
        ] {
            assert!(
                (bytes..=bytes + 300).contains(&value.bytes()),
                "{}: {}",
                value.kind().name(),
                value.bytes()
            );
        }
    }

    #[test]
    fn a_part_goes_without_the_keys_that_another_answered() {
        let mut builder = RecordsBuilder::with_capacity(3);
        assert!(builder.found(b"two") && builder.found(b"five"));
        builder.absent();
        let records = Value::Records(builder.finish());
        let mut part = Part { positions: vec![2, 5, 9], value: records };
        part.leave_out(&[2, 4]);
        let Value::Records(records) = &part.value else { panic!("{part:?}") };
        assert_eq!(part.positions, [5, 9]);
        assert_eq!(records.iter().collect::<Vec<_>>(), [Record::Found(b"five"), Record::Absent]);

        let lists = [1, 2].map(|id| ListEntry::Ids(vec![id])).to_vec();
        let mut part = Part { positions: vec![0, 3], value: Value::Lists(lists) };
        part.leave_out(&[3]);
        assert_eq!(part, Part { positions: vec![0], value: Value::Lists(vec![ListEntry::Ids(vec![1])]) });

        let mut part = Part { positions: vec![0, 3], value: Value::Set(vec![7, 8]) };
        part.leave_out(&[0]);
        assert_eq!(part, Part { positions: vec![3], value: Value::Set(vec![7, 8]) });
    }
}
