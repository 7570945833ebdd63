//! The answers of batch reads as JSON. Like the other answers, they are a contract (`docs/queries.md`).

use super::ProfileReply;
use crate::{
    failure::{ErrorReport, Failure},
    ids,
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use kith_client::{BatchAnswer, BatchKeys, QueryError};
use kith_operators::{Record, RecordError};
use kith_schema::{RecordError as RecordFault, RecordView, Schema, ValueType};
use kith_types::ErrorCode;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

const FOUND: &str = "FOUND";
const ABSENT: &str = "ABSENT";
const ERROR: &str = "ERROR";
const UNANSWERED: &str = "UNANSWERED";

/// The result for one key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyReply {
    #[serde(serialize_with = "ids::key")]
    pub key: Value,
    pub state: &'static str,
    #[serde(flatten)]
    pub value: ValueReply,
    /// The reason, if the key failed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// A value, in a member whose name tells its encoding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ValueReply {
    /// Text, or JSON as text.
    Text { value: Option<String> },
    /// Bytes, or a record. `value` is the record as JSON; it is null for bytes and for a record without a schema.
    Bytes {
        value: Option<Json>,
        value_base64: Option<Base64>,
        /// The record as people read it, if that differs from `value`: its times are dates.
        #[serde(skip)]
        dated: Option<String>,
    },
}

/// JSON text that is written unchanged.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// Bytes in base64, as a text of JSON. Such a text has nothing to escape, and looking for it would take most of the time of a
/// large answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Base64(Json);

/// The type of the values of an answer.
pub struct Values<'a> {
    pub store: &'a str,
    pub value: ValueType,
    /// For records: the schema with which the version that answered was written.
    pub schema: Option<&'a Schema>,
}

/// The number of keys in each state, and the versions that answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Footer {
    pub found: u64,
    pub absent: u64,
    pub error: u64,
    pub unanswered: u64,
    pub versions: Vec<u64>,
}

/// The last line of `kith mget`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FooterLine {
    pub footer: Footer,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReply>,
}

/// The answer to a batch read in a line of `kith run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BatchReply {
    pub results: Vec<KeyReply>,
    #[serde(flatten)]
    pub last: FooterLine,
}

impl FooterLine {
    /// Whether every key is found or absent.
    pub fn is_complete(&self) -> bool {
        self.footer.error == 0 && self.footer.unanswered == 0
    }
}

impl Json {
    /// Wraps JSON text.
    ///
    /// # Panics
    /// If the text is not JSON.
    pub fn of(text: String) -> Self {
        Json(RawValue::from_string(text).expect("the text is JSON"))
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl Base64 {
    fn of(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4 + 2);
        text.push('"');
        BASE64.encode_string(bytes, &mut text);
        text.push('"');
        Self(Json::of(text))
    }

    /// Returns the text without its quotes.
    fn text(&self) -> &str {
        self.0.text().trim_matches('"')
    }
}

impl BatchReply {
    /// Returns the answer for the keys `given`, which were parsed to `keys`, of a store with these values.
    pub fn new(values: &Values<'_>, given: &[Value], keys: &BatchKeys, answer: &BatchAnswer) -> Self {
        let name = |index: usize| key_name(keys, given, index);
        let records = answer.records.iter().enumerate();
        let results: Vec<_> =
            records.map(|(index, record)| KeyReply::new(values, name(index), record)).collect();
        let count = |state| results.iter().filter(|key| key.state == state).count() as u64;
        let footer = Footer {
            found: count(FOUND),
            absent: count(ABSENT),
            error: count(ERROR),
            unanswered: count(UNANSWERED),
            versions: answer.served.iter().map(|(_, version)| *version).collect(),
        };
        let profile = answer.profile.as_ref().map(ProfileReply::from);
        Self { results, last: FooterLine { footer, profile } }
    }
}

/// Returns a key as answers name it: an id as a number, other keys as they were given.
pub fn key_name(keys: &BatchKeys, given: &[Value], index: usize) -> Value {
    match keys {
        BatchKeys::Ids(ids) => Value::from(ids[index]),
        BatchKeys::Bytes(_) => given[index].clone(),
    }
}

impl KeyReply {
    /// Returns the result for `key`.
    pub fn new(values: &Values<'_>, key: Value, record: Record<'_>) -> Self {
        let state = state_of(record);
        let (bytes, error) = match record {
            Record::Found(bytes) => (Some(bytes), None),
            Record::Error(error) => (None, Some(why(values.store, error))),
            Record::Absent | Record::Unanswered | Record::Unsent => (None, None),
        };
        match ValueReply::new(bytes, values) {
            Ok(value) => Self { key, state, value, error: error.map(ErrorReport::from) },
            // The checksum matches, so the record was already damaged when it was built, and no replica has a better copy.
            Err(fault) => {
                let detail = fault.to_string();
                let error = Failure::from(&QueryError::Damaged { store: values.store.to_owned(), detail });
                let value = ValueReply::Bytes { value: None, value_base64: None, dated: None };
                Self { key, state: ERROR, value, error: Some(error.into()) }
            }
        }
    }
}

impl ValueReply {
    /// Text that is not valid UTF-8, which no build accepts, is shown as bytes.
    fn new(bytes: Option<&[u8]>, values: &Values<'_>) -> Result<Self, RecordFault> {
        let text = match values.value {
            ValueType::Text | ValueType::Json => bytes.map(std::str::from_utf8).transpose().ok(),
            ValueType::Bytes | ValueType::Record => None,
        };
        if let Some(text) = text {
            return Ok(ValueReply::Text { value: text.map(str::to_owned) });
        }
        let (value, dated) = match (bytes, values.schema) {
            (Some(bytes), Some(schema)) => {
                let record = RecordView::new(schema, bytes)?;
                let (json, dated) = (record.to_json()?, record.to_dated_json()?);
                let dated = Some(dated).filter(|dated| *dated != json);
                (Some(Json::of(json)), dated)
            }
            _ => (None, None),
        };
        Ok(ValueReply::Bytes { value, value_base64: bytes.map(Base64::of), dated })
    }

    /// Returns the value as people read it: a record as JSON whose times are dates, bytes in base64.
    pub fn text(&self) -> Option<&str> {
        match self {
            ValueReply::Text { value } => value.as_deref(),
            ValueReply::Bytes { value_base64, dated, .. } => {
                dated.as_deref().or(self.json()).or(value_base64.as_ref().map(Base64::text))
            }
        }
    }

    /// Returns a record as JSON.
    pub fn json(&self) -> Option<&str> {
        match self {
            ValueReply::Bytes { value: Some(json), .. } => Some(json.0.get()),
            ValueReply::Bytes { value: None, .. } | ValueReply::Text { .. } => None,
        }
    }
}

/// Returns the reason why a key in this state is neither found nor absent.
pub fn reason<'a>(state: &str, error: Option<&'a ErrorReport>) -> Option<&'a str> {
    let unanswered = (state == UNANSWERED).then_some("no replica of its partition answered in time");
    error.map(ErrorReport::message).or(unanswered)
}

/// Returns the name of the state of a record.
pub(super) fn state_of(record: Record<'_>) -> &'static str {
    match record {
        Record::Found(_) | Record::Unsent => FOUND,
        Record::Absent => ABSENT,
        Record::Error(_) => ERROR,
        Record::Unanswered => UNANSWERED,
    }
}

pub(super) fn why(store: &str, error: RecordError) -> Failure {
    match error {
        RecordError::Damaged => {
            let detail = "its checksum does not match".to_owned();
            Failure::from(&QueryError::Damaged { store: store.to_owned(), detail })
        }
        RecordError::Disagreeing => {
            Failure::from(&QueryError::Disagreement { store: store.to_owned(), keys: 1 })
        }
        RecordError::Unsuitable | RecordError::Dimensions(_) => Failure::new(
            ErrorCode::BadRequest,
            "the requested computation does not apply to this value",
            "see docs/queries.md",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_operators::{Records, RecordsOver};
    use serde_json::json;

    fn answer() -> BatchAnswer {
        let mut records = RecordsOver::new(4, bytes::Bytes::from_static(b"v\xff"));
        assert!(records.found(1));
        assert!(records.found(1));
        records.absent();
        records.error(RecordError::Damaged);
        let mut all = Records::unanswered(5);
        all.place(&[0, 1, 2, 3], records.finish().unwrap());
        BatchAnswer {
            records: all,
            missing_partitions: vec![],
            served: vec![("s".to_owned(), 7)],
            profile: None,
            schema: None,
        }
    }

    fn values(value: ValueType) -> Values<'static> {
        Values { store: "s", value, schema: None }
    }

    #[test]
    fn every_state_has_its_shape() {
        let given: Vec<Value> = ["a", "b", "c", "d", "e"].map(Value::from).to_vec();
        let keys = BatchKeys::Bytes(["a", "b", "c", "d", "e"].iter().collect());
        let reply = BatchReply::new(&values(ValueType::Text), &given, &keys, &answer());
        let lines = serde_json::to_value(&reply).unwrap();
        assert_eq!(lines["results"][0], json!({"key": "a", "state": "FOUND", "value": "v"}));
        assert_eq!(
            lines["results"][1],
            json!({"key": "b", "state": "FOUND", "value": null, "value_base64": "/w=="})
        );
        assert_eq!(lines["results"][2], json!({"key": "c", "state": "ABSENT", "value": null}));
        assert_eq!(lines["results"][3]["error"]["code"], "damaged");
        assert_eq!(lines["results"][4], json!({"key": "e", "state": "UNANSWERED", "value": null}));
        let footer = json!({"found": 2, "absent": 1, "error": 1, "unanswered": 1, "versions": [7]});
        assert_eq!((&lines["footer"], reply.last.is_complete()), (&footer, false));
        assert_eq!(lines.as_object().unwrap().len(), 2, "no profile unless asked for");
    }

    #[test]
    fn ids_are_exact_numbers_and_bytes_are_base64() {
        let ids = BatchKeys::Ids(vec![u64::MAX, 1, 2, 3, 4]);
        let given = vec![Value::from("18446744073709551615"); 5];
        let reply = BatchReply::new(&values(ValueType::Record), &given, &ids, &answer());
        let line = serde_json::to_string(&reply.results[0]).unwrap();
        assert_eq!(
            line,
            r#"{"key":18446744073709551615,"state":"FOUND","value":null,"value_base64":"dg=="}"#
        );
    }
}
