//! Values of fields as Gremlin shows them, and values of Gremlin as fields store them. Fields travel as JSON.

use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::DateTime;
use kith_gremlin::{
    plain,
    value::{Map, Value},
};
use kith_schema::{FieldType, ScalarType};
use serde_json::Value as Json;
use std::sync::Arc;

/// The value of a field as Gremlin shows it. `None` for null: a property has a value or does not exist.
pub fn to_gremlin(field: FieldType, json: &Json) -> Option<Value> {
    if json.is_null() {
        return None;
    }
    let each = |items: &[Json], item: &dyn Fn(&Json) -> Value| {
        Value::list(items.iter().map(item).collect::<Vec<_>>())
    };
    Some(match (field, json) {
        (FieldType::Scalar(scalar), json) => scalar_to_gremlin(scalar, json),
        (FieldType::List(scalar), Json::Array(items)) => each(items, &|item| scalar_to_gremlin(scalar, item)),
        (FieldType::Vector { .. }, Json::Array(items)) => {
            each(items, &|item| scalar_to_gremlin(ScalarType::F32, item))
        }
        (FieldType::Map(scalar), Json::Object(entries)) => {
            let entry = |(key, value): (&String, &Json)| {
                (Value::text(key.as_str()), scalar_to_gremlin(scalar, value))
            };
            Value::Map(Arc::new(entries.iter().map(entry).collect()))
        }
        // A field whose type has changed since this process has heard of it.
        (_, other) => plain::from_json(other),
    })
}

fn scalar_to_gremlin(scalar: ScalarType, json: &Json) -> Value {
    let converted = match scalar {
        ScalarType::Bool => json.as_bool().map(Value::Bool),
        ScalarType::I32 => json.as_i64().and_then(|number| i32::try_from(number).ok()).map(Value::Int),
        ScalarType::I64 => json.as_i64().map(Value::Long),
        ScalarType::U64 => json.as_u64().map(Value::unsigned),
        // The text of an `f32` has the digits that tell it from its neighbours, so this is the number that was stored.
        ScalarType::F32 => json.as_f64().map(|number| Value::Float(number as f32)),
        ScalarType::F64 => json.as_f64().map(Value::Double),
        ScalarType::Text => json.as_str().map(Value::text),
        ScalarType::Bytes => {
            let bytes = json.as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
            bytes.map(|bytes| Value::Binary(bytes.into()))
        }
        ScalarType::Timestamp => {
            let time = json.as_i64().and_then(DateTime::from_timestamp_millis);
            time.map(|time| Value::DateTime(time.fixed_offset()))
        }
    };
    converted.unwrap_or_else(|| plain::from_json(json))
}

/// A value of Gremlin as a field stores it. Null stays null. `None` if the field cannot hold a value of this type; whether a
/// number is in the range of the field, the writer of records checks.
pub fn to_json(field: FieldType, value: &Value) -> Option<Json> {
    let items = |scalar: ScalarType| {
        let each = |values: &mut dyn Iterator<Item = &Value>| {
            values.map(|value| scalar_to_json(scalar, value)).collect::<Option<Vec<_>>>().map(Json::Array)
        };
        match value {
            Value::List(values) => each(&mut values.iter()),
            Value::Set(values) => each(&mut values.iter()),
            _ => None,
        }
    };
    match (field, value) {
        (_, Value::Null) => Some(Json::Null),
        (FieldType::Scalar(scalar), value) => scalar_to_json(scalar, value),
        (FieldType::List(scalar), _) => items(scalar),
        (FieldType::Vector { .. }, _) => items(ScalarType::F32),
        (FieldType::Map(scalar), Value::Map(entries)) => entries_to_json(scalar, entries),
        (FieldType::Map(_), _) => None,
    }
}

fn entries_to_json(scalar: ScalarType, entries: &Map) -> Option<Json> {
    let entry =
        |(key, value): (&Value, &Value)| Some((key.as_text()?.to_owned(), scalar_to_json(scalar, value)?));
    entries.iter().map(entry).collect::<Option<serde_json::Map<_, _>>>().map(Json::Object)
}

fn scalar_to_json(scalar: ScalarType, value: &Value) -> Option<Json> {
    match scalar {
        ScalarType::Bool => match value {
            Value::Bool(truth) => Some(Json::Bool(*truth)),
            _ => None,
        },
        ScalarType::I32 | ScalarType::I64 | ScalarType::U64 => whole(value),
        ScalarType::F32 | ScalarType::F64 => whole(value).or_else(|| fraction(value)),
        ScalarType::Text => match value {
            Value::String(text) => Some(Json::from(&**text)),
            Value::Char(character) => Some(Json::from(character.to_string())),
            _ => None,
        },
        ScalarType::Bytes => match value {
            Value::Binary(bytes) => Some(Json::from(BASE64_STANDARD.encode(bytes))),
            _ => None,
        },
        ScalarType::Timestamp => match value {
            Value::DateTime(time) => Some(Json::from(time.timestamp_millis())),
            // Milliseconds, as in writes without Gremlin.
            other => whole(other),
        },
    }
}

fn whole(value: &Value) -> Option<Json> {
    match value {
        Value::Byte(number) => Some(Json::from(*number)),
        Value::Short(number) => Some(Json::from(*number)),
        Value::Int(number) => Some(Json::from(*number)),
        Value::Long(number) => Some(Json::from(*number)),
        Value::BigInteger(number) => match (i64::try_from(&**number), u64::try_from(&**number)) {
            (Ok(number), _) => Some(Json::from(number)),
            (_, Ok(number)) => Some(Json::from(number)),
            _ => None,
        },
        _ => None,
    }
}

/// A number with a fraction. NaN and the infinities are none: records have finite numbers only.
fn fraction(value: &Value) -> Option<Json> {
    let number = match value {
        Value::Float(number) => number.to_string().parse().ok()?,
        Value::Double(number) => *number,
        Value::BigDecimal(number) => number.to_string().parse().ok()?,
        _ => return None,
    };
    serde_json::Number::from_f64(number).map(Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_schema::ElementType;
    use num_bigint::BigInt;
    use serde_json::json;

    fn field(text: &str) -> FieldType {
        text.parse().expect("a type")
    }

    fn big(number: u64) -> Value {
        Value::BigInteger(Arc::new(BigInt::from(number)))
    }

    #[test]
    fn values_of_every_type_come_back_as_they_went() {
        let time = DateTime::from_timestamp_millis(1_700_000_000_123).expect("a time").fixed_offset();
        let map = Map::from_iter([(Value::text("a"), Value::Long(1))]);
        let cases = [
            ("bool", Value::Bool(true)),
            ("i32", Value::Int(-7)),
            ("i64", Value::Long(i64::MIN)),
            ("u64", Value::Long(7)),
            ("u64", big(u64::MAX)),
            ("f32", Value::Float(0.1)),
            ("f64", Value::Double(0.1)),
            ("text", Value::text("Ada")),
            ("bytes", Value::Binary(vec![0, 255].into())),
            ("timestamp", Value::DateTime(time)),
            ("list<text>", Value::list([Value::text("a"), Value::text("b")])),
            ("map<text,i64>", Value::Map(Arc::new(map))),
            ("vector<f32,2>", Value::list([Value::Float(0.5), Value::Float(1.0)])),
        ];
        for (name, value) in cases {
            let json = to_json(field(name), &value).expect("it fits");
            let text = json.to_string().parse().expect("JSON");
            assert_eq!(to_gremlin(field(name), &text), Some(value), "{name}: {json}");
        }
        assert_eq!(to_gremlin(field("i32"), &Json::Null), None);
        assert_eq!(to_json(field("i32"), &Value::Null), Some(Json::Null));
    }

    #[test]
    fn numbers_are_taken_by_their_value_and_other_types_are_not() {
        let f64 = field("f64");
        for (value, json) in [
            (Value::Int(2), json!(2)),
            (Value::Float(0.1), json!(0.1)),
            (Value::BigDecimal(Arc::new("1.5".parse().expect("a number"))), json!(1.5)),
        ] {
            assert_eq!(to_json(f64, &value), Some(json), "{value}");
        }
        let date = Value::DateTime(DateTime::UNIX_EPOCH.fixed_offset());
        for (name, value) in [
            ("i32", Value::Double(1.0)),
            ("i32", Value::text("1")),
            ("f64", Value::Double(f64::NAN)),
            ("text", Value::Int(1)),
            ("bool", Value::Int(1)),
            ("i64", date),
            ("list<text>", Value::text("a")),
            ("list<text>", Value::list([Value::Int(1)])),
            ("map<text,i64>", Value::list([])),
        ] {
            assert_eq!(to_json(field(name), &value), None, "{name}: {value}");
        }
        let vector = FieldType::Vector { element: ElementType::I8, dimensions: 1 };
        assert_eq!(to_json(vector, &Value::list([Value::Int(1)])), Some(json!([1])));
    }
}
