//! A member's first and second degree: what the network cache holds (Moolle, Algorithm 2).

use kith_types::Direction;

/// Whose network, over which edges.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkKey {
    /// The member.
    pub id: u64,
    /// The edge type.
    pub edge_type: String,
    /// The direction.
    pub direction: Direction,
}

/// The first degree and the raw union of its lists, with the sizes that queries ask for most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    first: Vec<u64>,
    /// Raw union: may hold the member itself and members of the first degree.
    union: Vec<u64>,
    second_count: u64,
}

impl Network {
    /// Builds the network of `id` from its first degree and the raw union of that degree's lists, both sorted and distinct.
    pub fn new(id: u64, first: Vec<u64>, union: Vec<u64>) -> Self {
        let second_count =
            union.iter().filter(|&&x| x != id && first.binary_search(&x).is_err()).count() as u64;
        Self { first, union, second_count }
    }

    /// The first degree, sorted and distinct.
    pub fn first(&self) -> &[u64] {
        &self.first
    }

    /// How many members are at distance exactly 2.
    pub fn second_count(&self) -> u64 {
        self.second_count
    }

    /// The size of the raw union of the first degree's lists.
    pub fn union_count(&self) -> u64 {
        self.union.len() as u64
    }
}
