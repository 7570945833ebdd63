//! Encodes the keys of rows.

use crate::rows::fault::{RowFault, excerpt};
use crate::rows::id::{NotAnId, parse_id};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kith_schema::{KEY_BYTES_MAX, KeyType};

/// A key as a row contains it.
#[derive(Clone, Copy)]
pub(crate) enum RawKey<'a> {
    /// A text from a text format or a text column.
    Text(&'a str),
    /// A number as written in JSON.
    Number(&'a str),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bytes(&'a [u8]),
    /// Anything else, described for messages.
    Other(&'static str),
}

/// Encodes the key into `out`, which is cleared first. `from_text` means that the row comes from a text format, in which
/// bytes are base64.
pub(crate) fn put_key(
    key_type: KeyType,
    key: RawKey<'_>,
    name: &str,
    from_text: bool,
    out: &mut Vec<u8>,
) -> Result<(), RowFault> {
    out.clear();
    match key_type {
        KeyType::Id => out.extend_from_slice(&id(key, name)?.to_le_bytes()),
        KeyType::String => match key {
            RawKey::Text(text) => out.extend_from_slice(text.as_bytes()),
            other => return Err(RowFault::KeyType { expected: "text", got: kind(other) }),
        },
        KeyType::Bytes => match key {
            RawKey::Bytes(bytes) => out.extend_from_slice(bytes),
            RawKey::Text(text) if from_text => {
                STANDARD.decode_vec(text, out).map_err(|_| RowFault::NotBase64 { what: "key" })?;
            }
            RawKey::Text(text) => out.extend_from_slice(text.as_bytes()),
            other => return Err(RowFault::KeyType { expected: "bytes", got: kind(other) }),
        },
    }
    match out.len() {
        0 => Err(RowFault::NoKey { name: name.to_owned() }),
        bytes if KEY_BYTES_MAX < bytes => Err(RowFault::KeyTooLong { bytes }),
        _ => Ok(()),
    }
}

fn kind(key: RawKey<'_>) -> &'static str {
    match key {
        RawKey::Text(_) => "text",
        RawKey::Number(_) | RawKey::Unsigned(_) | RawKey::Signed(_) | RawKey::Float(_) => "a number",
        RawKey::Bytes(_) => "bytes",
        RawKey::Other(kind) => kind,
    }
}

fn id(key: RawKey<'_>, name: &str) -> Result<u64, RowFault> {
    match key {
        RawKey::Unsigned(id) => Ok(id),
        RawKey::Signed(id) => {
            u64::try_from(id).map_err(|_| RowFault::NotAnId { key: id.to_string(), why: NEGATIVE })
        }
        RawKey::Float(float) => {
            Err(RowFault::NotAnId { key: format!("{float:?}"), why: "its column holds floating numbers" })
        }
        RawKey::Text("") => Err(RowFault::NoKey { name: name.to_owned() }),
        RawKey::Text(text) | RawKey::Number(text) => {
            spelled_id(text).map_err(|why| RowFault::NotAnId { key: excerpt(text), why })
        }
        RawKey::Bytes(_) | RawKey::Other(_) => Err(RowFault::KeyType { expected: "ids", got: kind(key) }),
    }
}

const NEGATIVE: &str = "ids are not negative";

fn spelled_id(text: &str) -> Result<u64, &'static str> {
    parse_id(text.as_bytes()).map_err(|fault| match fault {
        NotAnId::TooLarge => "it is above 18446744073709551615",
        NotAnId::Negative => NEGATIVE,
        NotAnId::Empty | NotAnId::NotANumber if text.parse::<f64>().is_ok() => "ids are whole numbers",
        NotAnId::Empty | NotAnId::NotANumber => "it is not a number",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key_type: KeyType, key: RawKey<'_>) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        put_key(key_type, key, "key", true, &mut out).map(|()| out).map_err(|fault| fault.to_string())
    }

    #[test]
    fn any_u64_is_an_id_and_nothing_else_is() {
        assert_eq!(put(KeyType::Id, RawKey::Text("18446744073709551615")), Ok(vec![0xff; 8]));
        assert_eq!(put(KeyType::Id, RawKey::Unsigned(258)), Ok(vec![2, 1, 0, 0, 0, 0, 0, 0]));
        let refusal = |key| put(KeyType::Id, key).unwrap_err();
        assert_eq!(refusal(RawKey::Text("-1")), "key \"-1\" is no id: ids are not negative");
        assert_eq!(refusal(RawKey::Signed(-1)), "key -1 is no id: ids are not negative");
        assert_eq!(refusal(RawKey::Number("1.5")), "key \"1.5\" is no id: ids are whole numbers");
        assert_eq!(refusal(RawKey::Text("x")), "key \"x\" is no id: it is not a number");
        assert_eq!(refusal(RawKey::Text(" 1")), "key \" 1\" is no id: it is not a number");
        assert!(refusal(RawKey::Text("18446744073709551616")).contains("above"));
        assert!(refusal(RawKey::Float(1.0)).contains("floating"));
        assert!(refusal(RawKey::Text("")).contains("no key"));
        assert!(refusal(RawKey::Other("a list")).contains("a list"));
    }

    #[test]
    fn other_keys_are_bounded_and_never_empty() {
        assert_eq!(put(KeyType::String, RawKey::Text("a\0b")), Ok(b"a\0b".to_vec()));
        assert_eq!(put(KeyType::Bytes, RawKey::Text("AP8=")), Ok(vec![0, 255]));
        assert!(put(KeyType::Bytes, RawKey::Text("?")).unwrap_err().contains("base64"));
        assert!(put(KeyType::String, RawKey::Text("")).unwrap_err().contains("no key"));
        assert!(put(KeyType::String, RawKey::Number("1")).unwrap_err().contains("a number"));
        let long = "x".repeat(KEY_BYTES_MAX + 1);
        assert!(put(KeyType::String, RawKey::Text(&long)).unwrap_err().contains("65537 bytes"));
        assert!(put(KeyType::String, RawKey::Text(&long[1..])).is_ok());
    }
}
