//! Whether every partition keeps a replica after the loss of a failure domain.

use crate::NodeEntry;
use kith_types::{GroupId, NodeId};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};
use thiserror::Error;

/// The reason why the loss of one zone or rack would leave a partition without a replica.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum OutageRisk {
    /// A node has no label, so its failure domain is unknown.
    #[error("node {node} has no {domain}, and others have one")]
    Unlabelled {
        node: NodeId,
        /// `zone` or `rack`.
        domain: &'static str,
    },
    /// All replicas of some partitions are in one domain.
    #[error(
        "{partitions} of {of} partitions would have all their replicas in one {domain}, the first of them in {name} (nodes by group: {spread})"
    )]
    Together {
        /// The number of these partitions.
        partitions: usize,
        /// The number of all partitions.
        of: usize,
        /// `zone` or `rack`.
        domain: &'static str,
        /// The domain of the first of them.
        name: String,
        /// The number of nodes of each group in each domain.
        spread: String,
    },
}

/// Returns the risk of losing one zone or, if all nodes are in one zone, one rack. `None` if every partition would keep a
/// replica, or if there is no choice: a single replica, or fewer than two domains.
pub fn outage_risk(owners: &[Vec<NodeId>], nodes: &[NodeEntry]) -> Option<OutageRisk> {
    let zones: Labels<'_> = nodes.iter().map(|node| (node.id, [&*node.region, &*node.zone])).collect();
    let racks: Labels<'_> = nodes.iter().map(|node| (node.id, [&*node.zone, &*node.rack])).collect();
    let (domain, labels) = [("zone", zones), ("rack", racks)].into_iter().find(|(_, labels)| {
        1 < labels.values().filter(|label| is_named(label)).collect::<BTreeSet<_>>().len()
    })?;
    if owners.len() < 2 {
        return None;
    }
    if let Some((node, _)) = labels.iter().find(|(_, label)| !is_named(label)) {
        return Some(OutageRisk::Unlabelled { node: *node, domain });
    }
    let of = owners[0].len();
    let shared = |partition: &usize| {
        let mut held = owners.iter().map(|owners| labels.get(&owners[*partition]));
        let first = held.next()??;
        held.all(|other| other == Some(first)).then_some(first)
    };
    let together: Vec<&Label<'_>> = (0..of).filter_map(|partition| shared(&partition)).collect();
    let name = together.first()?[1].to_owned();
    Some(OutageRisk::Together {
        partitions: together.len(),
        of,
        domain,
        name,
        spread: spread(nodes, &labels),
    })
}

/// The name of a domain, after the name of the domain around it.
type Label<'a> = [&'a str; 2];
type Labels<'a> = BTreeMap<NodeId, Label<'a>>;

fn is_named(label: &Label<'_>) -> bool {
    !label[1].is_empty()
}

/// Formats the number of nodes by group and domain, such as `g0: 2 a; g1: 1 a, 1 b`.
fn spread(nodes: &[NodeEntry], labels: &Labels<'_>) -> String {
    let mut counts: BTreeMap<GroupId, BTreeMap<&str, usize>> = BTreeMap::new();
    for node in nodes {
        let name = labels.get(&node.id).map_or("", |label| label[1]);
        *counts.entry(node.group).or_default().entry(name).or_default() += 1;
    }
    let mut text = String::new();
    for (group, counts) in counts {
        let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let divider = if text.is_empty() { "" } else { "; " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{divider}{group}: {}", counts.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Strategy;
    use kith_types::PartitionCount;

    /// Returns `each` nodes in each group. Each label is that of one group's nodes, `zone/rack` per node.
    fn nodes(each: u32, labels: &[&str]) -> Vec<NodeEntry> {
        let entry = |(id, label): (u32, &&str)| {
            let (zone, rack) = label.split_once('/').unwrap_or((label, ""));
            let (id, group) = (NodeId(id), GroupId(id / each));
            NodeEntry { id, group, zone: zone.to_owned(), rack: rack.to_owned(), ..NodeEntry::default() }
        };
        (0..).zip(labels).map(entry).collect()
    }

    fn risk(partitions: u32, each: u32, labels: &[&str]) -> Option<OutageRisk> {
        let nodes = nodes(each, labels);
        let groups: Vec<GroupId> = (0..labels.len() as u32 / each).map(GroupId).collect();
        let placement = Strategy::ReplicaGroups.placement(&groups);
        let owners = placement.place(PartitionCount::new(partitions).unwrap(), &nodes, 7).unwrap();
        outage_risk(&owners, &nodes)
    }

    #[test]
    fn replicas_that_can_lie_apart_do() {
        assert_eq!(risk(24, 2, &["a", "b", "a", "b"]), None);
        assert_eq!(risk(24, 2, &["a", "a", "b", "b"]), None);
        assert_eq!(risk(25, 3, &["a", "b", "c", "a", "b", "c", "b", "c", "a"]), None);
        // Three replicas in two zones: one replica is in another zone than the others.
        assert_eq!(risk(24, 2, &["a", "b", "a", "b", "a", "b"]), None);
        assert_eq!(risk(24, 2, &["a/1", "a/2", "a/1", "a/2"]), None);
    }

    #[test]
    fn without_a_choice_there_is_no_risk_to_tell() {
        for labels in [["", "", "", ""], ["a", "a", "a", "a"], ["a/1", "a/1", "a/1", "a/1"]] {
            assert_eq!(risk(24, 2, &labels), None, "{labels:?}");
        }
        assert_eq!(risk(24, 4, &["a", "b", "a", "b"]), None, "one replica is lost with its zone anyway");
    }

    #[test]
    fn what_is_missing_is_reported() {
        let message = risk(24, 2, &["a", "a", "a", "b"]).unwrap().to_string();
        let expected = "12 of 24 partitions would have all their replicas in one zone, the first of them in a (nodes by group: g0: 2 a; g1: 1 a, 1 b)";
        assert_eq!(message, expected);
        let message = risk(24, 2, &["a/1", "a/1", "a/1", "a/2"]).unwrap().to_string();
        assert!(message.contains("in one rack, the first of them in 1"), "{message}");
        let message = risk(24, 2, &["a", "b", "a", ""]).unwrap().to_string();
        assert_eq!(message, "node n3 has no zone, and others have one");
    }

    #[test]
    fn ranks_of_a_ring_are_judged_alike() {
        let owners = |rank: &[u32]| rank.iter().copied().map(NodeId).collect::<Vec<_>>();
        let ring = nodes(4, &["a", "b", "a", "b"]);
        assert_eq!(outage_risk(&[owners(&[0, 1, 2, 3]), owners(&[1, 2, 3, 0])], &ring), None);
        let message =
            outage_risk(&[owners(&[0, 2, 1, 3]), owners(&[2, 1, 3, 0])], &ring).unwrap().to_string();
        assert!(message.starts_with("2 of 4 partitions"), "{message}");
    }
}
