//! What a row may have at most.

/// The most bytes of one row of a text format: a value of 64 MiB whose every byte is spelled in two.
pub const ROW_BYTES_MAX: u64 = 128 << 20;

/// The deepest JSON that is taken in: less than what parsers that bound their stack take, with room for the reply around a value.
pub(crate) const JSON_DEPTH_MAX: usize = 100;
