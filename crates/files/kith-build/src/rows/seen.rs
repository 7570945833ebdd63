//! The rows that a schema is inferred from.

use crate::rows::fault::RowLocation;
use crate::rows::inference::Inference;

/// The rows seen so far, and their limit.
pub(crate) struct SeenRows {
    pub(crate) inference: Inference<RowLocation>,
    /// The number of rows to examine; `None` examines all.
    limit: Option<u64>,
}

impl SeenRows {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        SeenRows { inference: Inference::new(), limit }
    }

    /// Whether the limit is reached.
    pub(crate) fn is_enough(&self) -> bool {
        self.limit.is_some_and(|limit| limit <= self.inference.rows())
    }
}
