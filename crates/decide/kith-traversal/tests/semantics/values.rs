//! Short names for values, and generated ones.

use bigdecimal::BigDecimal;
use chrono::DateTime;
use kith_gremlin::value::{Edge, Map, Path, Property, Set, Token, Value, Vertex, VertexProperty};
use proptest::prelude::*;
use std::{str::FromStr, sync::Arc};

pub fn decimal(text: &str) -> Value {
    Value::BigDecimal(Arc::new(BigDecimal::from_str(text).expect("the test writes a decimal number")))
}

pub fn big(text: &str) -> Value {
    Value::BigInteger(Arc::new(text.parse().expect("the test writes an integer")))
}

pub fn date(text: &str) -> Value {
    Value::DateTime(DateTime::parse_from_rfc3339(text).expect("the test writes a date"))
}

pub fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value::list(values.into_iter().collect::<Vec<_>>())
}

pub fn set(values: impl IntoIterator<Item = Value>) -> Value {
    Value::Set(Arc::new(values.into_iter().collect::<Set>()))
}

pub fn bulk(values: impl IntoIterator<Item = (Value, i64)>) -> Value {
    Value::BulkSet(Arc::new(values.into_iter().collect()))
}

pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
    Value::Map(Arc::new(entries.into_iter().collect::<Map>()))
}

pub fn texts(texts: &str) -> Value {
    list(texts.split_whitespace().map(Value::from))
}

pub fn path(objects: impl IntoIterator<Item = Value>) -> Value {
    let objects: Vec<_> = objects.into_iter().collect();
    Value::Path(Arc::new(Path { labels: vec![Set::new(); objects.len()], objects }))
}

pub fn vertex(id: impl Into<Value>) -> Value {
    Value::Vertex(Arc::new(Vertex::reference(id.into(), "person")))
}

pub fn edge(id: impl Into<Value>) -> Value {
    let end = Arc::new(Vertex::reference(Value::Long(1), "person"));
    Value::Edge(Arc::new(Edge {
        id: id.into(),
        label: "knows".into(),
        out_vertex: end.clone(),
        in_vertex: end,
        properties: None,
    }))
}

pub fn vertex_property(id: impl Into<Value>) -> Value {
    Value::VertexProperty(Arc::new(VertexProperty {
        id: id.into(),
        key: "name".into(),
        value: Value::Null,
        vertex: None,
        properties: Vec::new(),
    }))
}

pub fn property(key: &str, value: impl Into<Value>) -> Value {
    Value::Property(Arc::new(Property { key: key.into(), value: value.into(), element: None }))
}

/// Numbers of all types, close together, so that many are equal by value.
pub fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-2..3_i8).prop_map(Value::Byte),
        (-2..3_i16).prop_map(Value::Short),
        (-2..3_i32).prop_map(Value::Int),
        prop_oneof![-2..3_i64, Just(i64::MAX), Just(i64::MIN), Just((1 << 53) + 1)].prop_map(Value::Long),
        prop_oneof![Just(0.1), Just(-0.0), Just(f32::NAN), Just(f32::INFINITY), Just(1.0), any::<f32>()]
            .prop_map(Value::Float),
        prop_oneof![Just(0.1), Just(0.0), Just(f64::NAN), Just(1e18), Just(9007199254740992.0), any::<f64>()]
            .prop_map(Value::Double),
        (prop_oneof![Just("1"), Just("9223372036854775808"), Just("1000000000000000000")]).prop_map(big),
        (prop_oneof![Just("1.00"), Just("0.1"), Just("1E+18"), Just("1E+9999")]).prop_map(decimal),
    ]
}

/// Values without parts.
fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => any_number(),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        2 => "[ab]{0,2}".prop_map(|text| Value::text(&*text)),
        1 => any::<char>().prop_map(Value::Char),
        1 => (0..2_u128).prop_map(|id| Value::Uuid(uuid::Uuid::from_u128(id))),
        1 => prop_oneof![Just("1970-01-01T00:00:00Z"), Just("1970-01-01T01:00:00+01:00")].prop_map(date),
        1 => (-1..2_i64, 0..2_u32).prop_map(|(seconds, nanos)| Value::Duration { seconds, nanos }),
        1 => Just(Token::Id.into()),
        1 => Just(Token::Label.into()),
    ]
}

/// Values of all types that a traversal can have.
pub fn any_value() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(2, 12, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            several.clone().prop_map(list),
            several.clone().prop_map(set),
            several.clone().prop_map(path),
            several.prop_map(|values| bulk(values.into_iter().map(|value| (value, 2)))),
            prop::collection::vec((inner.clone(), inner.clone()), 0..3).prop_map(map),
            inner.clone().prop_map(vertex),
            inner.clone().prop_map(edge),
            inner.clone().prop_map(vertex_property),
            ("[ab]", inner).prop_map(|(key, value)| property(&key, value)),
        ]
    })
}
