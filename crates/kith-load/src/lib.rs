//! Bulk load: writes the files of a version from edges, members and rows (`docs/design/0001-seams.md`). The sources of
//! these are not known here: `kith-rows` reads files, and `kith-build` combines both.
//!
//! - [`ExternalSorter`] sorts more records than fit into memory;
//! - [`ComponentBuilder`] writes the files of one component (architecture D6: streamed from sorted input within bounded
//!   memory, in a local process here and in reducers in Voldemort §5.2);
//! - [`ValuesBuilder`] builds a version of a store, [`PartitionBuilder`] a single partition of it, [`assemble`] a version
//!   from such partitions, and [`DeltaBuilder`] a version from another version and a set of changes.
//!
//! ```
//! use kith_load::{ValuesBuilder, ValuesOptions};
//! use kith_engine::{KeyType, ValueType, ValuesReader};
//! use kith_types::{PartitionCount, StoreVersion};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let partitions = PartitionCount::new(4).ok_or("four is a count")?;
//! let options = ValuesOptions::new("people", StoreVersion(1), partitions, dir.path().join("people"));
//! let mut builder = ValuesBuilder::new(ValuesOptions { key: KeyType::String, value: ValueType::Text, ..options })?;
//! builder.row(b"member:1005", b"a value")?; // more rows follow, in any order
//! let (manifest, _) = builder.finish(&mut |_| {})?;
//! let all: Vec<_> = partitions.iter().collect();
//! let reader = ValuesReader::open(&dir.path().join("people/1"), &all)?;
//! assert_eq!(reader.get(b"member:1005")?, Some(b"a value".to_vec()));
//! assert_eq!(reader.get(b"member:1006")?, None); // proven by checksums
//! # Ok(())
//! # }
//! ```

mod builder;
mod rows;
mod sort;
mod stop;
mod values;

pub use builder::{
    BuildError, BuildOptions, BuildProgress, BuildSummary, COLUMNS_MAX, ComponentBuilder,
    MEMORY_BYTES_DEFAULT, version_dir,
};
pub use sort::{ExternalSorter, SortError, SortOptions, SortRecord, Sorted, Spool, SpoolReader};
pub use stop::Stop;
pub use values::{
    AssembledSource, Assembly, DeltaBuilder, DeltaOptions, DeltaSummary, DictionarySample, Duplicates,
    PartitionBuilder, PartitionSummary, SUMMARY_NAME, ValuesBuildError, ValuesBuilder, ValuesOptions,
    ValuesProgress, ValuesSummary, ZstdOptions, assemble,
};
