//! Test support for this crate and others: a cluster within one thread, and slow, obvious twins of all operations.
//!
//! This code is not optimised, and it panics where production code would return an error.

mod cluster;
pub mod naive;

pub use cluster::LocalCluster;
pub use kith_operators::testing::MemoryGraph;
