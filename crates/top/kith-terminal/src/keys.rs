//! Reads keys from files with one key per line.

use crate::failure::Failure;
use kith_types::ErrorCode;
use serde_json::Value;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

/// The maximum length of a line: the longest key in base64, and the end of the line.
const LINE_BYTES_MAX: usize = kith_schema::KEY_BYTES_MAX.div_ceil(3) * 4 + 2;

/// Reads the keys of a file, one per line; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, if a line is longer than any key or is not text, or if there are more than `most` keys.
pub fn read_keys(path: &Path, most: usize) -> anyhow::Result<Vec<Value>> {
    let unreadable = |error: io::Error| {
        let message = format!("cannot read keys from {}: {error}", path.display());
        Failure::new(
            ErrorCode::InputUnreadable,
            message,
            "check the path and its permissions; `-` reads standard input",
        )
    };
    if path.as_os_str() == "-" {
        return keys_of(io::stdin().lock(), most, unreadable);
    }
    keys_of(BufReader::new(File::open(path).map_err(unreadable)?), most, unreadable)
}

/// Reads the lines without their ends. Fails as soon as there are more than `most`.
fn keys_of(
    mut input: impl BufRead,
    most: usize,
    unreadable: impl Fn(io::Error) -> Failure,
) -> anyhow::Result<Vec<Value>> {
    let mut keys = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        if read.map_err(&unreadable)? == 0 {
            return Ok(keys);
        }
        let number = keys.len() + 1;
        if number == 1 {
            let mark = kith_types::byte_order_mark(&line)
                .map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error)))?;
            line.drain(..mark);
        }
        if most < number {
            let message = format!("there are more than {most} keys");
            return Err(Failure::new(
                ErrorCode::OutOfRange,
                message,
                "ask in several batches, or with `kith run`",
            )
            .into());
        }
        if LINE_BYTES_MAX < line.len() {
            let message = format!("line {number} is longer than any key");
            return Err(Failure::new(ErrorCode::OutOfRange, message, "write one key per line").into());
        }
        if line.pop_if(|byte| *byte == b'\n').is_some() {
            line.pop_if(|byte| *byte == b'\r');
        }
        if let Some(why) = kith_types::odd_line(&line) {
            let help = "ask for keys with such characters with `kith run`, in JSON";
            return Err(Failure::new(ErrorCode::BadRequest, format!("line {number}: {why}"), help).into());
        }
        let key = String::from_utf8(line).map_err(|_| {
            let help = "write keys that are not text in base64, with --key-encoding base64";
            Failure::new(ErrorCode::BadRequest, format!("line {number} is not UTF-8 text"), help)
        })?;
        keys.push(Value::from(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_query::BATCH_KEYS_MAX;

    fn keys(input: &[u8]) -> Result<Vec<Value>, String> {
        let unreadable = |error: io::Error| Failure::usage(error.to_string(), "");
        keys_of(input, BATCH_KEYS_MAX, unreadable).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn each_line_is_a_key_an_empty_one_too() {
        assert_eq!(keys(b"a\n\nb c \r\nd"), Ok(["a", "", "b c ", "d"].map(Value::from).to_vec()));
        assert_eq!(keys(b""), Ok(vec![]));
        assert_eq!(keys(b"\xef\xbb\xbfa\nb"), Ok(["a", "b"].map(Value::from).to_vec()));
        assert!(keys(b"\xff\xfea\0").unwrap_err().contains("UTF-16"));
        assert!(keys(b"a\n\xff\n").unwrap_err().contains("line 2"));
        assert!(keys(b"a\n\rb\rc").unwrap_err().contains("line 2: it has a carriage return"));
        assert!(keys(b"a\0b\0\n").unwrap_err().contains("NUL"));
        assert!(keys(&vec![b'x'; LINE_BYTES_MAX + 1]).unwrap_err().contains("line 1"));
        assert!(keys(&b"\n".repeat(BATCH_KEYS_MAX + 1)).unwrap_err().contains("more than"));
        assert_eq!(keys(&b"\n".repeat(BATCH_KEYS_MAX)).map(|keys| keys.len()), Ok(BATCH_KEYS_MAX));
    }
}
