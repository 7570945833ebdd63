//! Predicates as drivers send them.

use crate::values::*;
use kith_gremlin::semantics::Test;
use kith_gremlin::{
    bytecode::Bytecode,
    predicate::Predicate,
    value::{GType, Value},
};
use kith_types::ErrorCode;
use std::sync::Arc;

fn p(operator: &str, operands: impl IntoIterator<Item = Value>) -> Predicate {
    Predicate { operator: operator.into(), operands: operands.into_iter().collect() }
}

fn inner(operator: &str, operand: impl Into<Value>) -> Value {
    Value::Predicate(Arc::new(p(operator, [operand.into()])))
}

fn says(predicate: &Predicate, value: impl Into<Value>) -> bool {
    Test::compile(predicate).unwrap_or_else(|error| panic!("{predicate:?}: {error}")).is_true(&value.into())
}

fn refusal(predicate: &Predicate) -> String {
    let error = Test::compile(predicate).expect_err("the predicate is wrong");
    assert_eq!(error.code, ErrorCode::BadRequest);
    error.message
}

#[test]
fn comparisons_of_numbers_hold_as_they_should() {
    let table = [
        ("eq", [false, true, false]),
        ("neq", [true, false, true]),
        ("lt", [true, false, false]),
        ("lte", [true, true, false]),
        ("gt", [false, false, true]),
        ("gte", [false, true, true]),
    ];
    for (operator, expected) in table {
        let predicate = p(operator, [Value::Int(2)]);
        for (value, expected) in [1.0, 2.0, 3.0].into_iter().zip(expected) {
            assert_eq!(says(&predicate, value), expected, "{value} {operator} 2");
        }
    }
}

#[test]
fn what_cannot_be_compared_is_unequal_and_neither_less_nor_greater() {
    let pairs = [
        (Value::from("foo"), Value::Double(1.0)),
        (Value::Double(f64::NAN), Value::Double(f64::NAN)),
        (Value::Double(1.0), Value::Double(f64::NAN)),
        (Value::Double(f64::NAN), Value::Null),
        (Value::Null, Value::Int(1)),
    ];
    for (value, operand) in pairs {
        let says = |operator| says(&p(operator, [operand.clone()]), value.clone());
        assert!(!says("eq"));
        assert!(says("neq"));
        for operator in ["lt", "lte", "gt", "gte"] {
            assert!(!says(operator), "{value:?} {operator} {operand:?}");
        }
    }
    for (operator, expected) in
        [("eq", true), ("neq", false), ("lt", false), ("lte", true), ("gt", false), ("gte", true)]
    {
        assert_eq!(says(&p(operator, [Value::Null]), Value::Null), expected, "null {operator} null");
    }
}

#[test]
fn ranges_have_the_bounds_of_tinkerpop() {
    let table = [
        ("between", [false, true, true, false, false]),
        ("inside", [false, false, true, false, false]),
        ("outside", [true, false, false, false, true]),
    ];
    for (operator, expected) in table {
        for (value, expected) in [0, 1, 2, 3, 4].into_iter().zip(expected) {
            let both = p(operator, [Value::Int(1), Value::Int(3)]);
            let one_list = p(operator, [list([1.into(), 3.into()])]);
            assert_eq!(says(&both, value), expected, "{value} {operator}");
            assert_eq!(says(&one_list, value), expected, "{value} {operator}");
        }
        assert!(!says(&p(operator, [Value::Int(1), Value::Int(3)]), "x"));
    }
}

#[test]
fn members_are_found_by_value_however_the_operands_arrive() {
    let operands =
        || vec![Value::Int(27), Value::Double(0.5), "josh".into(), vertex(1), list([1.into()]), Value::Null];
    let forms = [
        p("within", operands()),
        p("within", [list(operands())]),
        p("within", [set(operands())]),
        p("within", [bulk(operands().into_iter().map(|value| (value, 3)))]),
    ];
    for predicate in forms {
        for value in
            [27_i64.into(), decimal("0.50"), "josh".into(), vertex(1_i64), list([1.0.into()]), Value::Null]
        {
            assert!(says(&predicate, value.clone()), "{value:?}");
        }
        for value in [Value::Int(1), edge(1), Value::Double(f64::NAN), "27".into(), list([])] {
            assert!(!says(&predicate, value.clone()), "{value:?}");
        }
    }
    for nothing in [p("within", []), p("within", [list([])])] {
        assert!(!says(&nothing, Value::Null));
    }
    assert!(says(&p("without", []), 1));
    assert!(!says(&p("without", [Value::Int(1)]), 1.0));
    assert!(says(&p("within", [Value::Null]), Value::Null));
    assert!(!says(&p("within", [Value::Double(f64::NAN)]), f64::NAN));
}

#[test]
fn members_of_any_width_are_found() {
    let huge = "9223372036854775808";
    for operand in [big(huge), decimal("9223372036854775808.0")] {
        assert!(says(&p("within", [operand.clone()]), big(huge)));
        assert!(says(&p("within", [operand]), decimal("9.223372036854775808E+18")));
    }
    let quintillion = Value::Long(1_000_000_000_000_000_000);
    assert!(says(&p("within", [Value::Double(1e18)]), quintillion.clone()));
    assert!(says(&p("within", [quintillion]), Value::Double(1e18)));
    assert!(says(&p("within", [Value::Double(-0.0)]), 0));
}

#[test]
fn texts_are_searched() {
    let table = [
        ("containing", "ark", true),
        ("startingWith", "mar", true),
        ("endingWith", "ko", true),
        ("regex", "r.o$", true),
        ("regex", "^ark", false),
        ("containing", "Mar", false),
        ("startingWith", "", true),
    ];
    for (operator, operand, expected) in table {
        let negated = format!("not{}{}", operator[..1].to_uppercase(), &operator[1..]);
        assert_eq!(says(&p(operator, [operand.into()]), "marko"), expected, "{operator} {operand}");
        assert_eq!(says(&p(&negated, [operand.into()]), "marko"), !expected, "{negated} {operand}");
        for value in [Value::Null, Value::Int(1), texts("marko")] {
            assert!(!says(&p(operator, [operand.into()]), value.clone()));
            assert!(says(&p(&negated, [operand.into()]), value));
        }
    }
    for (operator, expected) in [("containing", false), ("notContaining", true), ("regex", false)] {
        assert_eq!(says(&p(operator, [Value::Null]), "marko"), expected, "{operator}");
    }
}

#[test]
fn types_are_distinguished_by_token_and_by_name() {
    for operand in [GType::Int.into(), "Integer".into(), Value::Class("java.lang.Integer".into())] {
        assert!(says(&p("typeOf", [operand.clone()]), 1));
        assert!(!says(&p("typeOf", [operand.clone()]), 1_i64));
        assert!(!says(&p("typeOf", [operand]), Value::Null));
    }
    assert!(says(&p("typeOf", [GType::Null.into()]), Value::Null));
    assert!(says(&p("typeOf", [GType::Number.into()]), decimal("1")));
}

#[test]
fn connectives_take_what_cannot_be_compared_as_false() {
    let nan = || f64::NAN;
    let and = |a, b| says(&p("and", [a, b]), 1.0);
    let or = |a, b| says(&p("or", [list([a, b])]), 1.0);
    assert!(and(inner("eq", 1), inner("gt", 0)));
    assert!(!and(inner("eq", 1), inner("lt", nan())));
    assert!(!and(inner("lt", nan()), inner("gt", 0)));
    assert!(or(inner("lt", nan()), inner("gt", 0)));
    assert!(!or(inner("neq", 1), inner("lt", nan())));
    assert!(says(&p("not", [inner("lt", 0)]), 1.0));
    assert!(says(&p("not", [inner("gt", nan())]), 1.0));
    assert!(says(&p("not", [inner("lt", 1)]), "a"));
    let nested = Value::Predicate(Arc::new(p("or", [inner("eq", 1), inner("eq", 2)])));
    assert!(!says(&p("not", [nested]), 2));
}

#[test]
fn wrong_predicates_are_refused_with_the_reason() {
    assert_eq!(
        refusal(&p("startsWith", [])),
        "there is no predicate startsWith(); did you mean startingWith?"
    );
    assert_eq!(refusal(&p("frobnicate", [])), "there is no predicate frobnicate()");
    assert_eq!(refusal(&p("gt", [])), "the predicate gt() takes one value, but got 0 values");
    assert_eq!(
        refusal(&p("between", [1.into()])),
        "the predicate between() takes two values, but got 1 values"
    );
    assert_eq!(
        refusal(&p("containing", [1.into()])),
        "the predicate containing() takes a String, but got a value of type Int"
    );
    assert_eq!(
        refusal(&p("and", [1.into()])),
        "the predicate and() takes predicates, but got a value of type Int"
    );
    assert_eq!(refusal(&p("or", [])), "the predicate or() takes predicates, but got 0 values");
    assert_eq!(
        refusal(&p("not", [inner("eq", 1), inner("eq", 2)])),
        "the predicate not() takes one predicate, but got 2 values"
    );
    assert_eq!(
        refusal(&p("typeOf", ["Intger".into()])),
        "Intger is not a registered type; did you mean Integer?"
    );
    assert!(refusal(&p("typeOf", ["java.lang.Integer".into()])).contains("not a registered type"));
    assert!(refusal(&p("typeOf", [1.into()])).contains("takes a GType"));
    assert!(refusal(&p("regex", ["(".into()])).contains("regular expression"));
    assert!(refusal(&p("regex", ["(?=a)".into()])).contains("Look-around"));
    let traversal = Value::Traversal(Arc::new(Bytecode::default()));
    let error = Test::compile(&p("eq", [traversal])).unwrap_err();
    assert_eq!(error.code, ErrorCode::UnsupportedOperation);
    assert_eq!(error.message, "a traversal as the operand of the predicate eq() is not supported");
}
