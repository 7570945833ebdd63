//! Graphs for tests.

mod adjacency;
mod memory;
mod unlabelled;

pub use memory::MemoryGraph;
pub use unlabelled::Unlabelled;
