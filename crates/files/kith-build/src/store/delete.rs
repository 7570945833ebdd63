//! Deletes keys from one version to the next.

use super::inputs::files;
use crate::failure::{Failure, build};
use crate::rows::{KeyType, RowSource};
use base64::{Engine, engine::general_purpose::STANDARD};
use kith_files::{DeltaBuilder, ValuesBuildError};
use kith_types::ErrorCode;
use std::io::{BufRead, BufReader};

/// The longest line: the longest key in base64, with its line end.
const LINE_BYTES_MAX: u64 = 96 * 1024;
/// The number of characters of a key that a message shows.
const KEY_CHARACTERS_SHOWN: usize = 80;

/// Deletes the keys in a file or object. Returns the number of lines. For a folder, a pattern or a prefix of objects, all
/// files in it are read.
///
/// # Errors
/// `bad_rows` with the line that is not a key; `bad_input` if it cannot be read; the errors of the builder.
pub(super) fn delete(named: &str, key: KeyType, builder: &mut DeltaBuilder) -> Result<u64, Failure> {
    let files = files(&[named.to_owned()])?;
    files.iter().try_fold(0, |sum, file| Ok(sum + delete_all(&**file, key, builder)?))
}

fn delete_all(file: &dyn RowSource, key: KeyType, builder: &mut DeltaBuilder) -> Result<u64, Failure> {
    let unreadable = |error: std::io::Error| {
        let message = format!("{} cannot be read: {error}", file.name());
        Failure::new(ErrorCode::BadInput, message, "check the path and its permissions")
    };
    let mut lines = BufReader::new(file.open().map_err(unreadable)?);
    let (mut number, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let mut bounded = std::io::Read::take(&mut lines, LINE_BYTES_MAX);
        if bounded.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            return Ok(number);
        }
        number += 1;
        if number == 1 {
            let mark = kith_types::byte_order_mark(&line)
                .map_err(|error| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))?;
            line.drain(..mark);
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let odd = kith_types::odd_line(text).map(str::to_owned);
        let bytes = odd.map_or_else(|| key_bytes(key, text), Err).map_err(|why| {
            let message = format!("{} line {number}: {why}", file.name());
            Failure::new(ErrorCode::BadRows, message, "give one key a line, and nothing else")
        })?;
        builder.delete(&bytes).map_err(|error: ValuesBuildError| build(&error))?;
    }
}

fn key_bytes(key: KeyType, line: &[u8]) -> Result<Vec<u8>, String> {
    let cut = |text: &str| text.chars().take(KEY_CHARACTERS_SHOWN).collect::<String>();
    let no_id = |text: &str| format!("{:?} is no whole number from 0 to {}", cut(text), u64::MAX);
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8 text".to_owned())?;
    match key {
        _ if text.is_empty() => Err("it is empty".to_owned()),
        KeyType::Id if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map(|id: u64| id.to_le_bytes().to_vec()).map_err(|_| no_id(text))
        }
        KeyType::Id => Err(no_id(text)),
        KeyType::String => Ok(line.to_vec()),
        KeyType::Bytes => STANDARD.decode(text).map_err(|_| format!("{:?} is not base64 text", cut(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_key_as_the_store_has_them() {
        assert_eq!(key_bytes(KeyType::Id, b"258"), Ok(vec![2, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!(key_bytes(KeyType::String, "é 1".as_bytes()), Ok("é 1".as_bytes().to_vec()));
        assert_eq!(key_bytes(KeyType::Bytes, b"AP8="), Ok(vec![0, 255]));
        for (key, line) in [
            (KeyType::Id, &b"-1"[..]),
            (KeyType::Id, b"+1"),
            (KeyType::Id, b"18446744073709551616"),
            (KeyType::String, b""),
            (KeyType::String, b"\xff"),
            (KeyType::Bytes, b"?"),
        ] {
            assert!(key_bytes(key, line).is_err(), "{line:?}");
        }
        let error = key_bytes(KeyType::Id, b"7x").unwrap_err();
        assert_eq!(error, "\"7x\" is no whole number from 0 to 18446744073709551615");
    }
}
