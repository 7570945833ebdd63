//! A batch read of a store of values: `kith get`, `kith mget` and the operation `mget` of request lines.

use crate::error::LineError;
use crate::options::{HedgeName, WorkflowName, fan_out_field};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use clap::{Args, ValueEnum};
use kith_api::{BatchKeys, QueryOptions};
use kith_routing::FanOutLimits;
use kith_schema::KeyType;
use kith_types::{ByteKeys, ErrorCode};
use serde::Deserialize;
use serde_json::Value;
use std::{num::NonZeroU32, time::Duration};

/// The operation's name in request lines.
pub const MGET: &str = "mget";

/// A request about keys of a store: the fields of its operation, and its options.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreLine<F> {
    /// The store, the keys, and what is asked about them.
    pub fields: F,
    /// The options of the request.
    pub options: ReadOptions,
}

/// The fields of the operation. Their names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchFields {
    /// The store to ask.
    pub store: String,
    /// Numbers or texts, as the store's keys are.
    pub keys: Vec<Value>,
    /// How keys of strings or bytes are written.
    #[serde(default)]
    pub key_encoding: Option<KeyEncoding>,
}

/// How keys of strings or bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyEncoding {
    /// As plain text
    Text,
    /// Base64
    Base64,
}

/// Options of any read of a store. Field names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, Default, PartialEq, Args, Deserialize)]
#[command(next_help_heading = "Query options")]
#[serde(deny_unknown_fields)]
pub struct ReadOptions {
    /// Who waits for the answer
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub workflow: WorkflowName,
    /// How many replica groups may take part: min, max, auto or groups=N; for rounds of one kind KIND=LIMIT, such as
    /// non-union=max; separate several with commas
    #[arg(long, value_name = "LIMITS", default_value = "auto")]
    #[serde(default, deserialize_with = "fan_out_field")]
    pub fan_out: FanOutLimits,
    /// The replica policy, such as `n-groups` [default: the router's]
    #[arg(long)]
    #[serde(default)]
    pub policy: Option<String>,
    /// When to send a late request to another node as well [default: the router's]
    #[arg(long, value_enum)]
    #[serde(default)]
    pub hedge: Option<HedgeName>,
    /// Milliseconds that the answer may take [default: the router's]
    #[arg(long, value_name = "MS")]
    #[serde(default)]
    pub deadline_ms: Option<NonZeroU32>,
    /// Show which node got which keys and how long each request took
    #[arg(long)]
    #[serde(default)]
    pub profile: bool,
    /// Accept an answer that lacks keys
    #[arg(long)]
    #[serde(default)]
    pub partial: bool,
}

impl ReadOptions {
    /// Converts the options to those of the client library.
    pub fn query_options(&self) -> QueryOptions {
        QueryOptions {
            fan_out: self.fan_out,
            policy: self.policy.clone(),
            hedging: self.hedge.map(HedgeName::inner),
            deadline: self.deadline_ms.map(|ms| Duration::from_millis(ms.get().into())),
            profile: self.profile,
            partial: self.partial,
            workflow: self.workflow.inner(),
            ..QueryOptions::default()
        }
    }
}

impl BatchFields {
    /// Converts the keys to the key type `key` of a store.
    ///
    /// # Errors
    /// `wrong_key_type`, with the position of the key that is not of this type.
    pub fn keys(&self, key: KeyType) -> Result<BatchKeys, LineError> {
        batch_keys(&self.store, &self.keys, self.key_encoding, key)
    }
}

/// The most characters of a key that a message shows.
const KEY_CHARACTERS_SHOWN: usize = 80;

/// Converts the keys to the key type `key` of `store`.
///
/// # Errors
/// `wrong_key_type`, with the position of the key that is not of this type.
pub fn batch_keys(
    store: &str,
    keys: &[Value],
    encoding: Option<KeyEncoding>,
    key: KeyType,
) -> Result<BatchKeys, LineError> {
    let wrong = |place: usize, why: &str| {
        let mut shown: String = keys[place].to_string();
        if let Some((cut, _)) = shown.char_indices().nth(KEY_CHARACTERS_SHOWN) {
            shown.truncate(cut);
            shown.push('…');
        }
        let message = format!("key {shown} (number {}) cannot be one of store {store:?}: {why}", place + 1);
        let help = "ids are numbers, strings are text, bytes are base64 (docs/queries.md)";
        LineError::new(ErrorCode::WrongKeyType, message, help)
    };
    let keys = keys.iter().enumerate();
    if key == KeyType::Id {
        let id = |(place, key): (usize, &Value)| {
            let id = key.as_u64().or_else(|| key.as_str()?.parse().ok());
            id.ok_or_else(|| wrong(place, "its keys are whole numbers from 0 to 18446744073709551615"))
        };
        return Ok(BatchKeys::Ids(keys.map(id).collect::<Result<_, _>>()?));
    }
    let usual = if key == KeyType::Bytes { KeyEncoding::Base64 } else { KeyEncoding::Text };
    let mut batch = ByteKeys::default();
    for (place, key) in keys {
        let text = key.as_str().ok_or_else(|| wrong(place, "its keys are text"))?;
        match encoding.unwrap_or(usual) {
            KeyEncoding::Text => batch.push(text.as_bytes()),
            KeyEncoding::Base64 => {
                let bytes = BASE64.decode(text).map_err(|error| wrong(place, &format!("base64: {error}")))?;
                batch.push(&bytes);
            }
        }
    }
    Ok(BatchKeys::Bytes(batch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(keys: Value, key: KeyType, key_encoding: Option<KeyEncoding>) -> Result<BatchKeys, String> {
        let keys = keys.as_array().unwrap().clone();
        let asked = BatchFields { store: "s".to_owned(), keys, key_encoding };
        asked.keys(key).map_err(|failure| failure.message)
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
    fn the_place_of_a_wrong_key_is_told() {
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
