//! Batch reads on the wire.

use super::{
    query::{options_from_wire, options_to_wire},
    records_from_wire, records_to_wire,
};
use crate::{BatchAnswer, BatchKeys, QueryError, QueryOptions, Question, Request};
use bytes::Bytes;
use kith_schema::SchemaIdError;
use kith_types::ByteKeys;
use kith_wire::{
    body::{decode_keys, encode_keys},
    v1,
};

/// Encodes a batch read.
pub fn batch_to_wire(store: &str, keys: &BatchKeys, options: &QueryOptions) -> v1::MultiGetRequest {
    let (ids, byte_keys) = keys_to_wire(keys);
    v1::MultiGetRequest { store: store.to_owned(), options: Some(options_to_wire(options)), ids, byte_keys }
}

/// Encodes keys for a request: ids, or else packed bytes.
pub(super) fn keys_to_wire(keys: &BatchKeys) -> (Vec<u64>, Bytes) {
    match keys {
        BatchKeys::Ids(ids) => (ids.clone(), Bytes::new()),
        BatchKeys::Bytes(keys) => (Vec::new(), encode_keys(keys)),
    }
}

/// Decodes the keys of a request. [`BatchKeys::check`] checks their limits.
///
/// # Errors
/// [`QueryError::BadRequest`] if there are ids and byte keys, or a body is malformed.
pub(super) fn keys_from_wire(ids: Vec<u64>, byte_keys: &[u8]) -> Result<BatchKeys, QueryError> {
    let bad = |detail: &str| QueryError::BadRequest { detail: detail.to_owned() };
    Ok(match (ids.is_empty(), byte_keys.is_empty()) {
        (false, false) => return Err(bad("it has ids and byte keys: a store has keys of one type")),
        (false, true) => BatchKeys::Ids(ids),
        (true, true) => BatchKeys::Bytes(ByteKeys::default()),
        (true, false) => BatchKeys::Bytes(
            decode_keys(byte_keys).map_err(|error| bad(&format!("field byte_keys: {error}")))?,
        ),
    })
}

/// Decodes a batch read.
///
/// # Errors
/// [`QueryError::BadRequest`] if a field is invalid.
pub fn batch_from_wire(wire: v1::MultiGetRequest) -> Result<Request, QueryError> {
    let keys = keys_from_wire(wire.ids, &wire.byte_keys)?;
    let options = options_from_wire(wire.options.unwrap_or_default())?;
    Ok(Request { question: Question::Values { store: wire.store, keys }, options })
}

/// Encodes an answer; values are copied once.
pub fn batch_answer_to_wire(answer: BatchAnswer) -> v1::MultiGetReply {
    v1::MultiGetReply {
        records: records_to_wire(&answer.records),
        complete: answer.is_complete(),
        missing_partitions: answer.missing_partitions,
        profile: answer.profile,
        served: answer
            .served
            .into_iter()
            .map(|(name, version)| v1::Served::of_version(name, version))
            .collect(),
        schema: answer.schema.map(|id| id.to_string()).unwrap_or_default(),
    }
}

/// Decodes an answer to `keys` keys; values are not copied.
///
/// # Errors
/// [`QueryError::Internal`] if it is malformed or has another number of records.
pub fn batch_answer_from_wire(reply: v1::MultiGetReply, keys: usize) -> Result<BatchAnswer, QueryError> {
    let malformed = |detail: String| QueryError::Internal { detail };
    let records = records_from_wire(&reply.records, keys).map_err(|error| malformed(error.to_string()))?;
    if records.len() != keys {
        return Err(malformed(format!("{keys} keys were answered by {} records", records.len())));
    }
    let schema = (!reply.schema.is_empty()).then(|| reply.schema.parse()).transpose();
    Ok(BatchAnswer {
        schema: schema.map_err(|error: SchemaIdError| malformed(error.to_string()))?,
        records,
        missing_partitions: reply.missing_partitions,
        served: reply.served.into_iter().map(|served| (served.name, served.version)).collect(),
        profile: reply.profile,
    })
}

/// Decodes a request for a schema.
///
/// # Errors
/// [`QueryError::BadRequest`] if the id of the schema is invalid.
pub fn schema_from_wire(wire: v1::SchemaRequest) -> Result<Request, QueryError> {
    let id = wire.schema.parse().map_err(|error: SchemaIdError| QueryError::BadRequest {
        detail: format!("field schema: {error}"),
    })?;
    let question = Question::Schema { store: wire.store, version: wire.version, id };
    Ok(Request { question, options: QueryOptions::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_operators::Records;
    use kith_schema::SchemaId;
    use kith_types::ErrorCode;

    #[test]
    fn batches_come_back_as_they_went() {
        let options = QueryOptions { partial: true, profile: true, ..QueryOptions::default() };
        for keys in [BatchKeys::Ids(vec![u64::MAX, 0, 0]), BatchKeys::Bytes(["", "a", ""].iter().collect())] {
            let back = batch_from_wire(batch_to_wire("people", &keys, &options)).unwrap();
            let question = Question::Values { store: "people".to_owned(), keys };
            assert_eq!(back, Request { question, options: options.clone() });
        }
        let none = batch_from_wire(batch_to_wire("people", &BatchKeys::Ids(vec![]), &options)).unwrap();
        assert!(none.question.keys().unwrap().is_empty(), "a batch without keys has no type");
    }

    #[test]
    fn odd_batches_are_refused() {
        let both = v1::MultiGetRequest {
            ids: vec![1],
            byte_keys: encode_keys(&["a"].iter().collect()),
            ..Default::default()
        };
        assert_eq!(batch_from_wire(both).unwrap_err().code(), ErrorCode::BadRequest);
        let torn = v1::MultiGetRequest { byte_keys: vec![9].into(), ..Default::default() };
        assert_eq!(batch_from_wire(torn).unwrap_err().code(), ErrorCode::BadRequest);
        let reply = |count| {
            let records = Records::unanswered(count);
            batch_answer_to_wire(BatchAnswer {
                records,
                missing_partitions: vec![],
                served: vec![],
                profile: None,
                schema: Some(SchemaId([7; 32])),
            })
        };
        assert!(!reply(2).complete && reply(0).complete);
        assert_eq!(batch_answer_from_wire(reply(2), 3).unwrap_err().code(), ErrorCode::Internal);
        let whole = batch_answer_from_wire(reply(2), 2).unwrap();
        assert_eq!((whole.counts().unanswered, whole.schema), (2, Some(SchemaId([7; 32]))));
        let odd = v1::MultiGetReply { schema: "7".to_owned(), ..reply(2) };
        assert_eq!(batch_answer_from_wire(odd, 2).unwrap_err().code(), ErrorCode::Internal);
    }
}
