//! The options of a preparation, and its progress.

use super::Replicas;
use kith_types::PartitionId;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// The options of a preparation.
#[derive(Clone, Debug, Default)]
pub struct PrepareOptions {
    /// Components larger than this many bytes are refused.
    pub bytes_max: Option<u64>,
    /// The number of bytes of newly opened files to read into memory, indexes first, as far as memory is free.
    pub warm_bytes: u64,
    /// The partitions to fetch without opening them, because another preparation fetches the rest. Empty for all that this
    /// node owns.
    pub only: Vec<PartitionId>,
    /// The nodes that have partitions already. What they cannot supply comes from the object store.
    pub suppliers: Vec<Supplier>,
    /// The token that is cancelled when the caller has given up.
    pub given_up: CancellationToken,
    /// The nodes that supply what the object store does not. Empty for a version that is being pushed, because no node has
    /// it yet.
    pub replicas: Replicas,
}

/// A node that has partitions of a version.
#[derive(Clone, Debug)]
pub struct Supplier {
    /// Its address.
    pub addr: String,
    /// The partitions that it has.
    pub partitions: BTreeSet<PartitionId>,
}

/// The callback that gets the progress: the component's name, bytes done, and total bytes.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, u64);
