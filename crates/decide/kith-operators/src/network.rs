//! A member's first and second degree, as the network cache keeps them (Moolle, Algorithm 2).

use crate::sets::{PackedIds, intersect, merge_two};
use kith_types::Direction;

/// The key of a network: the member and the edges.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkKey {
    /// The member.
    pub id: u64,
    /// The edge type.
    pub edge_type: String,
    /// The direction.
    pub direction: Direction,
}

/// The sizes of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkSizes {
    /// The number of members at distance 1.
    pub first: u64,
    /// The number of members at distance exactly 2.
    pub second: u64,
    /// The number of ids in the raw union of the first degree's lists.
    pub union: u64,
}

impl NetworkSizes {
    /// The number of members at distance 1 or 2: the "network size" of Moolle §II.
    pub fn network(self) -> u64 {
        self.first + self.second
    }
}

/// The first degree and the raw union of its lists, with the sizes that queries ask for most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    id: u64,
    first: Vec<u64>,
    /// The raw union. It may contain the member itself and members of the first degree.
    union: PackedIds,
    sizes: NetworkSizes,
}

impl Network {
    /// Builds the network of `id` from its first degree and the raw union of that degree's lists, both sorted and distinct.
    pub fn new(id: u64, first: Vec<u64>, union: &[u64]) -> Self {
        let own = u64::from(first.binary_search(&id).is_err() && union.binary_search(&id).is_ok());
        let nearer = intersect(&first, union).len() as u64 + own;
        let sizes = NetworkSizes {
            first: first.len() as u64,
            second: union.len() as u64 - nearer,
            union: union.len() as u64,
        };
        Self { id, first: first.into_boxed_slice().into_vec(), union: PackedIds::from_sorted(union), sizes }
    }

    /// Builds the network of `id` from its first degree, and the raw union divided into [`Network::second`] and
    /// [`Network::nearer`]; all sorted and distinct.
    pub fn from_parts(id: u64, first: Vec<u64>, second: &[u64], nearer: &[u64]) -> Self {
        let mut union = Vec::new();
        merge_two(second, nearer, &mut union);
        Self::new(id, first, &union)
    }

    /// The member of the network.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The sizes of the network. `O(1)`.
    pub fn sizes(&self) -> NetworkSizes {
        self.sizes
    }

    /// The first degree, sorted and distinct.
    pub fn first(&self) -> &[u64] {
        &self.first
    }

    /// The raw union of the first degree's lists, as nodes return it.
    pub fn union(&self) -> &PackedIds {
        &self.union
    }

    /// Members at distance exactly 2, ascending.
    pub fn second(&self) -> impl Iterator<Item = u64> {
        self.union_where(false)
    }

    /// The ids of the raw union at distance 0 or 1, ascending.
    pub fn nearer(&self) -> impl Iterator<Item = u64> {
        self.union_where(true)
    }

    /// The ids of the raw union that are nearer than 2, or those that are not.
    fn union_where(&self, is_nearer: bool) -> impl Iterator<Item = u64> {
        let mut first = self.first.iter().copied().peekable();
        self.union.iter().filter(move |&id| {
            while first.next_if(|&other| other < id).is_some() {}
            is_nearer == (id == self.id || first.peek() == Some(&id))
        })
    }

    /// Members at distance 1 or 2, ascending.
    pub fn both(&self) -> impl Iterator<Item = u64> {
        let (mut first, mut second) = (self.first.iter().copied().peekable(), self.second().peekable());
        std::iter::from_fn(move || match (first.peek(), second.peek()) {
            (Some(a), Some(b)) if b < a => second.next(),
            (Some(_), _) => first.next(),
            (None, _) => second.next(),
        })
    }

    /// The distance to `target` if it is at most 2.
    pub fn distance(&self, target: u64) -> Option<u8> {
        if target == self.id {
            Some(0)
        } else if self.first.binary_search(&target).is_ok() {
            Some(1)
        } else {
            self.union.contains(target).then_some(2)
        }
    }

    /// The memory that it takes, in bytes.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.first.capacity() * size_of::<u64>() + self.union.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5 has the connections 1 and 9; the union of their lists is 1, 2, 5, 7 and 9.
    fn network() -> Network {
        Network::new(5, vec![1, 9], &[1, 2, 5, 7, 9])
    }

    #[test]
    fn sizes_leave_out_the_member_and_its_first_degree() {
        let sizes = network().sizes();
        assert_eq!(sizes, NetworkSizes { first: 2, second: 2, union: 5 });
        assert_eq!(sizes.network(), 4);
    }

    #[test]
    fn ids_come_ascending() {
        assert_eq!(network().second().collect::<Vec<_>>(), [2, 7]);
        assert_eq!(network().nearer().collect::<Vec<_>>(), [1, 5, 9]);
        assert_eq!(network().both().collect::<Vec<_>>(), [1, 2, 7, 9]);
    }

    #[test]
    fn a_network_comes_back_from_its_parts() {
        let (second, nearer): (Vec<u64>, Vec<u64>) =
            (network().second().collect(), network().nearer().collect());
        assert_eq!(Network::from_parts(5, vec![1, 9], &second, &nearer), network());
    }

    #[test]
    fn distances_within_the_network_need_no_other_list() {
        let got = [5, 1, 2, 3].map(|id| network().distance(id));
        assert_eq!(got, [Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn a_lonely_member_has_an_empty_network() {
        let network = Network::new(5, vec![], &[]);
        assert_eq!((network.sizes(), network.both().count()), (NetworkSizes::default(), 0));
    }
}
