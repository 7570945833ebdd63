//! Doubly linked lists over the slots of one vector. Every move is `O(1)`, and slots are reused. A slot is in one list
//! at a time.

/// The index of a slot.
pub(crate) type Slot = u32;

const NONE: Slot = Slot::MAX;

/// Slots with values, and `N` lists of them.
#[derive(Debug)]
pub(crate) struct Lists<T, const N: usize> {
    nodes: Vec<Node<T>>,
    free: Vec<Slot>,
    ends: [Ends; N],
}

#[derive(Debug)]
struct Node<T> {
    /// `None` while the slot is free.
    value: Option<T>,
    list: usize,
    newer: Slot,
    older: Slot,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: Slot,
    oldest: Slot,
}

impl<T, const N: usize> Lists<T, N> {
    pub(crate) fn new() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), ends: [Ends { newest: NONE, oldest: NONE }; N] }
    }

    /// Adds a value at the newest end of a list.
    pub(crate) fn push(&mut self, list: usize, value: T) -> Slot {
        let node = Node { value: Some(value), list, newer: NONE, older: NONE };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.nodes[slot as usize] = node;
                slot
            }
            None => {
                self.nodes.push(node);
                Slot::try_from(self.nodes.len() - 1).expect("entries of a cache are fewer than 2^32")
            }
        };
        self.link(list, slot);
        slot
    }

    /// Moves a value to the newest end of a list.
    pub(crate) fn shift(&mut self, slot: Slot, list: usize) {
        self.unlink(slot);
        self.link(list, slot);
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, slot: Slot) -> T {
        self.unlink(slot);
        self.free.push(slot);
        self.nodes[slot as usize].value.take().expect("a slot is removed once")
    }

    pub(crate) fn oldest(&self, list: usize) -> Option<Slot> {
        let slot = self.ends[list].oldest;
        (slot != NONE).then_some(slot)
    }

    pub(crate) fn list(&self, slot: Slot) -> usize {
        self.nodes[slot as usize].list
    }

    pub(crate) fn get(&self, slot: Slot) -> &T {
        self.nodes[slot as usize].value.as_ref().expect("a slot in use has a value")
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut T {
        self.nodes[slot as usize].value.as_mut().expect("a slot in use has a value")
    }

    /// Returns all slots in use, in no particular order.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        (0..).zip(&self.nodes).filter(|(_, node)| node.value.is_some()).map(|(slot, _)| slot).collect()
    }

    fn link(&mut self, list: usize, slot: Slot) {
        let older = std::mem::replace(&mut self.ends[list].newest, slot);
        let node = &mut self.nodes[slot as usize];
        (node.list, node.newer, node.older) = (list, NONE, older);
        match older {
            NONE => self.ends[list].oldest = slot,
            older => self.nodes[older as usize].newer = slot,
        }
    }

    fn unlink(&mut self, slot: Slot) {
        let Node { list, newer, older, .. } = self.nodes[slot as usize];
        match newer {
            NONE => self.ends[list].newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.ends[list].oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes the values of a list, oldest first.
    fn drain(lists: &mut Lists<char, 2>, list: usize) -> String {
        std::iter::from_fn(|| lists.oldest(list).map(|slot| lists.remove(slot))).collect()
    }

    #[test]
    fn values_leave_in_the_order_in_which_they_came() {
        let mut lists = Lists::<char, 2>::new();
        let slots: Vec<Slot> = "abcd".chars().map(|value| lists.push(0, value)).collect();
        lists.shift(slots[1], 0);
        lists.shift(slots[2], 1);
        lists.remove(slots[0]);
        assert_eq!((lists.list(slots[2]), lists.slots().len()), (1, 3));
        assert_eq!((drain(&mut lists, 0).as_str(), drain(&mut lists, 1).as_str()), ("db", "c"));
    }

    #[test]
    fn slots_are_used_again() {
        let mut lists = Lists::<char, 2>::new();
        let slot = lists.push(0, 'a');
        lists.remove(slot);
        assert_eq!(lists.push(1, 'b'), slot);
        assert_eq!((lists.oldest(0), lists.oldest(1)), (None, Some(slot)));
    }
}
