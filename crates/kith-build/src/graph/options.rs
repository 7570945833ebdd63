//! How a graph is built, and the values of its columns.

use kith_engine::load::MEMORY_BYTES_DEFAULT;
use kith_types::{PartitionCount, StoreVersion};
use std::path::PathBuf;

/// How a graph is built.
#[derive(Clone, Debug)]
pub struct GraphOptions {
    /// The name of the graph.
    pub graph: String,
    /// The version of every component: above all before.
    pub version: StoreVersion,
    /// How many partitions the cluster has that is to serve it.
    pub partitions: PartitionCount,
    /// The folder of all graphs: components end up in `<out_dir>/<graph>/<component>/<version>`.
    pub out_dir: PathBuf,
    /// Whether a component may have no row, and so replace what there is by nothing.
    pub allow_empty: bool,
    /// Bytes to sort in; 16 MiB at least. Each component has all of them while it is built.
    pub memory_bytes: usize,
    /// Threads to sort and write with.
    pub threads: usize,
}

impl GraphOptions {
    /// Within 256 MiB, on all cores.
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
    /// A whole number from 0; of a column of times, milliseconds since 1970.
    Unsigned(u64),
    /// A whole number.
    Signed(i64),
    /// A finite number, of a column of kind `f64`.
    Float(f64),
    /// As it would stand in a file: also a time in RFC 3339.
    Text(&'a str),
}
