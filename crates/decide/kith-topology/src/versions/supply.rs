//! Decides which nodes fetch the partitions of a new version from where, and when. One copy of each partition comes from the
//! object store, which may be in another data centre; the other copies come from the node that has it. (In Voldemort each
//! node pulls its own replicas, §5.4.)
//!
//! The first holder of a partition fetches it from the object store. In replica groups these are the nodes of the first
//! group; on a ring, every node is the first holder of some partitions. The other holders wait and copy. If a first holder
//! fails, the next one takes its place, so that no node waits in vain.

use crate::versions::Holders;
use kith_types::{NodeId, PartitionId};
use std::collections::{BTreeMap, BTreeSet};

/// The partitions that one node should fetch now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The node.
    pub node: NodeId,
    /// The partitions. If `is_whole`, the node then holds everything that it should hold.
    pub partitions: BTreeSet<PartitionId>,
    /// The peers from which the node copies partitions. The other partitions come from the object store, as do those that a
    /// peer turns out not to have.
    pub peers: BTreeMap<NodeId, BTreeSet<PartitionId>>,
    /// Whether nothing is missing afterwards.
    pub is_whole: bool,
}

/// The progress of all nodes.
#[derive(Clone, Debug)]
pub struct Supply {
    holders: Holders,
    from_peers: bool,
    /// The partitions that each node should hold.
    owned: BTreeMap<NodeId, BTreeSet<PartitionId>>,
    held: BTreeMap<NodeId, BTreeSet<PartitionId>>,
    pulling: BTreeSet<NodeId>,
    failed: BTreeSet<NodeId>,
    /// The number of partitions that each node has given or is giving, so that copies are spread over the nodes that
    /// have them.
    given: BTreeMap<NodeId, usize>,
}

impl Supply {
    /// Returns the state in which no node holds anything of the version. Without `from_peers`, every node fetches everything
    /// from the object store.
    pub fn new(holders: Holders, from_peers: bool) -> Self {
        let owned = holders.owned();
        let (held, pulling, failed, given) = Default::default();
        Self { holders, from_peers, owned, held, pulling, failed, given }
    }

    /// Returns the fetches that should begin now. Each is returned once, and ends with [`Supply::done`] or
    /// [`Supply::failed`]. If the result is empty and no fetch is running, every node has what it should hold, or has
    /// failed. O(nodes × partitions × groups).
    pub fn start(&mut self) -> Vec<Pull> {
        let idle = self.owned.keys().copied();
        let idle: Vec<NodeId> =
            idle.filter(|node| !self.pulling.contains(node) && !self.failed.contains(node)).collect();
        let pulls: Vec<Pull> = idle.into_iter().filter_map(|node| self.pull_of(node)).collect();
        self.pulling.extend(pulls.iter().map(|pull| pull.node));
        pulls
    }

    /// Records that a fetch has succeeded. Returns whether its node now holds everything that it should hold.
    pub fn done(&mut self, pull: &Pull) -> bool {
        self.pulling.remove(&pull.node);
        self.held.entry(pull.node).or_default().extend(&pull.partitions);
        pull.is_whole
    }

    /// Records that a node cannot have the version. The others do without it.
    pub fn failed(&mut self, node: NodeId) {
        self.pulling.remove(&node);
        self.failed.insert(node);
    }

    /// Returns what a node should fetch; `None` if nothing is missing, or if what is missing is still being fetched by
    /// others.
    fn pull_of(&mut self, node: NodeId) -> Option<Pull> {
        let held = self.held.get(&node).cloned().unwrap_or_default();
        let missing: BTreeSet<PartitionId> = self.owned.get(&node)?.difference(&held).copied().collect();
        let is_first = |partition: &PartitionId| !self.from_peers || self.first(*partition) == Some(node);
        let own: BTreeSet<PartitionId> = missing.iter().copied().filter(is_first).collect();
        if missing.is_empty() {
            return None;
        }
        if !own.is_empty() {
            let is_whole = own == missing;
            return Some(Pull { node, partitions: own, peers: BTreeMap::new(), is_whole });
        }
        let mut given = self.given.clone();
        let mut peers: BTreeMap<NodeId, BTreeSet<PartitionId>> = BTreeMap::new();
        for partition in &missing {
            let has = |peer: &NodeId| self.held.get(peer).is_some_and(|held| held.contains(partition));
            let peer = self.living(*partition).filter(has).min_by_key(|peer| given.get(peer).copied())?;
            *given.entry(peer).or_default() += 1;
            peers.entry(peer).or_default().insert(*partition);
        }
        self.given = given;
        Some(Pull { node, partitions: missing, peers, is_whole: true })
    }

    /// Returns the node that fetches a partition from the object store.
    fn first(&self, partition: PartitionId) -> Option<NodeId> {
        self.living(partition).next()
    }

    /// Returns the holders of a partition that have not failed, in the order of the groups.
    fn living(&self, partition: PartitionId) -> impl Iterator<Item = NodeId> {
        let Holders { groups, drained } = &self.holders;
        let owners = groups.iter().chain(drained).filter_map(move |owners| owners.get(partition.0 as usize));
        owners.copied().filter(|owner| !self.failed.contains(owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holders(groups: &[&[u32]]) -> Holders {
        let groups = groups.iter().map(|owners| owners.iter().copied().map(NodeId).collect()).collect();
        Holders { groups, drained: vec![] }
    }

    fn lines(pulls: &[Pull]) -> Vec<String> {
        let of = |partitions: &BTreeSet<PartitionId>| {
            partitions.iter().map(|it| it.0.to_string()).collect::<Vec<_>>().join(",")
        };
        let pulls = pulls.iter().map(|pull| {
            let peers =
                pull.peers.iter().map(|(peer, partitions)| format!(" n{}:{}", peer.0, of(partitions)));
            let peers: String = peers.collect();
            let whole = if pull.is_whole { "" } else { " and more" };
            format!(
                "n{} {}{whole}{}",
                pull.node.0,
                of(&pull.partitions),
                if peers.is_empty() { " store".into() } else { peers }
            )
        });
        pulls.collect()
    }

    #[test]
    fn the_first_group_pulls_and_the_others_copy_from_it() {
        let mut supply = Supply::new(holders(&[&[0, 1, 0, 1], &[2, 2, 3, 3]]), true);
        let first = supply.start();
        assert_eq!(lines(&first), ["n0 0,2 store", "n1 1,3 store"]);
        assert!(supply.done(&first[0]));
        assert!(supply.start().is_empty(), "each of the others needs both");
        assert!(supply.done(&first[1]));
        let then = supply.start();
        assert_eq!(lines(&then), ["n2 0,1 n0:0 n1:1", "n3 2,3 n0:2 n1:3"]);
        assert!(then.iter().all(|pull| supply.done(pull)) && supply.start().is_empty());
    }

    #[test]
    fn the_next_holder_takes_the_place_of_one_that_fails() {
        let mut supply = Supply::new(holders(&[&[0, 1], &[2, 2], &[3, 3]]), true);
        let first = supply.start();
        supply.failed(NodeId(0));
        assert!(supply.done(&first[1]));
        let then = supply.start();
        // First the partitions whose first holder it is, then those that others have.
        assert_eq!(lines(&then), ["n2 0 and more store"]);
        assert!(!supply.done(&then[0]));
        let last = supply.start();
        assert_eq!(lines(&last), ["n2 1 n1:1", "n3 0,1 n1:1 n2:0"]);
    }

    #[test]
    fn on_a_ring_every_node_pulls_what_it_is_first_for() {
        let mut supply = Supply::new(holders(&[&[0, 1, 2], &[1, 2, 0]]), true);
        let first = supply.start();
        assert_eq!(lines(&first), ["n0 0 and more store", "n1 1 and more store", "n2 2 and more store"]);
        assert!(!supply.done(&first[0]));
        assert_eq!(lines(&supply.start()), [""; 0], "node 0 still lacks what node 2 has not got yet");
        assert!(!supply.done(&first[2]));
        assert_eq!(lines(&supply.start()), ["n0 2 n2:2"]);
    }

    #[test]
    fn without_peers_everybody_pulls_all_at_once() {
        let mut supply = Supply::new(holders(&[&[0, 1], &[2, 2]]), false);
        assert_eq!(lines(&supply.start()), ["n0 0 store", "n1 1 store", "n2 0,1 store"]);
    }
}
