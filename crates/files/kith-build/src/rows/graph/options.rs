//! Options for reading files of graphs.

use crate::rows::options::{HeaderMode, MEMORY_BYTES_DEFAULT};

/// The longest line of a file of edges, entities or members. A longer line is not a row of ids.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Options for reading files of graphs.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The byte between columns of text. `None` uses the first of tab, comma, `;`, `|` and space that the first line
    /// contains.
    pub delimiter: Option<u8>,
    /// Whether text begins with a header line. With [`HeaderMode::Detect`], it does if no id column of the first line
    /// begins like a number, or if a column is referred to by name.
    pub header: HeaderMode,
    /// How many wrong lines a file may have before it is refused.
    pub max_errors: u64,
    /// The longest line of text, in bytes. A file with a longer line is refused, because it is not a table.
    pub line_bytes_max: usize,
    /// The most decoded bytes of a Parquet or Arrow file at a time.
    pub memory_bytes: usize,
    /// The most bytes of the rows of a file, decoded, as in [`RowOptions::unpacked_max`](crate::rows::RowOptions::unpacked_max).
    pub unpacked_max: Option<u64>,
}

impl Default for FileOptions {
    /// Everything is detected, no line may be wrong, and the memory is that of [`RowOptions::new`](crate::rows::RowOptions::new).
    fn default() -> Self {
        FileOptions {
            delimiter: None,
            header: HeaderMode::default(),
            max_errors: 0,
            line_bytes_max: LINE_BYTES_MAX,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            unpacked_max: None,
        }
    }
}
