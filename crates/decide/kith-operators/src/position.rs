//! Places in ordered lists of edges.

/// The place of an edge in an ordered list, whether or not the list has that edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgePosition {
    /// The stored value of the column that the list is sorted by; 0 if it is sorted by id.
    pub value: u64,
    /// The other end of the edge.
    pub id: u64,
}
