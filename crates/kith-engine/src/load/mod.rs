//! Bulk load: graph text in, component files out (`docs/design/0001-seams.md`).
//!
//! - [`input`] reads the text;
//! - [`ExternalSorter`] sorts more than fits in memory;
//! - [`ComponentBuilder`] makes the files of one component (architecture D6: streamed out from sorted input within bounded memory, in a
//!   local process here as in Voldemort's reducers, Voldemort §5.2);
//! - [`load_graph`] does all that one load command asks for;
//! - [`ValuesBuilder`] makes a version of a store, [`PartitionBuilder`] one partition of it elsewhere, [`assemble`] a version of
//!   such partitions, [`DeltaBuilder`] a version from another and what changed.

mod builder;
mod graph;
pub mod input;
mod rows;
mod sort;
mod stop;
mod values;

pub use builder::{
    BuildError, BuildOptions, BuildProgress, BuildSummary, ComponentBuilder, MEMORY_BYTES_DEFAULT,
    version_dir,
};
pub use graph::{
    FileRole, LoadError, LoadOptions, LoadProgress, LoadReport, LoadedFile, MEMBERS_COMPONENT, load_graph,
    next_version,
};
pub use sort::{ExternalSorter, SortError, SortOptions, SortRecord, Sorted};
pub use stop::Stop;
pub use values::{
    AssembledSource, Assembly, DeltaBuilder, DeltaOptions, DeltaSummary, DictionarySample, Duplicates,
    PartitionBuilder, PartitionSummary, SUMMARY_NAME, ValuesBuildError, ValuesBuilder, ValuesOptions,
    ValuesProgress, ValuesSummary, ZstdOptions, assemble,
};
