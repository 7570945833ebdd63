//! The operations by their definitions, over sets of pairs. `None` stands for a member that is not in the graph.

use kith_types::Direction;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A set of ids.
pub type Ids = BTreeSet<u64>;

/// The edges of one kind, among members or between members and entities.
#[derive(Clone, Debug)]
pub struct Twin {
    /// The members, including those without an edge.
    pub members: Ids,
    /// Pairs of (from, to).
    pub edges: BTreeSet<(u64, u64)>,
    /// The direction in which queries follow the edges.
    pub direction: Direction,
}

impl Twin {
    /// The neighbours of `id`.
    pub fn near(&self, id: u64) -> Ids {
        let mut near = Ids::new();
        for &(from, to) in &self.edges {
            if from == id && self.direction != Direction::In {
                near.insert(to);
            }
            if to == id && self.direction != Direction::Out {
                near.insert(from);
            }
        }
        near
    }

    fn known(&self, ids: &[u64]) -> Option<()> {
        ids.iter().all(|id| self.members.contains(id)).then_some(())
    }

    /// The first degree.
    pub fn connections(&self, id: u64) -> Option<Ids> {
        self.known(&[id]).map(|()| self.near(id))
    }

    /// The number of connections of each member.
    pub fn degrees(&self, ids: &[u64]) -> Vec<Option<u64>> {
        ids.iter().map(|&id| self.connections(id).map(|ids| ids.len() as u64)).collect()
    }

    /// The edges of a member with their `value`, ordered by value or by id, ties by ascending id.
    pub fn edges(
        &self,
        id: u64,
        value: impl Fn(u64, u64) -> u64,
        by_value: bool,
        descending: bool,
    ) -> Option<Vec<(u64, u64)>> {
        let value = |other| match self.direction {
            Direction::In => value(other, id),
            _ if self.edges.contains(&(id, other)) => value(id, other),
            _ => value(other, id),
        };
        let mut edges: Vec<_> =
            self.connections(id)?.into_iter().map(|other| (other, value(other))).collect();
        match (by_value, descending) {
            (false, false) => {}
            (false, true) => edges.reverse(),
            (true, false) => edges.sort_by_key(|&(_, value)| value),
            (true, true) => edges.sort_by_key(|&(_, value)| Reverse(value)),
        }
        Some(edges)
    }

    /// The first degree, the members at distance exactly 2, and the raw union of the first degree's lists.
    pub fn network(&self, id: u64) -> Option<(Ids, Ids, Ids)> {
        let first = self.connections(id)?;
        let union: Ids = first.iter().flat_map(|&other| self.near(other)).collect();
        let second = union.iter().copied().filter(|other| *other != id && !first.contains(other)).collect();
        Some((first, second, union))
    }

    /// The number of hops from `from` to every member that it reaches.
    pub fn distances(&self, from: u64) -> BTreeMap<u64, usize> {
        let mut distances = BTreeMap::from([(from, 0)]);
        let mut frontier = vec![from];
        for distance in 1.. {
            let reached: Ids = frontier.iter().flat_map(|&id| self.near(id)).collect();
            frontier = reached.into_iter().filter(|id| !distances.contains_key(id)).collect();
            if frontier.is_empty() {
                break;
            }
            distances.extend(frontier.iter().map(|&id| (id, distance)));
        }
        distances
    }

    /// The distances of 0 to 3; `None` for members that are farther away.
    pub fn distance(&self, from: u64, to: &[u64]) -> Option<Vec<Option<u8>>> {
        self.known(&[from])?;
        self.known(to)?;
        let distances = self.distances(from);
        let badge = |id| distances.get(id).filter(|&&distance| distance <= 3).map(|&distance| distance as u8);
        Some(to.iter().map(badge).collect())
    }

    /// The length of the shortest path, if it is at most `max`.
    pub fn path_length(&self, from: u64, to: u64, max: usize) -> Option<Option<usize>> {
        self.known(&[from, to])?;
        Some(self.distances(from).get(&to).copied().filter(|&length| length <= max))
    }

    /// Whether each hop is an edge.
    pub fn is_path(&self, members: &[u64]) -> bool {
        members.windows(2).all(|hop| self.near(hop[0]).contains(&hop[1]))
    }

    /// The common connections, without the two members themselves.
    pub fn common(&self, a: u64, b: u64) -> Option<Ids> {
        self.known(&[a, b])?;
        let both = self.near(a).intersection(&self.near(b)).copied().collect::<Ids>();
        Some(both.into_iter().filter(|&id| id != a && id != b).collect())
    }

    /// The people that a member may know, with the numbers of common connections.
    pub fn suggest(&self, id: u64, k: usize) -> Option<Vec<(u64, u32)>> {
        let (first, second, _) = self.network(id)?;
        let common =
            |other: u64| first.iter().filter(|&&friend| self.near(friend).contains(&other)).count() as u32;
        let mut ranked: Vec<(u64, u32)> = second.into_iter().map(|other| (other, common(other))).collect();
        ranked.sort_by_key(|&(other, count)| (Reverse(count), other));
        ranked.truncate(k);
        Some(ranked)
    }
}
