//! Decides where a node finds files of a version that it lacks and that no push brings: after the loss of a disk, or if
//! files are damaged.
//!
//! The object store is asked first, because peers serve reads at the same time. Peers are asked if it does not answer or
//! lacks the files. The format guarantees that all replicas of a partition have the same bytes. The node verifies the files
//! against the manifest, and the manifest against the hash in the metadata. So damage in the copy of a peer is detected, and
//! the next peer is asked.

use crate::versions::Holders;
use kith_types::{NodeId, PartitionId};
use std::{collections::BTreeSet, time::Duration};

/// The time for which the peers are preferred over an object store that did not answer.
const SILENCE: Duration = Duration::from_secs(300);

/// The time for which requests to the object store are repeated while peers could supply the files. It is short, so
/// that a node that starts during an outage of the object store is soon available. A store that answers at all does so
/// well within this time.
pub const BRIEF: Duration = Duration::from_secs(5);

/// A place that has the files of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The object store to which the version was built or uploaded. Requests are repeated for at most [`BRIEF`].
    ObjectStoreBriefly,
    /// The same object store. Requests are repeated for as long as the settings say.
    ObjectStore,
    /// The nodes that hold replicas.
    Peers,
}

/// Returns the origins in the order in which they are asked. `silent_for` is the time since the object store failed to
/// answer; `None` if it answered the last request.
pub fn origins(silent_for: Option<Duration>, has_peers: bool) -> &'static [Origin] {
    match silent_for {
        _ if !has_peers => &[Origin::ObjectStore],
        Some(silent_for) if silent_for < SILENCE => &[Origin::Peers, Origin::ObjectStore],
        _ => &[Origin::ObjectStoreBriefly, Origin::Peers, Origin::ObjectStore],
    }
}

/// The peers from which one node may copy a version's partitions, in the order in which they are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Donors {
    peers: Vec<(NodeId, BTreeSet<PartitionId>)>,
}

impl Donors {
    /// Returns all holders except the node itself and `excluded`, which do not have the version. The order begins after
    /// `node`, so that nodes that repair themselves at the same time do not all ask the same peer.
    pub fn new(holders: &Holders, node: NodeId, excluded: &BTreeSet<NodeId>) -> Self {
        let mut owned = holders.owned();
        owned.retain(|owner, _| *owner != node && !excluded.contains(owner));
        let behind = owned.split_off(&node);
        Self { peers: behind.into_iter().chain(owned).collect() }
    }

    /// Returns the peers and the partitions that each may be asked for. Each partition comes from the first of its peers
    /// that answers.
    pub fn peers(&self) -> &[(NodeId, BTreeSet<PartitionId>)] {
        &self.peers
    }

    /// Records that the received data of a partition was damaged (`None`: of a file that belongs to no partition). Peers
    /// that were `silent` meanwhile are not asked again. If there were none, the peer that supplied the partition is not
    /// asked for it again. Returns whether some peer is left that has it.
    pub fn unfit(&mut self, partition: Option<PartitionId>, silent: &BTreeSet<NodeId>) -> bool {
        let has = |partitions: &BTreeSet<PartitionId>| {
            partition.is_none_or(|partition| partitions.contains(&partition))
        };
        let before = self.peers.len();
        self.peers.retain(|(peer, _)| !silent.contains(peer));
        // If a peer failed during the copy, it is unknown which peer supplied what.
        let is_known = self.peers.len() == before;
        let giver = self.peers.iter_mut().find(|(_, partitions)| has(partitions));
        if let Some((_, partitions)) = giver.filter(|_| is_known) {
            match partition {
                Some(partition) => drop(partitions.remove(&partition)),
                None => partitions.clear(),
            }
        }
        self.peers.retain(|(_, partitions)| !partitions.is_empty());
        self.peers.iter().any(|(_, partitions)| has(partitions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn donors(groups: &[&[u32]], node: u32, excluded: &[u32]) -> Donors {
        let ids = |ids: &[u32]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
        let groups = groups.iter().map(|owners| ids(owners)).collect();
        Donors::new(&Holders { groups, drained: vec![] }, NodeId(node), &ids(excluded).into_iter().collect())
    }

    fn pairs(donors: &Donors) -> Vec<(u32, Vec<u32>)> {
        let peers = donors.peers().iter();
        peers.map(|(peer, partitions)| (peer.0, partitions.iter().map(|it| it.0).collect())).collect()
    }

    #[test]
    fn the_object_store_comes_first_unless_it_was_silent_a_moment_ago() {
        use Origin::{ObjectStore, ObjectStoreBriefly, Peers};
        assert_eq!(origins(None, true), [ObjectStoreBriefly, Peers, ObjectStore]);
        assert_eq!(origins(Some(Duration::ZERO), true), [Peers, ObjectStore]);
        assert_eq!(origins(Some(SILENCE), true), [ObjectStoreBriefly, Peers, ObjectStore], "it may be back");
        assert_eq!(origins(None, false), [ObjectStore]);
        assert_eq!(origins(Some(Duration::ZERO), false), [ObjectStore]);
    }

    #[test]
    fn nodes_that_repair_themselves_begin_with_different_peers() {
        let groups: [&[u32]; 3] = [&[0, 1], &[2, 2], &[3, 4]];
        assert_eq!(
            pairs(&donors(&groups, 0, &[])),
            [(1, vec![1]), (2, vec![0, 1]), (3, vec![0]), (4, vec![1])]
        );
        assert_eq!(pairs(&donors(&groups, 2, &[4])), [(3, vec![0]), (0, vec![0]), (1, vec![1])]);
        assert_eq!(pairs(&donors(&groups, 9, &[0, 1, 2, 3, 4])), []);
    }

    #[test]
    fn a_peer_is_not_asked_again_for_what_it_gave_damaged() {
        let mut donors = donors(&[&[0, 0], &[1, 1], &[2, 2], &[3, 3]], 0, &[]);
        let (nobody, partition) = (BTreeSet::new(), Some(PartitionId(1)));
        assert!(donors.unfit(partition, &nobody));
        assert_eq!(pairs(&donors), [(1, vec![0]), (2, vec![0, 1]), (3, vec![0, 1])]);
        // The second peer failed, perhaps after it had supplied damaged bytes, so the third one is not blamed.
        assert!(donors.unfit(partition, &[NodeId(2)].into()));
        assert_eq!(pairs(&donors), [(1, vec![0]), (3, vec![0, 1])]);
        assert!(!donors.unfit(partition, &nobody));
        assert_eq!(pairs(&donors), [(1, vec![0]), (3, vec![0])]);
        // Every peer has a dictionary.
        assert!(donors.unfit(None, &nobody));
        assert_eq!(pairs(&donors), [(3, vec![0])]);
        assert!(!donors.unfit(None, &nobody));
    }

    #[test]
    fn it_ends_whatever_is_damaged() {
        let groups: [&[u32]; 4] = [&[0, 1, 0, 1], &[2, 2, 3, 3], &[4, 5, 6, 7], &[8, 8, 8, 8]];
        for partition in 0..4 {
            let mut donors = donors(&groups, 0, &[]);
            let mut tries = 1;
            while donors.unfit(Some(PartitionId(partition)), &BTreeSet::new()) {
                tries += 1;
            }
            let replicas = 4 - u32::from(partition % 2 == 0);
            assert_eq!(tries, replicas, "each of the other replicas was asked once");
        }
    }
}
