//! The current contents of one partition: objects, the sorted list of each member, and the inverted index.

use super::ids::SortedIds;
use kith_live::{AssociationKey, Effect, ListKey, TypeId};
use std::collections::{BTreeMap, BTreeSet};

/// Something that exists or does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Object(u64),
    Association(AssociationKey),
}

impl Fact {
    /// Returns the fact that an effect sets, and whether it is true from then on.
    pub(super) fn of(effect: &Effect) -> (Self, bool) {
        match effect {
            Effect::Object(object) => (Self::Object(object.id), true),
            Effect::LargeObject(id) => (Self::Object(*id), true),
            Effect::NoObject(id) => (Self::Object(*id), false),
            Effect::Association { list, now, .. } => (Self::Association(list.to(now.id2)), true),
            Effect::NoAssociation { list, id2, .. } => (Self::Association(list.to(*id2)), false),
        }
    }
}

/// The objects and associations of one partition.
#[derive(Debug, Default)]
pub(super) struct AdjacencyState {
    pub(super) objects: SortedIds,
    lists: BTreeMap<TypeId, Lists>,
    /// The number of associations, for [`AdjacencyState::bytes`].
    associations: u64,
}

/// The associations of one type.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// The list of each id1. No list is empty.
    pub(super) by_id1: BTreeMap<u64, SortedIds>,
    /// The same associations as pairs of id2 and id1. Most lists of an inverted index have one id, so pairs take less
    /// memory than lists.
    inverted: BTreeSet<(u64, u64)>,
    /// The ids that have an association with themselves. These associations are not edges, and are in neither of the
    /// above.
    pub(super) with_themselves: BTreeSet<u64>,
}

impl Lists {
    /// Iterates over every id1 whose list under this type contains `id2`, ascending.
    pub(super) fn leading_to(&self, id2: u64) -> impl Iterator<Item = u64> {
        self.inverted.range((id2, 0)..=(id2, u64::MAX)).map(|(_, id1)| *id1)
    }

    fn set(&mut self, id1: u64, id2: u64, present: bool) -> bool {
        if id1 == id2 {
            return if present {
                self.with_themselves.insert(id1)
            } else {
                self.with_themselves.remove(&id1)
            };
        }
        if present {
            self.inverted.insert((id2, id1));
            return self.by_id1.entry(id1).or_default().insert(id2);
        }
        let Some(list) = self.by_id1.get_mut(&id1) else { return false };
        let changed = list.remove(id2);
        if list.is_empty() {
            self.by_id1.remove(&id1);
        }
        self.inverted.remove(&(id2, id1));
        changed
    }
}

impl AdjacencyState {
    /// Returns the associations of a type, if there are any.
    pub(super) fn lists(&self, kind: TypeId) -> Option<&Lists> {
        self.lists.get(&kind)
    }

    /// Returns the list of an id, if it is not empty.
    pub(super) fn list(&self, key: ListKey) -> Option<&SortedIds> {
        self.lists(key.kind)?.by_id1.get(&key.id1)
    }

    /// Sets whether a fact is true. Returns `false` if this changes nothing.
    pub(super) fn set(&mut self, fact: Fact, present: bool) -> bool {
        match (fact, present) {
            (Fact::Object(id), true) => self.objects.insert(id),
            (Fact::Object(id), false) => self.objects.remove(id),
            (Fact::Association(AssociationKey { list: ListKey { id1, kind }, id2 }), _) => {
                let changed = self.lists.entry(kind).or_default().set(id1, id2, present);
                match (changed, present) {
                    (true, true) => self.associations += 1,
                    (true, false) => self.associations -= 1,
                    (false, _) => {}
                }
                changed
            }
        }
    }

    /// Returns the memory in use in bytes, estimated from the contents.
    pub(super) fn bytes(&self) -> u64 {
        let lists: u64 = self.lists.values().map(|lists| lists.by_id1.len() as u64).sum();
        self.objects.len() as u64 * ID_BYTES
            + lists * LIST_BYTES
            + self.associations * (ID_BYTES + PAIR_BYTES)
    }
}

/// The memory of an id in a list. A list may have an eighth of spare room.
const ID_BYTES: u64 = 9;

/// The memory of a list in addition to its ids: its entry in a B-tree that is two thirds full, and the overhead of a
/// heap block.
const LIST_BYTES: u64 = 64;

/// The memory of a pair in a B-tree that is two thirds full.
const PAIR_BYTES: u64 = 27;
