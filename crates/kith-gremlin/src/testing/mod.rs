//! A graph in memory, for tests.

mod memory;

pub use memory::MemoryGraph;
