//! Spreads the replicas of a partition over zones and racks.
//!
//! The objective is to minimize first the number of pairs of replicas of one partition in the same zone, then those in the
//! same rack. Group sizes never change: only owners within a group are exchanged, while this reduces the objective. So it
//! ends, at a placement that no single exchange improves. A node without labels shares nothing with other nodes.

use crate::NodeEntry;
use kith_types::NodeId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The cost of sharing a zone; sharing a rack costs 1. It is greater than the cost of all rack pairs of a table together:
/// 65,536 partitions × 64 × 63 ÷ 2.
const ZONE: u64 = 1 << 32;

/// The number of rounds over all groups. Each exchange is a gain, so further rounds would gain little.
const ROUNDS_MAX: usize = 8;

/// The number of pairs of replicas of one partition that share a failure domain, summed over partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedPairs {
    /// Pairs in one zone.
    pub zone_pairs: u64,
    /// Pairs in one rack.
    pub rack_pairs: u64,
}

/// Counts the pairs that share a domain; 0 and 0 if there are none. O(partitions × groups²).
pub fn shared_domains(owners: &[Vec<NodeId>], nodes: &[NodeEntry]) -> SharedPairs {
    let domains = Domains::new(nodes);
    let cost: u64 = (0..owners.len()).flat_map(|group| domains.costs(owners, group)).sum();
    // Every pair was counted from both ends.
    SharedPairs { zone_pairs: cost / ZONE / 2, rack_pairs: cost % ZONE / 2 }
}

/// The failure domains of nodes.
pub(super) struct Domains {
    of_node: BTreeMap<NodeId, usize>,
    /// The cost of two replicas in domains `a` and `b`, at index `a × count + b`.
    costs: Vec<u64>,
    count: usize,
}

impl Domains {
    pub(super) fn new(nodes: &[NodeEntry]) -> Self {
        let labels = |node: &NodeEntry| (node.region.clone(), node.zone.clone(), node.rack.clone());
        let mut names: Vec<_> = nodes.iter().map(labels).collect();
        names.sort_unstable();
        names.dedup();
        let index = |node: &NodeEntry| names.binary_search(&labels(node)).unwrap_or(0);
        let of_node = nodes.iter().map(|node| (node.id, index(node))).collect();
        let cost = |a: &(String, String, String), b: &(String, String, String)| {
            let zone = a.0 == b.0 && a.1 == b.1;
            let zone_cost = if zone && !a.1.is_empty() { ZONE } else { 0 };
            zone_cost + u64::from(zone && a.2 == b.2 && !a.2.is_empty())
        };
        let costs = names.iter().flat_map(|a| names.iter().map(move |b| cost(a, b))).collect();
        Self { of_node, costs, count: names.len() }
    }

    /// Returns the domain of a node; `None` for an unknown node, which shares nothing.
    fn of(&self, node: NodeId) -> Option<usize> {
        self.of_node.get(&node).copied()
    }

    /// Returns the cost of each partition's replica in `group` at its current place.
    pub(super) fn costs(&self, owners: &[Vec<NodeId>], group: usize) -> Vec<u64> {
        let here = |index: usize| match self.of(owners[group][index]) {
            Some(domain) => self.cost_in(owners, group, index, domain),
            None => 0,
        };
        (0..owners[group].len()).map(here).collect()
    }

    fn cost_in(&self, owners: &[Vec<NodeId>], group: usize, index: usize, domain: usize) -> u64 {
        let others = owners.iter().enumerate().filter(|(other, _)| *other != group);
        let cost = |(_, owners): (usize, &Vec<NodeId>)| {
            self.of(owners[index]).map_or(0, |other| self.costs[domain * self.count + other])
        };
        others.map(cost).sum()
    }

    fn matter(&self) -> bool {
        self.costs.iter().any(|cost| 0 < *cost)
    }
}

/// Exchanges owners within groups to lower the objective.
pub(super) struct DomainSpread<'a> {
    domains: &'a Domains,
    owners: &'a mut Vec<Vec<NodeId>>,
}

impl<'a> DomainSpread<'a> {
    pub(super) fn new(domains: &'a Domains, owners: &'a mut Vec<Vec<NodeId>>) -> Self {
        Self { domains, owners }
    }

    /// Exchanges owners of all partitions, group by group, until nothing changes.
    pub(super) fn all(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut exchanged = 0;
            for group in 0..self.owners.len() {
                let every: Vec<usize> = (0..self.owners[group].len()).collect();
                exchanged += self.some(group, &every);
            }
            if exchanged == 0 {
                return;
            }
        }
    }

    /// Exchanges owners of these partitions of one group. Returns the number of exchanges.
    /// O(domains × partitions × log partitions) per round, few rounds.
    pub(super) fn some(&mut self, group: usize, partitions: &[usize]) -> usize {
        if !self.domains.matter() {
            return 0;
        }
        let count = self.domains.count;
        let costs: Vec<u64> = partitions
            .iter()
            .flat_map(|index| {
                (0..count).map(|domain| self.domains.cost_in(self.owners, group, *index, domain))
            })
            .collect();
        let mut exchanged = 0;
        loop {
            let before = exchanged;
            for a in 0..count {
                for b in a + 1..count {
                    exchanged += self.exchange(group, partitions, &costs, (a, b));
                }
            }
            if exchanged == before {
                return exchanged;
            }
        }
    }

    /// Exchanges the best pairs between two domains, as long as each pair is a gain.
    fn exchange(
        &mut self,
        group: usize,
        partitions: &[usize],
        costs: &[u64],
        (a, b): (usize, usize),
    ) -> usize {
        let gains = |from: usize, to: usize| {
            let owners = &self.owners[group];
            let there = (0..partitions.len())
                .filter(|index| self.domains.of(owners[partitions[*index]]) == Some(from));
            let gain = |index: usize| {
                let cost = |domain: usize| costs[index * self.domains.count + domain] as i64;
                (cost(from) - cost(to), index)
            };
            let mut gains: Vec<(i64, usize)> = there.map(gain).collect();
            gains.sort_by_key(|(gain, index)| (Reverse(*gain), *index));
            gains
        };
        let (ours, theirs) = (gains(a, b), gains(b, a));
        let pairs = ours.into_iter().zip(theirs).take_while(|((one, _), (two, _))| 0 < one + two);
        let mut exchanged = 0;
        for ((_, one), (_, two)) in pairs {
            self.owners[group].swap(partitions[one], partitions[two]);
            exchanged += 1;
        }
        exchanged
    }
}
