//! The results of computations on records as JSON. Like the other answers, they are a contract (`docs/queries.md`).

use super::{
    batch::{Footer, FooterLine, Json, key_name, state_of},
    profile::ProfileReply,
};
use crate::{
    failure::{ErrorReport, Failure},
    ids,
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use kith_client::{
    AggregateAnswer, AggregateQuery, BatchAnswer, BatchKeys, ComputeAnswer, ComputeQuery, QueryError,
};
use kith_operators::{Record, RecordError};
use kith_schema::{RecordView, Scalar, Schema, compute::ComputeFault};
use kith_types::ErrorCode;
use serde::Serialize;
use serde_json::Value;

/// The answer to a computation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComputeReply {
    pub results: Vec<ComputedReply>,
    #[serde(flatten)]
    pub last: FooterLine,
}

/// The result for one key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComputedReply {
    #[serde(serialize_with = "ids::key")]
    pub key: Value,
    pub state: &'static str,
    pub record: Option<Json>,
    /// The reason, if the key failed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// The computation to which results belong.
#[derive(Clone, Copy, Debug)]
pub struct ComputeContext<'a> {
    pub store: &'a str,
    pub query: &'a ComputeQuery,
    /// The schema of the results; `None` if there are no results.
    pub result: Option<&'a Schema>,
}

impl ComputedReply {
    /// Returns the result for `key`.
    ///
    /// # Errors
    /// Returns `internal` if the result does not fit its own schema.
    pub fn new(computed: &ComputeContext<'_>, key: Value, record: Record<'_>) -> Result<Self, Failure> {
        let shown = match record {
            Record::Found(bytes) => Some(json_of(computed.result, bytes)?),
            _ => None,
        };
        let error = match record {
            Record::Error(error) => Some(why(computed.store, computed.query, error).into()),
            _ => None,
        };
        Ok(Self { key, state: state_of(record), record: shown, error })
    }
}

/// The answer to an aggregation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AggregateReply {
    /// Values with the highest counts first; buckets in the order of the request.
    pub counts: Vec<CountReply>,
    /// The number of distinct values; omitted for buckets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<u64>,
    pub truncated: bool,
    #[serde(flatten)]
    pub last: FooterLine,
}

/// The number of keys with a value, or in a bucket.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CountReply {
    Value { value: Value, count: u64 },
    Bucket { bucket: String, count: u64 },
}

impl ComputeReply {
    /// Returns the answer for the keys `given`, which were parsed to `keys`.
    ///
    /// # Errors
    /// Returns `internal` if a result does not fit its own schema.
    pub fn new(
        store: &str,
        query: &ComputeQuery,
        given: &[Value],
        keys: &BatchKeys,
        answer: &ComputeAnswer,
    ) -> Result<Self, Failure> {
        let computed = ComputeContext { store, query, result: Some(&answer.result) };
        let result = |index: usize| -> Result<ComputedReply, Failure> {
            let record = answer.answer.records.get(index).unwrap_or(Record::Unanswered);
            ComputedReply::new(&computed, key_name(keys, given, index), record)
        };
        let results = match &answer.best {
            Some(best) => best.iter().map(|&index| result(index as usize)).collect::<Result<_, _>>()?,
            None => (0..keys.len()).map(result).collect::<Result<_, _>>()?,
        };
        Ok(Self { results, last: footer(&answer.answer) })
    }
}

impl AggregateReply {
    /// Returns the answer to `query`.
    ///
    /// # Errors
    /// If the answer belongs to another query.
    pub fn new(query: &AggregateQuery, answer: &AggregateAnswer) -> Result<Self, QueryError> {
        let mut counts = Vec::new();
        let mut distinct = None;
        match &query.plan.by {
            kith_schema::compute::GroupBy::Bucket(buckets) => {
                let named = buckets.iter().map(|bucket| bucket.name.clone());
                counts.extend(
                    named.zip(&answer.counts).map(|(bucket, &count)| CountReply::Bucket { bucket, count }),
                );
            }
            kith_schema::compute::GroupBy::Value { .. } => {
                distinct = Some(answer.counts.len() as u64);
                answer.top(&query.plan, |value, count| {
                    counts.push(CountReply::Value { value: scalar_json(value), count });
                })?;
            }
        }
        Ok(Self { counts, distinct, truncated: answer.truncated, last: footer(&answer.answer) })
    }
}

fn json_of(result: Option<&Schema>, bytes: &[u8]) -> Result<Json, Failure> {
    let defect = |why: String| {
        let help = "this is a defect of Kith: please report it with the question";
        Failure::new(ErrorCode::Internal, format!("a result cannot be decoded: {why}"), help)
    };
    let schema = result.ok_or_else(|| defect("it has no schema".to_owned()))?;
    let json = RecordView::new(schema, bytes).and_then(|view| view.to_result_json());
    json.map(Json::of).map_err(|error| defect(error.to_string()))
}

fn footer(answer: &BatchAnswer) -> FooterLine {
    let counts = answer.counts();
    let footer = Footer {
        found: counts.found,
        absent: counts.absent,
        error: counts.error,
        unanswered: counts.unanswered,
        versions: answer.served.iter().map(|(_, version)| *version).collect(),
    };
    FooterLine { footer, profile: answer.profile.as_ref().map(ProfileReply::from) }
}

fn why(store: &str, query: &ComputeQuery, error: RecordError) -> Failure {
    let RecordError::Dimensions(ComputeFault { operator, want, got }) = error else {
        return super::batch::why(store, error);
    };
    let what = query.plan.operators.get(operator as usize).map_or_else(String::new, |operator| {
        format!("{} over field {:?}: ", operator.function.name(), operator.field)
    });
    let message = format!("{what}the query vector has {want} numbers, the record's list has {got}");
    let help = "the lists of this field differ in length; those of a field of type vector<f32,n> cannot";
    Failure::new(ErrorCode::DimensionMismatch, message, help)
}

fn scalar_json(value: Scalar<'_>) -> Value {
    match value {
        Scalar::Bool(value) => value.into(),
        Scalar::I32(value) => value.into(),
        Scalar::I64(value) | Scalar::Timestamp(value) => value.into(),
        Scalar::U64(value) => value.into(),
        // The shortest text in single precision, not the digits of the number in double precision.
        Scalar::F32(value) => serde_json::from_str(&format!("{value:?}")).unwrap_or(Value::Null),
        Scalar::F64(value) => value.into(),
        Scalar::Text(value) => value.into(),
        Scalar::Bytes(value) => BASE64.encode(value).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_operators::RecordsOver;
    use kith_schema::{
        RecordWriter,
        compute::{Computation, ComputeFunction, ComputePlan},
    };
    use serde_json::json;

    #[test]
    fn every_state_has_its_shape_and_the_best_come_first() {
        let schema: Schema =
            r#"{"fields":[{"name":"v","type":"list<f64>","nullable":true}]}"#.parse().unwrap();
        let dot = ComputeFunction::Dot(vec![1.0, 2.0]);
        let plan = ComputePlan::new().operator(dot, "v", Some("s".to_owned()));
        let result = Computation::new(&plan, &schema).unwrap().result().clone();
        let mut bytes = Vec::new();
        let mut writer = RecordWriter::new(&result);
        writer.write_json(r#"{"s":1.5}"#, &mut bytes).unwrap();
        let length = bytes.len();
        let mut records = RecordsOver::new(5, bytes.into());
        records.absent();
        assert!(records.found(length));
        records.error(RecordError::Dimensions(ComputeFault { operator: 0, want: 2, got: 3 }));
        records.unanswered();
        records.unsent();
        let served = vec![("s".to_owned(), 7)];
        let records = records.finish().unwrap();
        let answer = BatchAnswer { records, missing_partitions: vec![], served, profile: None, schema: None };
        let mut answer = ComputeAnswer { answer, best: None, result };
        let query = ComputeQuery { plan, ..ComputeQuery::default() };
        let keys = BatchKeys::Ids(vec![1, 2, 3, 4, 5]);
        let reply = ComputeReply::new("s", &query, &[], &keys, &answer).unwrap();
        let lines = serde_json::to_value(&reply).unwrap();
        assert_eq!(lines["results"][0], json!({"key": 1, "state": "ABSENT", "record": null}));
        assert_eq!(lines["results"][1], json!({"key": 2, "state": "FOUND", "record": {"s": 1.5}}));
        let error = &lines["results"][2]["error"];
        assert_eq!(
            (&error["code"], &lines["results"][2]["state"]),
            (&json!("dimension_mismatch"), &json!("ERROR"))
        );
        assert_eq!(
            error["message"],
            "dot over field \"v\": the query vector has 2 numbers, the record's list has 3"
        );
        assert_eq!(lines["results"][3], json!({"key": 4, "state": "UNANSWERED", "record": null}));
        let footer = json!({"found": 2, "absent": 1, "error": 1, "unanswered": 1, "versions": [7]});
        assert_eq!((&lines["footer"], reply.last.is_complete()), (&footer, false));
        answer.best = Some(vec![1]);
        let reply = ComputeReply::new("s", &query, &[], &keys, &answer).unwrap();
        assert_eq!(serde_json::to_value(&reply).unwrap()["results"], json!([lines["results"][1]]));
    }

    #[test]
    fn values_are_spelled_as_records_spell_them() {
        assert_eq!(scalar_json(Scalar::F32(0.1)).to_string(), "0.1");
        assert_eq!(scalar_json(Scalar::U64(u64::MAX)), json!(u64::MAX));
        assert_eq!(scalar_json(Scalar::Bytes(&[0, 255])), json!("AP8="));
    }
}
