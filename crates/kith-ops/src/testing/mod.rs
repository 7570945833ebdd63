//! For tests, of this crate and of others: a graph in memory, a cluster in one
//! call stack, and slow, obvious twins of all operations.
//!
//! Nothing here is fast, and it panics where production code would return an error.

mod cluster;
mod graph;
pub mod naive;

pub use cluster::LocalCluster;
pub use graph::MemoryGraph;
