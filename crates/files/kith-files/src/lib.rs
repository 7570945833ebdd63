//! Turns edges, members and rows, in any order, into the files of a version, within a bounded amount of
//! memory, and opens the places that hold versions ([`objects`]). `kith-build` feeds it with rows. It does not know
//! where the rows come from, and talks to no cluster.
//!
//! - [`ComponentBuilder`] (`builder`): the component of a graph, from edges.
//! - [`ValuesBuilder`] (`values`): a version of a store, from rows.
//! - [`PartitionBuilder`] and [`assemble`]: single partitions that tasks build apart, as in Spark, and the version of
//!   all.
//! - [`DeltaBuilder`] (`values/delta`): a version from another version and a set of changes.
//! - [`ExternalSorter`] (`sort`), and `rows` for rows of any length: sorting more than fits into memory. `spill`
//!   writes a full buffer, and `merge` joins the runs.
//! - [`Stop`]: ends a build on another thread. `testing`: an S3 server (feature `testing`).
//!
//! If no key occurs twice, the same rows give the same bytes in whatever order they come. A folder gets its final name
//! only when it is complete.
//!
//! ```
//! use kith_files::{ValuesBuilder, ValuesOptions};
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
//!
//! The formats are in `kith-engine`. A new way to build a version is a builder here.

mod builder;
pub mod objects;
mod rows;
mod sort;
mod stop;
#[cfg(feature = "testing")]
pub mod testing;
mod values;

pub use builder::{
    BuildError, BuildOptions, BuildProgress, BuildSummary, COLUMNS_MAX, ComponentBuilder,
    MEMORY_BYTES_DEFAULT, version_dir,
};
pub use sort::{ExternalSorter, SortError, SortOptions, SortRecord, SortedRecords, Spool, SpoolReader};
pub use stop::Stop;
pub use values::{
    AssembledSource, Assembly, DeltaBuilder, DeltaOptions, DeltaSummary, DictionarySample, Duplicates,
    PartitionBuilder, PartitionSummary, SUMMARY_NAME, ValuesBuildError, ValuesBuilder, ValuesOptions,
    ValuesProgress, ValuesSummary, ZstdOptions, assemble,
};
