//! The rows that a schema is inferred from.

use crate::fault::RowLocation;
use kith_schema::Inference;

/// The rows seen so far, and how many are enough.
pub(crate) struct Seen {
    pub(crate) inference: Inference<RowLocation>,
    /// `None`: all rows are looked at.
    limit: Option<u64>,
}

impl Seen {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Seen { inference: Inference::new(), limit }
    }

    /// Whether as many rows were seen as are looked at.
    pub(crate) fn is_enough(&self) -> bool {
        self.limit.is_some_and(|limit| limit <= self.inference.rows())
    }
}
