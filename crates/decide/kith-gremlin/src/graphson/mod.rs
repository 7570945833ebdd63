//! GraphSON 3 and 2, the codings of values as JSON: a value that JSON has no type for is an object with an `@type` and a `@value`.
//!
//! The types are those of TinkerPop 3.8, as for [`graphbinary`](crate::graphbinary). Values without types are accepted as well:
//! a whole number is an `Int`, `Long` or `BigInteger`, another number a `Double`, an array a list, and an object a map.
//! In GraphSON 2, lists, sets and maps have no types; it is read like GraphSON 3, and written by [`to_json_of`].
//! `BigInteger` and `BigDecimal` are written as strings, which all drivers read; many would round such numbers.

mod fields;
mod profiles;
mod reader;
mod scalars;
mod values;
mod write_elements;
mod writer;

pub(crate) use fields::Fields;
pub(crate) use reader::JsonReader;
pub use writer::{Version, to_json, to_json_of};
pub(crate) use writer::{all_to_text_of, to_json_with_few_types, to_text_of};

use crate::{error::Result, room::Room, value::Value};

/// Values nest at most this deep.
pub const DEPTH_MAX: usize = crate::graphbinary::DEPTH_MAX;

/// The value that a JSON text holds.
///
/// # Errors
///
/// The text is not JSON, or no value, or one of a type that Kith does not support. The message names the position of the byte.
/// The time grows with the length of the text times the depth of its nesting.
pub fn read_value(text: &str) -> Result<Value> {
    read_value_within(text, &mut Room::unbounded())
}

/// The value that a JSON text holds, which takes no more memory than there is room.
///
/// # Errors
///
/// Those of [`read_value`] and [`Room::take`].
pub fn read_value_within(text: &str, room: &mut Room) -> Result<Value> {
    let mut reader = JsonReader::new(text).within(room);
    let raw = reader.document()?;
    reader.value(raw)
}

/// The value that parsed JSON holds. Use [`read_value`] if there is a text: parsed JSON has lost the digits of large numbers.
///
/// # Errors
///
/// Those of [`read_value`]. Positions count in the compact form of the JSON.
pub fn from_json(json: &serde_json::Value) -> Result<Value> {
    read_value(&json.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    fn read(text: &str) -> String {
        match read_value(text) {
            Ok(value) => format!("{} {value}", value.type_name()),
            Err(error) => error.message,
        }
    }

    /// The text of large collections is written without the JSON of all their members.
    #[test]
    fn texts_are_those_of_the_json() {
        use crate::value::{Map, Set, Value};
        use std::sync::Arc;
        let entries = [("a".into(), Value::list([Value::Null])), ("b".into(), Value::Double(f64::NAN))];
        let all = [
            Value::Int(1),
            Value::list([]),
            Value::list([Value::list([1.into()]), "\"x".into()]),
            Value::Set(Arc::new(Set::from_iter([2_i64.into(), "y".into()]))),
            Value::Map(Arc::new(Map::from_iter(entries))),
            Value::BulkSet(Arc::new(vec![(1.into(), 2)])),
        ];
        for version in [Version::Two, Version::Three] {
            for value in &all {
                let json = to_json_of(version, value).map(|json| json.to_string());
                assert_eq!(to_text_of(version, value), json, "{value}");
            }
            let list = to_json_of(version, &Value::list(&all[..])).map(|json| json.to_string());
            assert_eq!(all_to_text_of(version, &all), list);
        }
        let deep = (0..10_000).fold(Value::Null, |value, _| Value::list([value]));
        assert!(to_text_of(Version::Three, &deep).is_err());
        std::mem::forget(deep);
    }

    #[test]
    fn values_without_types_are_accepted() {
        assert_eq!(read("7"), "Int 7");
        assert_eq!(read("-3000000000"), "Long -3000000000");
        assert_eq!(read("36893488147419103232"), "BigInteger 36893488147419103232");
        assert_eq!(read("1.0"), "Double 1.0");
        assert_eq!(read("\"a\\n\""), "String a\n");
        assert_eq!(read(" [true, null] "), "List [true, null]");
        assert_eq!(read(r#"{"b": 1, "a": {"@type": "g:Int64", "@value": 2}}"#), "Map {b=1, a=2}");
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        let of =
            |type_name: &str, value: &str| read(&format!(r#"{{"@type":"{type_name}","@value":{value}}}"#));
        assert_eq!(
            of("gx:BigInteger", "123456789987654321123456789987654321"),
            "BigInteger 123456789987654321123456789987654321"
        );
        assert_eq!(of("gx:BigDecimal", "0.12345678901234567890"), "BigDecimal 0.12345678901234567890");
        assert_eq!(of("g:Int64", "\"9223372036854775807\""), "Long 9223372036854775807");
        assert_eq!(of("g:Double", "\"NaN\""), "Double NaN");
        assert_eq!(of("g:Float", "0.1"), "Float 0.1");
    }

    #[test]
    fn elements_have_the_fields_that_they_need() {
        let vertex = r#"{"@type":"g:Vertex","@value":{"id":1,"properties":{"name":[
            {"@type":"g:VertexProperty","@value":{"id":2,"label":"name","value":"marko","vertex":1}}]}}}"#;
        let Ok(Value::Vertex(vertex)) = read_value(vertex) else { panic!("a vertex") };
        let name = &vertex.properties.as_ref().expect("properties")[0];
        assert_eq!((&*vertex.label, &*name.key), ("vertex", "name"));
        let edge = r#"{"@type":"g:Edge","@value":{"id":1,"label":"knows","outV":1}}"#;
        assert_eq!(read(edge), "GraphSON, byte 27: the field \"inV\" is missing");
    }

    #[test]
    fn errors_name_the_byte() {
        assert_eq!(read(r#"[1, {"@type":"g:T","@value":"x"}]"#), "GraphSON, byte 28: T has no value \"x\"");
        assert_eq!(read(r#"{"@type":"g:Int32"}"#), "GraphSON, byte 0: a g:Int32 has no @value");
        assert_eq!(
            read(r#"{"@type":"g:Int32","@value":3000000000}"#),
            "GraphSON, byte 28: g:Int32: a whole number in its range is expected"
        );
        assert_eq!(read(r#"{"@type":"g:Map","@value":[1]}"#), "GraphSON, byte 26: the last key has no value");
        assert!(read("[1,").starts_with("GraphSON: not JSON: EOF"));
        let tree = read_value(r#"{"@type":"g:Tree","@value":[]}"#).expect_err("unsupported");
        assert_eq!(tree.code, ErrorCode::UnsupportedOperation);
        assert_eq!(tree.message, "GraphSON, byte 27: the type \"g:Tree\" is not supported");
    }
}
