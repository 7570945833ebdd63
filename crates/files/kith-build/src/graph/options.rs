//! The options for building a graph, and the values of its columns.

use kith_files::MEMORY_BYTES_DEFAULT;
use kith_types::{PartitionCount, StoreVersion};
use std::path::PathBuf;

/// The options for building a graph.
#[derive(Clone, Debug)]
pub struct GraphOptions {
    /// The name of the graph.
    pub graph: String,
    /// The version of every component. It must be above all earlier ones.
    pub version: StoreVersion,
    /// The number of partitions of the cluster that will serve the graph.
    pub partitions: PartitionCount,
    /// The folder of all graphs. Components are written to `<out_dir>/<graph>/<component>/<version>`.
    pub out_dir: PathBuf,
    /// Whether a component may have no row, and so replace the existing data by nothing.
    pub allow_empty: bool,
    /// The memory for sorting in bytes; at least 16 MiB. Each component uses all of it while it is built.
    pub memory_bytes: usize,
    /// The number of threads for sorting and writing.
    pub threads: usize,
}

impl GraphOptions {
    /// The default uses 256 MiB and all cores.
    pub fn new(graph: &str, version: StoreVersion, partitions: PartitionCount, out_dir: PathBuf) -> Self {
        Self {
            graph: graph.to_owned(),
            version,
            partitions,
            out_dir,
            allow_empty: false,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// The value of one column of an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnValue<'a> {
    /// A whole number that is not negative; for a column of times, milliseconds since 1970.
    Unsigned(u64),
    /// A whole number.
    Signed(i64),
    /// A finite number, of a column of kind `f64`.
    Float(f64),
    /// A value as it would be written in a file, such as a time in RFC 3339.
    Text(&'a str),
}
