//! Test support for this crate and others: a graph in memory, a cluster within one thread, and slow, obvious twins of all
//! operations.
//!
//! This code is not optimised, and it panics where production code would return an error.

mod cluster;
mod graph;
pub mod naive;

pub use cluster::LocalCluster;
pub use graph::MemoryGraph;
