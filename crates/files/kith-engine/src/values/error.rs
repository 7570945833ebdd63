//! Errors of reading values.

use crate::errors::{Damage, ReadError};
use kith_types::PartitionId;
use thiserror::Error;

/// The reason why a value cannot be read. It may exist: this never means "not found".
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ValueError {
    /// A byte that the answer depends on is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The key belongs to a partition that was not opened.
    #[error("partition {} is not held here", partition.0)]
    NotHeld { partition: PartitionId },
    /// The key cannot be a key of this store.
    #[error("a key of {got} bytes cannot be an id, which has 8")]
    KeyLength { got: usize },
}

impl From<ReadError> for ValueError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged(damage) => ValueError::Damaged(damage),
        }
    }
}
