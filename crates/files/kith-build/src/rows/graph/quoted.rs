//! Splits records with quotes, by the rules of RFC 4180.

use memchr::memchr;
use std::ops::Range;

/// Removes the line end of a line.
pub(super) fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Why a record with quotes cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitFault {
    /// The bytes end before the record does.
    More,
    /// A closing quote is followed by more text.
    TextAfterQuote,
}

/// Splits the record at the front of `bytes`. Returns its length with the line end. The text of the fields goes to `text`.
pub(super) fn split_quoted(
    bytes: &[u8],
    delimiter: u8,
    at_end: bool,
    fields: &mut Vec<Range<usize>>,
    text: &mut Vec<u8>,
) -> Result<usize, SplitFault> {
    let mut at = 0;
    loop {
        let start = text.len();
        if bytes.get(at) == Some(&b'"') {
            at = take_quoted(bytes, at + 1, text)?;
        } else {
            let end = bytes[at..].iter().position(|&byte| byte == delimiter || byte == b'\n');
            let end = end.map_or(bytes.len(), |end| at + end);
            let is_last = bytes.get(end).is_none_or(|&byte| byte == b'\n');
            let field = &bytes[at..end];
            text.extend_from_slice(if is_last { trim_end(field) } else { field });
            at = end;
        }
        fields.push(start..text.len());
        match &bytes[at..] {
            [] | [b'\r'] if at_end => return Ok(bytes.len()),
            [] | [b'\r'] => return Err(SplitFault::More),
            [b'\n', ..] => return Ok(at + 1),
            [b'\r', b'\n', ..] => return Ok(at + 2),
            [next, ..] if *next == delimiter => at += 1,
            _ => return Err(SplitFault::TextAfterQuote),
        }
    }
}

/// Unescapes the quoted field whose text begins at `at`. Returns the offset after its closing quote.
fn take_quoted(bytes: &[u8], mut at: usize, text: &mut Vec<u8>) -> Result<usize, SplitFault> {
    loop {
        let quote = memchr(b'"', &bytes[at..]).ok_or(SplitFault::More)?;
        text.extend_from_slice(&bytes[at..at + quote]);
        at += quote + 1;
        if bytes.get(at) != Some(&b'"') {
            return Ok(at);
        }
        text.push(b'"');
        at += 1;
    }
}
