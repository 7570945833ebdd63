//! A graph in memory, for tests.

mod adjacency;
mod memory;

pub use memory::MemoryGraph;
