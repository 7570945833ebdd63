//! Bulk load: graph text in, component files out (`docs/design/0001-seams.md`).

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
};
pub use sort::{ExternalSorter, SortError, SortOptions, SortRecord, Sorted};
