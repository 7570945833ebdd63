//! Requests about keys of a store of values, for `kith get`, `kith mget` and the operation `mget` of request lines.

use crate::{
    BatchKeys,
    line::{error::LineError, options::ReadOptions},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use clap::ValueEnum;
use kith_schema::KeyType;
use kith_types::{ByteKeys, ErrorCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the operation in request lines.
pub const MGET: &str = "mget";

/// A request about keys of a store: the keys, the fields of its operation, and its options.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreLine<F> {
    /// The store and the keys.
    pub keys: StoreKeys,
    /// The fields of the operation.
    pub fields: F,
    /// The options of the request.
    pub options: ReadOptions,
}

/// Keys of a store. Field names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreKeys {
    /// The store to ask.
    pub store: String,
    /// The keys: numbers or texts, according to the key type of the store.
    pub keys: Vec<Value>,
    /// The encoding of keys of strings or bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_encoding: Option<KeyEncoding>,
}

/// The fields of a batch read, which asks for the values and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchFields {}

/// The encoding of keys of strings or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyEncoding {
    /// As plain text
    Text,
    /// Base64
    Base64,
}

impl StoreKeys {
    /// Converts the keys of a batch. Byte keys are written as text if all of them are text, else in base64.
    pub fn of(store: &str, keys: &BatchKeys) -> Self {
        let (keys, key_encoding) = match keys {
            BatchKeys::Ids(ids) => (ids.iter().copied().map(Value::from).collect(), None),
            BatchKeys::Bytes(keys) => {
                match keys.iter().map(std::str::from_utf8).collect::<Result<Vec<_>, _>>() {
                    Ok(text) => (text.into_iter().map(Value::from).collect(), Some(KeyEncoding::Text)),
                    Err(_) => {
                        let keys = keys.iter().map(|key| Value::from(BASE64.encode(key)));
                        (keys.collect(), Some(KeyEncoding::Base64))
                    }
                }
            }
        };
        Self { store: store.to_owned(), keys, key_encoding }
    }

    /// Converts the keys to the key type `key` of the store.
    ///
    /// # Errors
    /// `wrong_key_type`, with the position of the key that is not of this type.
    pub fn of_type(&self, key: KeyType) -> Result<BatchKeys, LineError> {
        let keys = self.keys.iter().enumerate();
        if key == KeyType::Id {
            let id = |(index, key): (usize, &Value)| {
                let id = key.as_u64().or_else(|| key.as_str()?.parse().ok());
                id.ok_or_else(|| {
                    self.wrong(index, "its keys are whole numbers from 0 to 18446744073709551615")
                })
            };
            return Ok(BatchKeys::Ids(keys.map(id).collect::<Result<_, _>>()?));
        }
        let usual = if key == KeyType::Bytes { KeyEncoding::Base64 } else { KeyEncoding::Text };
        let mut batch = ByteKeys::default();
        for (index, key) in keys {
            let text = key.as_str().ok_or_else(|| self.wrong(index, "its keys are text"))?;
            match self.key_encoding.unwrap_or(usual) {
                KeyEncoding::Text => batch.push(text.as_bytes()),
                KeyEncoding::Base64 => {
                    let bytes = BASE64.decode(text);
                    let bytes = bytes.map_err(|error| self.wrong(index, &format!("base64: {error}")))?;
                    batch.push(&bytes);
                }
            }
        }
        Ok(BatchKeys::Bytes(batch))
    }

    fn wrong(&self, index: usize, why: &str) -> LineError {
        let mut shown = self.keys[index].to_string();
        if let Some((cut, _)) = shown.char_indices().nth(KEY_CHARACTERS_SHOWN) {
            shown.truncate(cut);
            shown.push('…');
        }
        let (number, store) = (index + 1, &self.store);
        let message = format!("key {shown} (number {number}) cannot be one of store {store:?}: {why}");
        let help = "ids are numbers, strings are text, bytes are base64 (docs/queries.md)";
        LineError::new(ErrorCode::WrongKeyType, message, help)
    }
}

/// The maximum number of characters of a key that a message shows.
const KEY_CHARACTERS_SHOWN: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(keys: Value, key: KeyType, key_encoding: Option<KeyEncoding>) -> Result<BatchKeys, String> {
        let keys = keys.as_array().unwrap().clone();
        let asked = StoreKeys { store: "s".to_owned(), keys, key_encoding };
        asked.of_type(key).map_err(|failure| failure.message)
    }

    #[test]
    fn keys_are_read_as_the_store_has_them() {
        let ids = keys(json!([u64::MAX, "7"]), KeyType::Id, None);
        assert_eq!(ids, Ok(BatchKeys::Ids(vec![u64::MAX, 7])));
        let bytes = |keys: &[&[u8]]| Ok(BatchKeys::Bytes(keys.iter().collect()));
        assert_eq!(keys(json!(["", "AP8="]), KeyType::String, None), bytes(&[b"", b"AP8="]));
        assert_eq!(keys(json!(["", "AP8="]), KeyType::Bytes, None), bytes(&[b"", &[0, 255]]));
        let base64 = Some(KeyEncoding::Base64);
        assert_eq!(keys(json!(["AP8="]), KeyType::String, base64), bytes(&[&[0, 255]]));
        assert_eq!(keys(json!(["k"]), KeyType::Bytes, Some(KeyEncoding::Text)), bytes(&[b"k"]));
    }

    #[test]
    fn the_index_of_a_wrong_key_is_reported() {
        for (given, key) in [
            (json!([1, -2]), KeyType::Id),
            (json!([1, 1.5]), KeyType::Id),
            (json!(["1", "18446744073709551616"]), KeyType::Id),
            (json!(["1", null]), KeyType::Id),
            (json!(["a", 1]), KeyType::String),
            (json!(["AP8=", "?"]), KeyType::Bytes),
        ] {
            let message = keys(given, key, None).unwrap_err();
            assert!(message.contains(" (number 2) cannot be one of store \"s\": "), "{message}");
        }
    }
}
