//! The knowledge of a client about how much quota nodes have left.

use kith_types::NodeId;
use std::collections::{HashMap, HashSet};

/// The number of stores that are remembered. Beyond that everything is forgotten, which costs one round trip per store.
const STORES_MAX: usize = 4_096;

/// The nodes that have much quota left, by store. A read that also asks other nodes reserves first: a node that was never
/// asked is unknown, and a process that is started for a single read knows no nodes.
#[derive(Clone, Debug, Default)]
pub struct Pressure {
    calm: HashMap<String, HashSet<NodeId>>,
}

impl Pressure {
    /// Whether a read of these nodes should reserve first.
    pub fn reserves(&self, store: &str, nodes: impl IntoIterator<Item = NodeId>) -> bool {
        let calm = self.calm.get(store);
        // A single node admits or refuses the whole read.
        let mut count = 0;
        let is_calm = nodes.into_iter().fold(true, |all, node| {
            count += 1;
            all && calm.is_some_and(|calm| calm.contains(&node))
        });
        1 < count && !is_calm
    }

    /// Records that a node reported how much quota it has left, or refused a read.
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
