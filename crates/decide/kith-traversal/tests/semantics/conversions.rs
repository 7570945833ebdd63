//! Conversions of values, and reversal.

use kith_gremlin::{
    Result,
    value::{Path, Scope, Set, Value},
};
use kith_traversal::functions::{as_bool, as_string, reverse};

fn error(result: Result<Value>) -> String {
    result.expect_err("an error").message
}

#[test]
fn everything_but_null_has_a_text() {
    let list = Value::list([1.into(), "a".into()]);
    assert_eq!(as_string(&1.into(), Scope::Global), Ok("1".into()));
    assert_eq!(as_string(&list, Scope::Global), Ok("[1, a]".into()));
    assert_eq!(as_string(&list, Scope::Local), Ok(Value::list(["1".into(), "a".into()])));
    assert_eq!(as_string(&1.into(), Scope::Local), Ok("1".into()));
    assert_eq!(error(as_string(&Value::Null, Scope::Global)), "Can't parse null as String.");
    let with_null = Value::list([1.into(), Value::Null]);
    assert_eq!(error(as_string(&with_null, Scope::Local)), "Can't parse null as String.");
    assert_eq!(as_string(&with_null, Scope::Global), Ok("[1, null]".into()));
}

#[test]
fn truth_is_spelled_or_not_zero() {
    let cases: [(Value, bool); 10] = [
        (1.into(), true),
        (Value::Byte(0), false),
        (3.5.into(), true),
        ((-0.0).into(), false),
        (f64::NAN.into(), false),
        (f64::INFINITY.into(), true),
        (Value::BigInteger(std::sync::Arc::new(0.into())), false),
        (false.into(), false),
        ("tRUe".into(), true),
        ("FALSE".into(), false),
    ];
    for (value, truth) in cases {
        assert_eq!(as_bool(&value), Ok(Value::Bool(truth)), "{value}");
    }
    assert_eq!(error(as_bool(&Value::Null)), "Can't parse null as Boolean.");
    assert_eq!(error(as_bool(&"hello".into())), "Can't parse hello as Boolean.");
    assert_eq!(error(as_bool(&Value::list([]))), "Can't parse List as Boolean.");
}

#[test]
fn texts_and_collections_are_reversed() {
    let pair = || vec![Value::from(3), Value::from("three")];
    let reversed = Value::list(["three".into(), 3.into()]);
    let path = Path { labels: vec![Set::default(), Set::default()], objects: pair() };
    assert_eq!(reverse(&"no tést 😀".into()), Ok("😀 tsét on".into()));
    assert_eq!(reverse(&Value::list(pair())), Ok(reversed.clone()));
    assert_eq!(reverse(&Value::Set(pair().into_iter().collect::<Set>().into())), Ok(reversed.clone()));
    assert_eq!(reverse(&Value::Path(path.into())), Ok(reversed));
    let bulks = |bulk| Value::BulkSet(vec![("a".into(), bulk), ("b".into(), 1)].into());
    assert_eq!(reverse(&bulks(2)), Ok(Value::list(["b".into(), "a".into(), "a".into()])));
    assert!(error(reverse(&bulks(1 << 50))).contains("1000000"));
    assert_eq!(reverse(&29.into()), Ok(29.into()));
    assert_eq!(reverse(&Value::Null), Ok(Value::Null));
}
