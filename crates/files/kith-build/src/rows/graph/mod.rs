//! Files of loaded graphs: edges ([`read_edges`]), member-to-entity edges ([`read_entities`]) and lists of members
//! ([`read_members`]). Files of live graphs: objects ([`read_objects`]) and associations ([`read_associations`]).
//!
//! The files are CSV or TSV text, JSON lines, Parquet or Arrow, plain, gzip or Zstandard, with or without a header. Each
//! function calls another one per good line, counts the wrong lines by reason, keeps the first ten in full, and refuses the
//! file when there are more than the caller allows. It does not matter here how the lines are used.
//!
//! Delimited text is not read with the `csv` crate, as rows of stores are. Most lines of a graph are two numbers, so the
//! line reader is optimised for them (`RecordReader::next_plain_pair`). Also, a stray quote must cost one line of an edge
//! list, and not the rest of the file.

mod columns;
mod error;
mod fault;
mod files;
mod folders;
mod header;
mod live;
mod options;
mod quoted;
mod record;
mod report;
mod row;
mod rows;
mod source;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod text;

pub use columns::{ColumnRef, ColumnSpec, ColumnSpecError, store_number, store_text};
pub use error::FileError;
pub use fault::{LineError, LineErrors, LineFault};
pub use files::{EdgeColumns, read_edges, read_entities, read_members};
pub use kith_schema::TimeUnit;
pub use live::{AssociationRow, ObjectRow, read_associations, read_objects};
pub use options::FileOptions;
pub use report::{FileReport, ReadProgress, columns_taken};
