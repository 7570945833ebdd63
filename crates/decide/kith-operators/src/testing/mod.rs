//! Test support for this crate and others: a graph in memory.
//!
//! This code is not optimised, and it panics where production code would return an error.

mod graph;

pub use graph::MemoryGraph;
