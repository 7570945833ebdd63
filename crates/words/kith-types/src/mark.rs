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

/// The text of a file: UTF-8, without a byte order mark.
///
/// # Errors
/// `InvalidData` if it is not UTF-8, with the reason.
///
/// ```
/// assert_eq!(kith_types::without_mark(b"\xef\xbb\xbfport = 1".to_vec()).unwrap(), "port = 1");
/// let refused = kith_types::without_mark(b"\xff\xfep\0".to_vec()).unwrap_err();
/// assert_eq!(refused.to_string(), "it is UTF-16 text; write it as UTF-8");
/// ```
pub fn without_mark(mut text: Vec<u8>) -> std::io::Result<String> {
    let invalid = |error: Box<dyn std::error::Error + Send + Sync>| {
        std::io::Error::new(std::io::ErrorKind::InvalidData, error)
    };
    let mark = byte_order_mark(&text).map_err(|error| invalid(error.into()))?;
    text.drain(..mark);
    String::from_utf8(text).map_err(|error| invalid(error.into()))
}

/// Why a line of a list, without its end, is probably not what the list should hold; `None` for usual lines. Taken as they
/// are, such lines would name things that do not exist.
///
/// ```
/// assert_eq!(kith_types::odd_line(b"ada"), None);
/// assert!(kith_types::odd_line(b"ada\rbob").unwrap().contains("line feed"));
/// assert!(kith_types::odd_line(b"a\0d\0").unwrap().contains("NUL"));
/// ```
pub fn odd_line(line: &[u8]) -> Option<&'static str> {
    if line.contains(&0) {
        Some("it has a NUL byte, as binary files and UTF-16 do; write UTF-8 text")
    } else if line.contains(&b'\r') {
        Some("it has a carriage return inside; end every line with a line feed")
    } else {
        None
    }
}
