//! How files of graphs are read.

use crate::options::{HeaderMode, MEMORY_BYTES_DEFAULT};

/// The longest line of a file of edges, entities or members: a longer one is no row of ids.
const LINE_BYTES_MAX: usize = 1 << 20;

/// How files of graphs are read.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The byte between columns of text; `None` takes the first of tab, comma, `;`, `|` and space that the first line has.
    pub delimiter: Option<u8>,
    /// Whether text begins with a header line. [`HeaderMode::Detect`]: it does if no id column of the first line begins like a
    /// number, or if a column is asked for by name.
    pub header: HeaderMode,
    /// How many wrong lines a file may have before it is refused.
    pub max_errors: u64,
    /// The longest line of text, in bytes. A file with a longer one is refused: it is no table.
    pub line_bytes_max: usize,
    /// Bytes that what is decoded of a Parquet or Arrow file may take at a time.
    pub memory_bytes: usize,
}

impl Default for FileOptions {
    /// Everything is detected, no line may be wrong, and memory is what [`RowOptions::new`](crate::RowOptions::new) allows.
    fn default() -> Self {
        FileOptions {
            delimiter: None,
            header: HeaderMode::default(),
            max_errors: 0,
            line_bytes_max: LINE_BYTES_MAX,
            memory_bytes: MEMORY_BYTES_DEFAULT,
        }
    }
}
