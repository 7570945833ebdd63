//! The verdicts of `eq` and its relatives.

use crate::{properties::within, values::*};
use kith_gremlin::semantics::{compare, equal};
use kith_gremlin::value::{Token, Value, Vertex};
use std::cmp::Ordering::{self, Equal, Greater, Less};

fn check(a: &Value, b: &Value, expected: Option<Ordering>) {
    assert_eq!(compare(a, b), expected, "{a:?} against {b:?}");
    assert_eq!(compare(b, a), expected.map(Ordering::reverse), "{b:?} against {a:?}");
    assert_eq!(equal(a, b), expected == Some(Equal), "{a:?} = {b:?}");
    assert_eq!(equal(b, a), expected == Some(Equal), "{b:?} = {a:?}");
}

#[test]
fn scalars_are_compared_within_their_type() {
    let nan = Value::Double(f64::NAN);
    for (a, b, expected) in [
        (Value::Null, Value::Null, Some(Equal)),
        (Value::Null, Value::Int(0), None),
        (nan.clone(), nan.clone(), None),
        (nan.clone(), Value::Int(1), None),
        (nan, Value::Null, None),
        (Value::Double(f64::INFINITY), Value::Float(f32::INFINITY), Some(Equal)),
        (Value::Int(1), Value::Double(1.0), Some(Equal)),
        (Value::Byte(1), decimal("1.000"), Some(Equal)),
        (Value::Int(1), Value::Double(1.5), Some(Less)),
        (Value::from("foo"), Value::Double(1.0), None),
        (Value::from("1"), Value::Int(1), None),
        (Value::from("a"), Value::from("b"), Some(Less)),
        (Value::Bool(false), Value::Bool(true), Some(Less)),
        (Value::Bool(true), Value::Int(1), None),
        (Value::Char('a'), Value::from("a"), None),
        (Value::Char('a'), Value::Char('b'), Some(Less)),
        (date("2023-08-01T00:00:00Z"), date("2023-08-01T02:00:00+02:00"), Some(Equal)),
        (date("2023-08-01T00:00:00Z"), date("2023-08-01T00:00:01Z"), Some(Less)),
        (Value::Uuid(uuid::Uuid::nil()), Value::from("00000000-0000-0000-0000-000000000000"), None),
        (Token::Id.into(), Token::Id.into(), Some(Equal)),
        (Token::Id.into(), Value::from("id"), None),
        (Value::Class("a".into()), Value::Class("b".into()), Some(Less)),
    ] {
        check(&a, &b, expected);
    }
}

#[test]
fn elements_are_compared_by_id() {
    for (a, b, expected) in [
        (vertex(1), vertex(1_i64), Some(Equal)),
        (vertex(1), vertex(2), Some(Less)),
        (vertex(1), vertex("1"), None),
        (vertex(1), edge(1), None),
        (vertex(1), Value::Int(1), None),
        (edge("1>knows>2"), edge("1>knows>3"), Some(Less)),
        (vertex_property(1), vertex_property(1), Some(Equal)),
        (property("a", 2), property("b", 1), Some(Less)),
        (property("a", 1), property("a", 1.0), Some(Equal)),
        (property("a", 1), property("a", "x"), None),
    ] {
        check(&a, &b, expected);
    }
}

#[test]
fn collections_are_compared_part_by_part() {
    let numbers = |numbers: &[i32]| list(numbers.iter().copied().map(Value::Int));
    let nan = || Value::Double(f64::NAN);
    for (a, b, expected) in [
        (list([]), list([]), Some(Equal)),
        (list([]), numbers(&[1]), Some(Less)),
        (numbers(&[1, 2, 3]), numbers(&[1, 2, 4]), Some(Less)),
        (numbers(&[1, 2, 3]), numbers(&[1, 2, 3, 4]), Some(Less)),
        (numbers(&[1, 2]), list([Value::Double(1.0), Value::Long(2)]), Some(Equal)),
        (list([1.into(), "a".into()]), list([1.into(), "b".into()]), Some(Less)),
        (numbers(&[1]), texts("a"), None),
        (list([nan()]), list([nan()]), None),
        (list([1.into(), nan()]), list([2.into(), nan()]), Some(Less)),
        (set([1.into(), 2.into()]), set([Value::Long(2), Value::Long(1)]), Some(Equal)),
        (set([1.into(), "foo".into()]), set(["foo".into(), 1.into()]), Some(Equal)),
        (set([1.into(), 1.0.into(), 2.into()]), set([1.into(), 2.into()]), Some(Less)),
        (set([1.into()]), list([1.into()]), None),
        (path([1.into()]), path([1_i64.into()]), Some(Equal)),
        (path([1.into()]), list([1.into()]), None),
        (
            map([("a".into(), 1.into()), ("b".into(), 2.into())]),
            map([("b".into(), 2_i64.into()), ("a".into(), 1.0.into())]),
            Some(Equal),
        ),
        (map([("a".into(), 1.into())]), map([("a".into(), 2.into())]), Some(Less)),
        (map([("a".into(), 1.into())]), map([("b".into(), 0.into())]), Some(Less)),
    ] {
        check(&a, &b, expected);
    }
}

#[test]
fn values_that_occur_often_are_not_written_out() {
    let often = |first: i64| bulk([(Value::Int(1), first), (Value::Int(2), 1 << 60)]);
    check(&often(1 << 60), &often(1 << 60), Some(Equal));
    check(&often((1 << 60) + 1), &often(1 << 60), Some(Less));
    check(&bulk([(1.into(), 1), (1.0.into(), 1)]), &bulk([(1.into(), 2)]), Some(Equal));
    check(&bulk([(2.into(), 1), (1.into(), 1)]), &set([1.into(), 2.into()]), Some(Equal));
    check(&bulk([(1.into(), 2)]), &set([1.into()]), Some(Greater));
}

#[test]
fn an_id_that_is_an_element_differs_from_the_id_of_that_element() {
    let vertex = |id| Value::Vertex(Vertex::reference(id, "person").into());
    let nested = vertex(vertex(1.into()));
    assert!(!within(vec![nested.clone()]).is_true(&vertex(1.into())));
    assert!(within(vec![nested.clone()]).is_true(&nested));
}
