//! Limits of a row.

/// The most bytes of one row of a text format: a value of 64 MiB in which every byte is written as two.
pub const ROW_BYTES_MAX: u64 = 128 << 20;

/// The limits of the rows of files, whatever the size of the files.
pub const UNPACKED_MIN: u64 = 1 << 30;

/// How many times the size of its files the rows may take: far more than what compresses well, and far less than what was made to
/// fill a disk.
pub const UNPACKED_FACTOR: u64 = 1_000;

/// Returns the most bytes that rows may take once they are read: the given number, or one that depends on the size of their
/// files. Of a pipe, that is what was read of it so far.
pub(crate) fn unpacked_max(given: Option<u64>, size: u64) -> u64 {
    given.unwrap_or(size.saturating_mul(UNPACKED_FACTOR).max(UNPACKED_MIN))
}

/// The deepest JSON that is accepted. It is less than what parsers with a bounded stack accept, with room for the reply
/// around a value.
pub(crate) const JSON_DEPTH_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_may_expand_to_grows_with_them() {
        assert_eq!(unpacked_max(None, 58 << 10), UNPACKED_MIN);
        assert_eq!(unpacked_max(None, 1 << 30), 1_000 << 30);
        assert_eq!(unpacked_max(None, u64::MAX), u64::MAX);
        assert_eq!(unpacked_max(Some(5), 0), 5);
    }
}
