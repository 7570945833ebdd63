//! Bulk load: graph text in, component files out (`docs/design/0001-seams.md`).
//!
//! - [`input`] reads the text;
//! - [`ExternalSorter`] sorts more than fits in memory;
//! - [`ComponentBuilder`] makes the files of one component (architecture D6: streamed out from sorted input within bounded memory, in a
//!   local process here as in Voldemort's reducers, Voldemort §5.2);
//! - [`load_graph`] does all that one load command asks for.

mod builder;
mod graph;
pub mod input;
mod sort;

pub use builder::{
    BuildError, BuildOptions, BuildProgress, BuildSummary, ComponentBuilder, MEMORY_BYTES_DEFAULT,
    version_dir,
};
pub use graph::{
    FileRole, LoadError, LoadOptions, LoadProgress, LoadReport, LoadedFile, MEMBERS_COMPONENT, load_graph,
    next_version,
};
pub use sort::{ExternalSorter, SortError, SortOptions, SortRecord, Sorted};
