//! Reads files of graphs: CSV or TSV text, plain, gzip or Zstandard, with or without a header; and files of rows that their
//! caller can read ([`TypedFile`]).
//!
//! Three kinds of file: edges ([`read_edges`]), member-to-entity edges ([`read_entities`]) and lists of
//! members ([`read_members`]). Each calls a function per good line, counts the wrong ones by reason, keeps the
//! first ten word for word, and refuses the file when there are more than the caller allows. Nothing here
//! knows what becomes of the lines.

mod columns;
mod error;
mod fault;
mod files;
mod header;
mod number;
mod record;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod typed;

pub use columns::{COLUMNS_MAX, ColumnRef, ColumnSpec, ColumnSpecError, store_text};
pub use error::InputError;
pub use fault::{LINE_ERRORS_SHOWN, LineError, LineErrors, LineFault};
pub use files::{
    EdgeColumns, NAME_BYTES_MAX, ReadError, is_kind_name, read_edges, read_entities, read_members,
};
pub use header::HeaderMode;
pub use source::Codec;
pub use table::{FileReport, ReadProgress, TextOptions};
pub use typed::{EachRow, Field, OpenTyped, TypedError, TypedFile, TypedOptions};
