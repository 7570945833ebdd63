//! Limits of a row.

/// The most bytes of one row of a text format: a value of 64 MiB in which every byte is written as two.
pub const ROW_BYTES_MAX: u64 = 128 << 20;

/// The deepest JSON that is accepted. It is less than what parsers with a bounded stack accept, with room for the reply
/// around a value.
pub(crate) const JSON_DEPTH_MAX: usize = 100;
