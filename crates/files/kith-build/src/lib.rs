//! Builds versions of graphs and stores, and publishes them to a place. The command line, Python and Spark write the
//! same bytes with this code (`docs/design/0016-building.md`). It does not connect to a cluster: a router makes a built
//! version the served one.
//!
//! ```text
//! files, buckets ─► rows ─┐
//! rows of a program ──────┴► graph, store ─► kith-files ─► folder or bucket ─► push
//! ```
//!
//! - [`rows`]: the rows of files in all formats.
//! - `graph`: [`load_graph`] from files, [`GraphBuilder`] from a program.
//! - `store`: [`StoreBuilder`], inputs, deletions, and partitions that tasks build apart.
//! - `object_store`: a store's folder in the cluster's object store, locked for one load or push at a time.
//! - `place`, `taken`: opening places, and taking over versions that were built elsewhere.
//! - `failure`, `dropped`, `progress`: errors with a stable code, dropped rows, progress.
//!
//! ```
//! use kith_build::{RowKey, RowSettings, RowValue, Shape, StoreBuilder, Target};
//! use kith_types::{PartitionCount, StoreVersion};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let partitions = PartitionCount::new(4).ok_or("four is a count")?;
//! let shape = Shape::stated(Some(kith_build::rows::KeyType::Id), None, partitions); // ids to text
//! let target = Target { store: "pages", version: StoreVersion(1), out_dir: folder.path().to_owned() };
//! let mut builder = StoreBuilder::new(&target, &shape, &RowSettings::default())?;
//! builder.put(RowKey::Id(7), RowValue::Text("a page"))?;
//! let built = builder.finish(&mut |_| {})?;
//! assert_eq!(built.records(), 1); // in the folder `1`, which `kith store push pages` takes
//! # Ok(())
//! # }
//! ```
//!
//! A new format of files belongs to [`rows`]. A new option of a build belongs to [`GraphOptions`] or [`RowSettings`].

mod dropped;
mod failure;
mod graph;
mod object_store;
mod place;
mod progress;
pub mod rows;
mod store;
mod taken;

pub use crate::rows::graph::{ColumnRef, ColumnSpec, EdgeColumns, FileOptions};
pub use crate::rows::{FieldTimes, Format, FormatChoice, HeaderMode, RowKey, RowValue, WrongTimes};
pub use dropped::DroppedRows;
pub use failure::Failure;
pub use graph::{
    ColumnValue, ComponentRows, FileRole, FoundComponent, GraphBuilder, GraphOptions, LoadOptions,
    LoadReport, LoadedFile, MEMBERS_COMPONENT, find_graph, load_graph, next_graph_version, publish_graph,
};
pub use kith_engine::{Manifest, VALUES_COMPONENT};
pub use kith_files::objects::{Location, Objects};
pub use kith_files::{
    BuildProgress, BuildSummary, DeltaSummary, Duplicates, MEMORY_BYTES_DEFAULT, PartitionSummary, Stop,
    version_dir,
};
pub use object_store::{LockedStore, ObjectStore, Work, partition_count, remove_folder};
pub use place::{
    Workshop, manifest_at, next_version, open_objects, publish_version, refused, unusable, version_here,
};
pub use progress::{LoadProgress, OnProgress, Progress};
pub use store::{
    Base, BuiltVersion, Destination, PARTITION_PREFIX, RowSettings, Rows, SchemaFrom, Shape, StoreBuilder,
    Target, assemble_version, publish_partition, read_schema,
};
pub use taken::{find_version, take_version};
