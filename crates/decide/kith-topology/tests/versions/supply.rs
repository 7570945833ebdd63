//! Tests that, whatever fails, and in whatever order fetches end, all other nodes get everything that they should hold.
//! The object store is asked once for each partition, and once more for each holder of it that failed.

use kith_topology::versions::{Holders, Pull, Supply};
use kith_types::{NodeId, PartitionId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Groups with their own nodes, or a ring with shared ones.
fn holders() -> impl Strategy<Value = Holders> {
    (1..4usize, 1..5u32, 1..12usize, any::<bool>()).prop_flat_map(|(groups, nodes, partitions, is_ring)| {
        let owner = prop::collection::vec(prop::collection::vec(0..nodes, partitions), groups);
        owner.prop_map(move |owners| {
            let groups = (0u32..).zip(owners).map(|(group, owners)| {
                let owners = owners.into_iter().enumerate().map(|(partition, owner)| match is_ring {
                    // The ranks of one partition are distinct nodes.
                    true => NodeId((partition as u32 + group) % nodes.max(4)),
                    false => NodeId(group * nodes + owner),
                });
                owners.collect()
            });
            Holders { groups: groups.collect(), drained: vec![] }
        })
    })
}

proptest! {
    #[test]
    fn everybody_who_lives_gets_all(
        holders in holders(),
        from_peers in any::<bool>(),
        ends in prop::collection::vec((any::<prop::sample::Index>(), 0..6u32), 200),
    ) {
        let mut owned: BTreeMap<NodeId, BTreeSet<PartitionId>> = BTreeMap::new();
        for owners in &holders.groups {
            for (partition, owner) in (0..).zip(owners) {
                owned.entry(*owner).or_default().insert(PartitionId(partition));
            }
        }
        let mut supply = Supply::new(holders, from_peers);
        let mut held: BTreeMap<NodeId, BTreeSet<PartitionId>> = BTreeMap::new();
        let mut from_store: BTreeMap<PartitionId, usize> = BTreeMap::new();
        let mut failed: BTreeSet<NodeId> = BTreeSet::new();
        let mut running: Vec<Pull> = Vec::new();
        let mut ends = ends.into_iter();
        loop {
            for pull in supply.start() {
                prop_assert!(running.iter().all(|other| other.node != pull.node), "one at a time");
                let copied: BTreeSet<PartitionId> = pull.peers.values().flatten().copied().collect();
                prop_assert!(copied.is_subset(&pull.partitions));
                for (peer, partitions) in &pull.peers {
                    prop_assert!(!failed.contains(peer) && partitions.is_subset(&held[peer]), "it has them");
                }
                for partition in pull.partitions.difference(&copied) {
                    *from_store.entry(*partition).or_default() += 1;
                }
                running.push(pull);
            }
            if running.is_empty() {
                break;
            }
            let (index, dice) = ends.next().expect("it ends");
            let pull = running.swap_remove(index.index(running.len()));
            if dice == 0 {
                failed.insert(pull.node);
                supply.failed(pull.node);
            } else {
                let all = held.entry(pull.node).or_default();
                all.extend(&pull.partitions);
                let is_whole = *all == owned[&pull.node];
                prop_assert_eq!(supply.done(&pull), is_whole);
            }
        }
        for (node, owned) in &owned {
            prop_assert!(failed.contains(node) || held.get(node) == Some(owned), "{node:?}");
        }
        if from_peers {
            for (partition, count) in &from_store {
                let gone = failed.iter().filter(|node| owned[node].contains(partition)).count();
                prop_assert!(*count <= 1 + gone, "{partition:?}: {count} copies, {gone} failed");
            }
        }
    }
}
