//! The versions of stores that a node keeps: it prepares them for pushes, moves their partitions for rebalances, and removes
//! them when nothing names them.
//!
//! [`held`] is the folder and the open versions. [`follow`], [`prepare`] and [`moves`] carry out what the topology and calls
//! want of it. [`peer`] reads files of other nodes, [`throttle`] and [`pace`] limit how fast files move, and [`warm`] and
//! [`residency`] look after memory.

pub(crate) mod follow;
pub(crate) mod held;
pub(crate) mod moves;
pub(crate) mod pace;
pub(crate) mod peer;
pub(crate) mod prepare;
pub(crate) mod repairs;
pub(crate) mod residency;
pub(crate) mod throttle;
pub(crate) mod warm;

pub(crate) use held::{
    CopyError, CopyTerms, HeldStores, Partitions, PrepareError, ReleaseError, Replicas, Supplier,
};
