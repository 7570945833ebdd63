//! Intents: writes that the leader of a pair has decided and must apply at both ends.

use crate::{AssociationKey, CompletedWrite, Data, Pair, WriteId};
use kith_types::LogPoint;

/// A write id, and a checksum of the write that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteName {
    /// The write id.
    pub id: WriteId,
    /// The checksum of the write ([`crate::Write::checksum`]).
    pub checksum: u64,
}

/// The new state of a two-sided association. Its two rows, one at each end, must show this state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The row of the association in the forward direction.
    pub forward: AssociationKey,
    /// The row of the association in the other direction.
    pub inverse: AssociationKey,
    /// The new time and fields; `None` if the association is deleted.
    pub content: Option<EdgeContent>,
}

/// The time and the fields of an association, which are the same in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeContent {
    /// The time of the association.
    pub time: u64,
    /// The fields of the association.
    pub data: Data,
}

/// A write to a pair whose ends lie in two partitions, from the transaction that decides it to the one that completes it.
/// Its log point in the partition that orders the pair is the **stamp** of all rows that it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The pair that the write changes.
    pub pair: Pair,
    /// The log point of the transaction that decided the write.
    pub stamp: LogPoint,
    /// The edges that change: one, or two if an association changes its type.
    pub edges: Vec<Edge>,
    /// The outcome that is reported to the caller when the intent is complete.
    pub done: CompletedWrite,
    /// The write id under which the outcome is recorded, and the checksum of the write; `None` if the write has no write id.
    pub name: Option<WriteName>,
}

impl Intent {
    /// Returns about how much memory the intent takes, in bytes. At each end, its rows take about as much.
    pub fn bytes(&self) -> usize {
        let contents = self.edges.iter().filter_map(|edge| edge.content.as_ref());
        let fields: usize = contents.map(|content| content.data.bytes.len()).sum();
        size_of::<Self>() + self.edges.len() * size_of::<Edge>() + fields
    }
}
