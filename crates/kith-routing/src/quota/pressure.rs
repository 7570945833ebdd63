//! What a client knows of how much is left of quotas at nodes.

use kith_types::NodeId;
use std::collections::{HashMap, HashSet};

/// Stores that are remembered; past them all is forgotten, which costs a round trip each.
const STORES_MAX: usize = 4_096;

/// At which nodes much is left of which store's quota. Of any other, a read that asks several nodes reserves first: one that was never asked
/// says nothing, and a process that is started for one read knows no other.
#[derive(Clone, Debug, Default)]
pub struct Pressure {
    calm: HashMap<String, HashSet<NodeId>>,
}

impl Pressure {
    /// Whether a read of these nodes reserves first.
    pub fn reserves(&self, store: &str, nodes: impl IntoIterator<Item = NodeId>) -> bool {
        let calm = self.calm.get(store);
        // One node lets in or refuses the whole read.
        let mut count = 0;
        let is_calm = nodes.into_iter().fold(true, |all, node| {
            count += 1;
            all && calm.is_some_and(|calm| calm.contains(&node))
        });
        1 < count && !is_calm
    }

    /// A node told how much it has left, or refused a read.
    pub fn note(&mut self, store: &str, node: NodeId, is_tight: bool) {
        match (self.calm.get_mut(store), is_tight) {
            (Some(calm), true) => drop(calm.remove(&node)),
            (Some(calm), false) => drop(calm.insert(node)),
            (None, true) => {}
            (None, false) => {
                if STORES_MAX <= self.calm.len() {
                    self.calm.clear();
                }
                self.calm.insert(store.to_owned(), HashSet::from([node]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_several_nodes_reserve_until_all_of_them_are_known_to_have_much_left() {
        let mut pressure = Pressure::default();
        let both = [NodeId(1), NodeId(2)];
        assert!(!pressure.reserves("pages", [NodeId(1)]), "one node refuses all of it or nothing");
        assert!(pressure.reserves("pages", both));
        pressure.note("pages", NodeId(1), false);
        assert!(pressure.reserves("pages", both));
        pressure.note("pages", NodeId(2), false);
        assert!(!pressure.reserves("pages", both));
        assert!(pressure.reserves("others", both));
        pressure.note("pages", NodeId(1), true);
        assert!(pressure.reserves("pages", both));
    }
}
