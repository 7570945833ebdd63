//! Values as plain JSON, for people and programs that do not speak GraphSON: `kith gremlin` and `kith run`.

use crate::{
    error::Result,
    graphbinary::{Items, check_count, counted},
    value::{Edge, Map, Value, Vertex},
};
use serde_json::{Map as Object, Value as Json, json};
use std::sync::Arc;

/// A value as plain JSON. Numbers that JSON lacks (NaN, infinities, those beyond 64 bits) and all other values without a form
/// in JSON become their text; keys of maps become texts. A map with several keys of the same text, such as 1 and "1", becomes
/// a list of pairs.
pub fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Byte(value) => json!(value),
        Value::Short(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Long(value) => json!(value),
        Value::Float(value) if value.is_finite() => json!(value),
        Value::Double(value) if value.is_finite() => json!(value),
        Value::BigInteger(number) => {
            u64::try_from(&**number).map_or_else(|_| json!(value.to_string()), Json::from)
        }
        Value::List(values) => values.iter().map(to_json).collect(),
        Value::Set(values) => values.iter().map(to_json).collect(),
        Value::BulkSet(values) => {
            let entry = |(value, bulk): &(Value, i64)| json!({"value": to_json(value), "count": bulk});
            values.iter().map(entry).collect()
        }
        Value::Map(entries) => of_map(entries),
        Value::Vertex(vertex) => of_vertex(vertex),
        Value::Edge(edge) => of_edge(edge),
        Value::VertexProperty(property) => json!({"key": &*property.key, "value": to_json(&property.value)}),
        Value::Property(property) => json!({"key": &*property.key, "value": to_json(&property.value)}),
        Value::Path(path) => {
            let labels = |labels: &crate::value::Set| labels.iter().map(to_json).collect::<Json>();
            json!({
                "labels": path.labels.iter().map(labels).collect::<Json>(),
                "objects": path.objects.iter().map(to_json).collect::<Json>(),
            })
        }
        Value::Traverser { value, .. } => to_json(value),
        other => json!(other.to_string()),
    }
}

fn of_map(entries: &Map) -> Json {
    let object: Object<String, Json> =
        entries.iter().map(|(key, value)| (key.to_string(), to_json(value))).collect();
    match object.len() == entries.len() {
        true => Json::Object(object),
        false => entries.iter().map(|(key, value)| json!([to_json(key), to_json(value)])).collect(),
    }
}

/// Results, a list of traversers in GraphBinary, as plain JSON: each as often as it occurs.
///
/// # Errors
///
/// There are too many ([`check_count`]), or the bytes are not a list.
pub fn results(bytes: &[u8]) -> Result<Vec<Json>> {
    check_count(bytes, 0)?;
    let mut results = Vec::new();
    for item in Items::new(bytes)? {
        let (value, count) = counted(item?);
        results.extend(std::iter::repeat_n(to_json(&value), usize::try_from(count).unwrap_or(usize::MAX)));
    }
    Ok(results)
}

fn of_vertex(vertex: &Vertex) -> Json {
    let mut object = json!({"id": to_json(&vertex.id), "label": &*vertex.label});
    if let Some(properties) = vertex.properties.as_ref().filter(|properties| !properties.is_empty()) {
        let entry = |property: &Arc<crate::value::VertexProperty>| {
            (property.key.to_string(), to_json(&property.value))
        };
        object["properties"] = Json::Object(properties.iter().map(entry).collect());
    }
    object
}

fn of_edge(edge: &Edge) -> Json {
    let mut object = json!({
        "id": to_json(&edge.id),
        "label": &*edge.label,
        "out": to_json(&edge.out_vertex.id),
        "in": to_json(&edge.in_vertex.id),
    });
    if let Some(properties) = edge.properties.as_ref().filter(|properties| !properties.is_empty()) {
        let entry =
            |property: &Arc<crate::value::Property>| (property.key.to_string(), to_json(&property.value));
        object["properties"] = Json::Object(properties.iter().map(entry).collect());
    }
    object
}

/// The value that plain JSON means: whole numbers are an `Int` if they fit, else a `Long` or a `BigInteger`; others are a
/// `Double`.
pub fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => i32::try_from(whole).map_or(Value::Long(whole), Value::Int),
            (None, Some(whole)) => Value::BigInteger(Arc::new(whole.into())),
            (None, None) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(values) => Value::list(values.iter().map(from_json).collect::<Vec<_>>()),
        Json::Object(entries) => Value::Map(Arc::new(map(entries))),
    }
}

/// The map that a JSON object means.
pub fn map(entries: &Object<String, Json>) -> Map {
    entries.iter().map(|(key, value)| (Value::text(key.as_str()), from_json(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_come_back() {
        let json = json!({"a": [1, 5_000_000_000_i64, u64::MAX, 0.5, "x", null, true], "b": {"c": []}});
        assert_eq!(to_json(&from_json(&json)), json);
        assert!(matches!(from_json(&json!(1)), Value::Int(1)));
        assert!(matches!(from_json(&json!(5_000_000_000_i64)), Value::Long(_)));
    }

    #[test]
    fn no_entry_of_a_map_is_lost() {
        let map = |keys: [Value; 2]| {
            Value::Map(Arc::new(keys.into_iter().zip([Value::Int(7), Value::Int(8)]).collect()))
        };
        assert_eq!(to_json(&map([Value::Int(1), Value::text("2")])), json!({"1": 7, "2": 8}));
        assert_eq!(to_json(&map([Value::Int(1), Value::text("1")])), json!([[1, 7], ["1", 8]]));
    }

    #[test]
    fn elements_show_what_they_are() {
        let vertex = Arc::new(Vertex::reference(Value::Long(3), "member"));
        assert_eq!(to_json(&Value::Vertex(vertex.clone())), json!({"id": 3, "label": "member"}));
        let edge = Edge {
            id: "3>knows>3".into(),
            label: "knows".into(),
            out_vertex: vertex.clone(),
            in_vertex: vertex,
            properties: None,
        };
        let expected = json!({"id": "3>knows>3", "label": "knows", "out": 3, "in": 3});
        assert_eq!(to_json(&Value::Edge(Arc::new(edge))), expected);
        assert_eq!(to_json(&Value::Double(f64::NAN)), json!("NaN"));
    }
}
