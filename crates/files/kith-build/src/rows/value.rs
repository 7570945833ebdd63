//! Encodes values that are a text or a byte string.

use crate::rows::fault::RowFault;
use crate::rows::limits::JSON_DEPTH_MAX;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kith_schema::VALUE_BYTES_MAX;
use serde_json::value::RawValue;

/// Writes `json` without the white space between its parts. Everything else, such as the digits of numbers, stays as it is
/// written. `json` must be valid.
pub(crate) fn put_compact(json: &str, out: &mut Vec<u8>) {
    out.clear();
    let bytes = json.as_bytes();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = after_string(bytes, at),
            b' ' | b'\t' | b'\n' | b'\r' => {
                out.extend_from_slice(&bytes[start..at]);
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    out.extend_from_slice(&bytes[start..]);
}

/// The offset after the string that begins at `at`.
fn after_string(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while at < bytes.len() {
        match memchr::memchr2(b'"', b'\\', &bytes[at..]) {
            Some(found) if bytes[at + found] == b'"' => return at + found + 1,
            Some(found) => at += found + 2,
            None => break,
        }
    }
    bytes.len()
}

/// Refuses JSON in which lists and objects are nested deeper than [`JSON_DEPTH_MAX`]. Text that is not JSON passes.
pub(crate) fn check_depth(text: &str) -> Result<(), RowFault> {
    let (bytes, mut at, mut depth) = (text.as_bytes(), 0, 0_usize);
    // A text with deeper nesting, closed again, would be longer.
    if bytes.len() <= 2 * JSON_DEPTH_MAX {
        return Ok(());
    }
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = after_string(bytes, at);
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if JSON_DEPTH_MAX < depth {
            return Err(RowFault::TooDeep);
        }
        at += 1;
    }
    Ok(())
}

/// Writes text, which must be JSON, in compact form.
pub(crate) fn put_json(text: &str, out: &mut Vec<u8>) -> Result<(), RowFault> {
    check_depth(text)?;
    serde_json::from_str::<&RawValue>(text).map_err(|error| json_fault(&error))?;
    put_compact(text, out);
    Ok(())
}

/// Decodes base64 text.
pub(crate) fn put_base64(text: &str, out: &mut Vec<u8>) -> Result<(), RowFault> {
    out.clear();
    STANDARD.decode_vec(text, out).map_err(|_| RowFault::NotBase64 { what: "value" })
}

pub(crate) fn check_size(value: &[u8]) -> Result<(), RowFault> {
    match value.len() {
        bytes if VALUE_BYTES_MAX < bytes => Err(RowFault::ValueTooLarge { bytes }),
        _ => Ok(()),
    }
}

pub(crate) fn json_fault(error: &serde_json::Error) -> RowFault {
    let detail = error.to_string();
    let detail = detail.split(" at line ").next().unwrap_or_default().to_owned();
    RowFault::Json { detail, column: error.column() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_json_keeps_its_spelling() {
        let mut out = Vec::new();
        let text = "{ \"a b\" : [ 1.50 , 18446744073709551616 ,\t-0 ] , \"q\\\" \\\\\" : \" x \" }\r\n";
        put_json(text, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"a b\":[1.50,18446744073709551616,-0],\"q\\\" \\\\\":\" x \"}"
        );
        assert!(matches!(put_json("{\"a\":}", &mut Vec::new()), Err(RowFault::Json { .. })));
    }
}
