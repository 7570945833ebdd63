//! The byte order mark that some editors write at the beginning of a text file.

/// The byte order mark of UTF-8.
const UTF8: &[u8] = b"\xef\xbb\xbf";

/// A text is UTF-16, which nothing here reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utf16;

impl std::fmt::Display for Utf16 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it is UTF-16 text; write it as UTF-8")
    }
}

impl std::error::Error for Utf16 {}

/// The number of bytes of a byte order mark at the beginning of a text. They are no part of its first line.
///
/// # Errors
/// [`Utf16`] if the mark is one of UTF-16.
///
/// ```
/// assert_eq!(kith_types::byte_order_mark(b"\xef\xbb\xbfkey"), Ok(3));
/// assert_eq!(kith_types::byte_order_mark(b"key"), Ok(0));
/// assert_eq!(kith_types::byte_order_mark(b"\xff\xfek\0"), Err(kith_types::Utf16));
/// ```
pub fn byte_order_mark(text: &[u8]) -> Result<usize, Utf16> {
    match text {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err(Utf16),
        _ if text.starts_with(UTF8) => Ok(UTF8.len()),
        _ => Ok(0),
    }
}
