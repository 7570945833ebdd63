//! Requests and answers in GraphSON.

use super::{Decoded, Parts, Response};
use crate::{
    error::Result,
    graphson::{Fields, JsonReader, Version, all_to_text_of, to_json_of},
    room::Room,
    value::{Map, Value},
};
use serde_json::{json, value::RawValue};
use std::sync::Arc;
use uuid::Uuid;

const REQUEST_ID: &str = "requestId";
/// The text of a UUID follows the name of its field within this many bytes, also if it has a type.
const ID_DISTANCE_MAX: usize = 100;
const UUID_TEXT_BYTES: usize = 36;

pub(super) fn decode(text: &str, room: &mut Room) -> Decoded {
    let mut reader = JsonReader::new(text).within(room);
    let document = reader.document();
    let fields = document.and_then(|raw| Ok((raw, reader.fields(raw)?)));
    let (raw, fields) = match fields {
        Ok(fields) => fields,
        Err(error) => return (find_id(text), Err(error)),
    };
    let id = fields.get(REQUEST_ID).map(|id| reader.value(id));
    let id = match id {
        Some(Ok(Value::Uuid(id))) => Some(id),
        Some(Ok(Value::String(text))) => text.parse().ok(),
        _ => None,
    };
    (id, parts(&mut reader, raw, &fields))
}

fn parts<'a>(reader: &mut JsonReader<'a>, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Parts> {
    let operation = reader.string(reader.required(fields, "op", raw)?)?;
    let processor = fields.get("processor").map(|processor| reader.string(processor)).transpose()?;
    let arguments = reader.required(fields, "args", raw)?;
    let arguments = match reader.value(arguments)? {
        Value::Map(map) => Arc::unwrap_or_clone(map),
        Value::Null => Map::new(),
        _ => return Err(reader.error_at(arguments, "the arguments of a request are a map")),
    };
    Ok(Parts { operation, processor: processor.unwrap_or_default(), arguments })
}

/// The id of a request that cannot be parsed: the first UUID after the name of the field.
pub(super) fn find_id(text: &str) -> Option<Uuid> {
    let (_, rest) = text.split_once(REQUEST_ID)?;
    let mut candidates = rest.as_bytes().windows(UUID_TEXT_BYTES).take(ID_DISTANCE_MAX);
    candidates.find_map(|candidate| Uuid::try_parse_ascii(candidate).ok())
}

pub(super) fn encode(response: &Response, version: Version) -> Result<Vec<u8>> {
    let data = match &response.data {
        None => "null".to_owned(),
        Some(values) => all_to_text_of(version, values)?,
    };
    let map = |map: &Map| to_json_of(version, &Value::Map(Arc::new(map.clone())));
    let id = json!(response.id.map(|id| id.to_string()));
    let status = json!({
        "message": response.message,
        "code": response.status.code(),
        "attributes": map(&response.attributes)?,
    });
    let meta = map(&response.meta)?;
    let message =
        format!("{{\"requestId\":{id},\"result\":{{\"data\":{data},\"meta\":{meta}}},\"status\":{status}}}");
    Ok(message.into_bytes())
}
