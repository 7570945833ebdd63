//! Formats of lines.

pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod json;
mod table;

/// The most bytes of one row of a text format: a value of 64 MiB whose every byte is spelled in two.
pub const ROW_BYTES_MAX: u64 = 128 << 20;
