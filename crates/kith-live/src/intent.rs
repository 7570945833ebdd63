//! What the leader of a pair has decided and must bring to both ends.

use crate::{AssociationKey, Data, Done, Pair, WriteName};
use kith_types::LogPoint;

/// The new state of one direction of an association. Both of its rows, at its two ends, are to show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The association in its forward direction.
    pub forward: AssociationKey,
    /// The same association seen from the other end.
    pub inverse: AssociationKey,
    /// What it becomes; `None`: it goes away.
    pub content: Option<EdgeContent>,
}

/// Time and fields of an association: the same in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeContent {
    /// Its time.
    pub time: u64,
    /// Its fields.
    pub data: Data,
}

/// A write to a pair whose ends lie in two partitions, from the transaction that decides it to the one that completes it. Its
/// place in the log of the pair's ordering partition is the **stamp** of all rows that it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The pair.
    pub pair: Pair,
    /// The stamp.
    pub stamp: LogPoint,
    /// What changes: one edge, or two if an association changes its type.
    pub edges: Vec<Edge>,
    /// What the caller is told when it is complete.
    pub done: Done,
    /// The name of the write, under which the outcome is recorded.
    pub name: Option<WriteName>,
}

impl Intent {
    /// About how much memory it takes, in bytes. At each end, its rows take about as much.
    pub fn bytes(&self) -> usize {
        let contents = self.edges.iter().filter_map(|edge| edge.content.as_ref());
        let fields: usize = contents.map(|content| content.data.bytes.len()).sum();
        size_of::<Self>() + self.edges.len() * size_of::<Edge>() + fields
    }
}
