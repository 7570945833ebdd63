//! The order of mixed values.

use crate::values::*;
use kith_gremlin::semantics::order;
use kith_gremlin::{
    predicate::Predicate,
    value::{Token, Value},
};
use std::{cmp::Ordering, sync::Arc};

#[test]
fn mixed_values_have_one_order() {
    let ascending = [
        Value::Null,
        Value::Bool(false),
        Value::Bool(true),
        Value::Double(f64::NEG_INFINITY),
        Value::Int(1),
        Value::Double(2.0),
        Value::Float(f32::INFINITY),
        Value::Double(f64::NAN),
        date("2023-01-01T00:00:00Z"),
        date("2023-08-01T00:00:00Z"),
        "bar".into(),
        "foo".into(),
        Value::Uuid(uuid::Uuid::from_u128(0x5100)),
        Value::Uuid(uuid::Uuid::from_u128(u128::MAX)),
        vertex(2),
        vertex("1"),
        edge(1),
        vertex_property(0),
        property("a", 1),
        property("a", "1"),
        path([1.into()]),
        set(["x".into()]),
        bulk([("x".into(), 2)]),
        texts("a b c"),
        texts("a b c d"),
        map([("a".into(), "a".into()), ("b".into(), false.into()), ("c".into(), "c".into())]),
        map([("a".into(), "a".into()), ("b".into(), "b".into())]),
        Value::Binary(vec![1, 2].into()),
        Value::Char('a'),
        Value::Duration { seconds: 1, nanos: 0 },
        Value::Predicate(Arc::new(Predicate { operator: "eq".into(), operands: vec![] })),
        Token::Id.into(),
        Token::Label.into(),
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(order(a, b), i.cmp(&j), "{a:?} against {b:?}");
        }
    }
}

#[test]
fn equal_numbers_of_different_types_stand_at_one_place() {
    assert_eq!(order(&Value::Byte(1), &Value::Double(1.0)), Ordering::Equal);
    assert_eq!(order(&list([1.into()]), &list([1_i64.into()])), Ordering::Equal);
    assert_eq!(order(&Value::Float(f32::NAN), &Value::Double(f64::NAN)), Ordering::Equal);
}
