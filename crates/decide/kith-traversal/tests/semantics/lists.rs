//! Functions of lists.

use crate::values::*;
use kith_gremlin::semantics::lists::{
    Argument::{Literal, Yielded},
    ListFunction::{self, *},
    conjoin,
};
use kith_gremlin::value::Value;
use kith_traversal::functions::reverse;

#[test]
fn each_function_combines_two_lists() {
    let items = || list(["a".into(), Value::Null, "b".into(), "a".into()]);
    let others = || list(["a".into(), "c".into(), Value::Null]);
    for (function, expected) in [
        (Intersect, set(["a".into(), Value::Null])),
        (Difference, set(["b".into()])),
        (Disjunct, set(["b".into(), "c".into()])),
        (Merge, set(["a".into(), Value::Null, "b".into(), "c".into()])),
        (
            Combine,
            list(["a".into(), Value::Null, "b".into(), "a".into(), "a".into(), "c".into(), Value::Null]),
        ),
    ] {
        assert_eq!(function.apply(&items(), Literal(&others())), Ok(expected.clone()), "{function}");
        assert_eq!(function.apply(&items(), Yielded(&others())), Ok(expected), "{function}");
    }
    let pairs = Product.apply(&texts("a b"), Literal(&texts("1 2"))).unwrap();
    assert_eq!(pairs, list([texts("a 1"), texts("a 2"), texts("b 1"), texts("b 2")]));
}

#[test]
fn sets_and_paths_are_lists_too_and_types_matter() {
    let expected = set(["a".into()]);
    for incoming in [set(["a".into(), "b".into()]), path(["a".into(), "b".into()]), bulk([("a".into(), 2)])] {
        assert_eq!(Intersect.apply(&incoming, Literal(&texts("a x"))), Ok(expected.clone()));
    }
    assert_eq!(Intersect.apply(&list([1.into()]), Literal(&list([1_i64.into()]))), Ok(set([])));
    for function in [Intersect, Difference, Disjunct, Merge] {
        assert_eq!(function.apply(&list([]), Literal(&list([]))), Ok(set([])));
    }
    assert_eq!(Product.apply(&list([]), Literal(&texts("a"))), Ok(list([])));
}

#[test]
fn maps_are_merged_and_the_argument_wins() {
    let incoming = map([("name".into(), "marko".into()), ("age".into(), 29.into())]);
    let argument = map([("name".into(), "lop".into()), ("lang".into(), "java".into())]);
    let merged = Merge.apply(&incoming, Yielded(&argument)).unwrap();
    let expected =
        map([("name".into(), "lop".into()), ("age".into(), 29.into()), ("lang".into(), "java".into())]);
    assert_eq!(merged, expected);
}

#[test]
fn values_that_are_no_lists_are_refused_in_the_words_of_tinkerpop() {
    let some = || texts("a");
    let one = Value::Int(1);
    let entries = map([("k".into(), "v".into())]);
    for (function, incoming, argument, expected) in [
        (Intersect, Value::Null, Yielded(&one), "Incoming traverser for intersect step can't be null"),
        (
            Difference,
            "a".into(),
            Literal(&some()),
            "difference step can only take an array or an Iterable type for incoming traversers, encountered String",
        ),
        (Disjunct, some(), Literal(&Value::Null), "Argument provided for disjunct step can't be null"),
        (
            Combine,
            some(),
            Literal(&one),
            "combine step can only take an array or an Iterable as an argument, encountered Int",
        ),
        (
            Product,
            some(),
            Yielded(&Value::Null),
            "traversal argument for product step must yield an iterable type, not null",
        ),
        (
            Merge,
            some(),
            Yielded(&entries),
            "traversal argument for merge step must yield an iterable type, encountered Map",
        ),
        (
            Merge,
            some(),
            Literal(&entries),
            "merge step type mismatch: expected argument to be Iterable but got Map",
        ),
        (
            Merge,
            entries.clone(),
            Yielded(&"a".into()),
            "merge step expected provided argument to evaluate to a Map, encountered String",
        ),
    ] {
        assert_eq!(function.apply(&incoming, argument).unwrap_err().message, expected);
    }
    assert!(Intersect.check(&one).is_err());
    assert!(Intersect.check(&entries).is_err());
    assert!(Merge.check(&entries).is_ok());
    assert!(Product.check(&some()).is_ok());
    assert_eq!("disjunct".parse(), Ok(ListFunction::Disjunct));
}

#[test]
fn lists_stay_within_bounds() {
    let long = list((0..2000).map(Value::Int));
    let error = Product.apply(&long, Literal(&long)).unwrap_err();
    assert!(error.message.starts_with("a list would have 4000000 items, but at most 1000000 are allowed"));
    let often = bulk([(1.into(), i64::MAX), (2.into(), i64::MAX)]);
    assert!(Combine.apply(&often, Literal(&long)).is_err());
    assert!(reverse(&often).is_err());
}

#[test]
fn items_are_joined_to_a_text_without_nulls() {
    let joined = |value: &Value| conjoin(value, ";");
    assert_eq!(joined(&list([3.into(), "three".into()])), Ok("3;three".into()));
    assert_eq!(joined(&list(["a".into(), Value::Null, "b".into()])), Ok("a;b".into()));
    assert_eq!(joined(&list([])), Ok("".into()));
    assert_eq!(
        joined(&Value::Null).unwrap_err().message,
        "Incoming traverser for conjoin step can't be null"
    );
    assert_eq!(
        joined(&"a".into()).unwrap_err().message,
        "conjoin step can only take an array or an Iterable type for incoming traversers, encountered String"
    );
}

#[test]
fn texts_and_lists_are_reversed_and_others_stay() {
    for (value, expected) in [
        ("feature".into(), "erutaef".into()),
        ("añ😀".into(), "😀ña".into()),
        (list([3.into(), "three".into()]), list(["three".into(), 3.into()])),
        (path([1.into(), 2.into()]), list([2.into(), 1.into()])),
        (Value::Null, Value::Null),
        (29.into(), 29.into()),
    ] {
        assert_eq!(reverse(&value), Ok(expected), "{value:?}");
    }
}
