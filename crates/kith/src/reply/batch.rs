//! The answers of batch reads as JSON: a contract, as other answers (`docs/queries.md`).

use super::ProfileReply;
use crate::failure::{ErrorReport, Failure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use kith_client::{BatchAnswer, BatchKeys, QueryError};
use kith_ops::{Record, RecordError};
use kith_schema::ValueType;
use serde::Serialize;
use serde_json::Value;

/// What became of one key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyReply {
    pub key: Value,
    pub state: &'static str,
    #[serde(flatten)]
    pub value: ValueReply,
    /// Why, of a key that failed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// A value, under the name that says how it is written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueReply {
    /// Text, or JSON as text.
    Value(Option<String>),
    /// Anything else.
    ValueBase64(Option<String>),
}

/// How many keys ended how, and at which version.
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

/// The answer to a line of `kith run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BatchReply {
    pub results: Vec<KeyReply>,
    #[serde(flatten)]
    pub last: FooterLine,
}

impl BatchReply {
    /// The answer to `given` keys, which are `keys`, of a store with values of this type.
    pub fn new(
        store: &str,
        given: &[Value],
        keys: &BatchKeys,
        value: ValueType,
        answer: &BatchAnswer,
    ) -> Self {
        let name = |place: usize| match keys {
            BatchKeys::Ids(ids) => Value::from(ids[place]),
            BatchKeys::Bytes(_) => given[place].clone(),
        };
        let records = answer.records.iter().enumerate();
        let results = records.map(|(place, record)| KeyReply::new(store, name(place), record, value));
        let counts = answer.counts();
        let footer = Footer {
            found: counts.found,
            absent: counts.absent,
            error: counts.error,
            unanswered: counts.unanswered,
            versions: answer.served.iter().map(|(_, version)| *version).collect(),
        };
        let profile = answer.profile.as_ref().map(ProfileReply::from);
        Self { results: results.collect(), last: FooterLine { footer, profile } }
    }

    /// Whether every key is found or absent.
    pub fn is_complete(&self) -> bool {
        self.last.footer.error == 0 && self.last.footer.unanswered == 0
    }
}

impl KeyReply {
    fn new(store: &str, key: Value, record: Record<'_>, value: ValueType) -> Self {
        let (state, bytes, error) = match record {
            Record::Found(bytes) => ("FOUND", Some(bytes), None),
            Record::Absent => ("ABSENT", None, None),
            Record::Error(error) => ("ERROR", None, Some(why(store, error))),
            Record::Unanswered => ("UNANSWERED", None, None),
        };
        Self { key, state, value: ValueReply::new(bytes, value), error: error.map(ErrorReport::from) }
    }
}

impl ValueReply {
    /// Text that is none, which no build lets through, is shown as the bytes it is.
    fn new(bytes: Option<&[u8]>, value: ValueType) -> Self {
        match (value, bytes.map(std::str::from_utf8).transpose()) {
            (ValueType::Text | ValueType::Json, Ok(text)) => ValueReply::Value(text.map(str::to_owned)),
            _ => ValueReply::ValueBase64(bytes.map(|bytes| BASE64.encode(bytes))),
        }
    }

    /// As it is written.
    pub fn text(&self) -> Option<&str> {
        let (ValueReply::Value(text) | ValueReply::ValueBase64(text)) = self;
        text.as_deref()
    }
}

fn why(store: &str, error: RecordError) -> Failure {
    match error {
        RecordError::Damaged => {
            let detail = "its checksum does not hold".to_owned();
            Failure::from(&QueryError::Damaged { store: store.to_owned(), detail })
        }
        RecordError::Unsuitable => {
            Failure::new("bad_request", "the value cannot be worked on as asked", "see docs/queries.md")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_ops::{Records, RecordsOver};
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
        }
    }

    #[test]
    fn every_state_has_its_shape() {
        let given: Vec<Value> = ["a", "b", "c", "d", "e"].map(Value::from).to_vec();
        let keys = BatchKeys::Bytes(["a", "b", "c", "d", "e"].iter().collect());
        let reply = BatchReply::new("s", &given, &keys, ValueType::Text, &answer());
        let lines = serde_json::to_value(&reply).unwrap();
        assert_eq!(lines["results"][0], json!({"key": "a", "state": "FOUND", "value": "v"}));
        assert_eq!(lines["results"][1], json!({"key": "b", "state": "FOUND", "value_base64": "/w=="}));
        assert_eq!(lines["results"][2], json!({"key": "c", "state": "ABSENT", "value": null}));
        assert_eq!(lines["results"][3]["error"]["code"], "damaged");
        assert_eq!(lines["results"][4], json!({"key": "e", "state": "UNANSWERED", "value": null}));
        let footer = json!({"found": 2, "absent": 1, "error": 1, "unanswered": 1, "versions": [7]});
        assert_eq!((&lines["footer"], reply.is_complete()), (&footer, false));
        assert_eq!(lines.as_object().unwrap().len(), 2, "no profile unless asked for");
    }

    #[test]
    fn ids_are_exact_numbers_and_bytes_are_base64() {
        let ids = BatchKeys::Ids(vec![u64::MAX, 1, 2, 3, 4]);
        let given = vec![Value::from("18446744073709551615"); 5];
        let reply = BatchReply::new("s", &given, &ids, ValueType::Record, &answer());
        let line = serde_json::to_string(&reply.results[0]).unwrap();
        assert_eq!(line, r#"{"key":18446744073709551615,"state":"FOUND","value_base64":"dg=="}"#);
    }
}
