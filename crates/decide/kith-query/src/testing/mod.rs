//! Test support for this crate and others: a cluster within one thread.
//!
//! This code is not optimised, and it panics where production code would return an error.

mod cluster;

pub use cluster::LocalCluster;
pub use kith_operators::testing::MemoryGraph;
