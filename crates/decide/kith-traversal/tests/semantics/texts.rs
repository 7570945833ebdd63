//! Tests of functions of text.

use kith_gremlin::value::{Scope, Value};
use kith_traversal::functions::{TextFunction, concat};
use proptest::prelude::*;
use std::sync::Arc;

fn texts(texts: &[&str]) -> Value {
    Value::list(texts.iter().map(|text| Value::from(*text)).collect::<Vec<_>>())
}

fn apply(function: &TextFunction, text: &str) -> Value {
    function.apply(&text.into(), Scope::Global).expect("a text is accepted")
}

fn substring_of(start: i32, end: Option<i32>) -> TextFunction {
    TextFunction::Substring { start, end }
}

#[test]
fn case_and_white_space_change() {
    use TextFunction::*;
    let cases = [
        (ToLower, "tESt É", "test é"),
        (ToUpper, "tESt ß", "TEST SS"),
        (Trim, "\u{3000} a b\t\n", "a b"),
        (LTrim, "\u{3000}abc\u{3000}", "abc\u{3000}"),
        (RTrim, "\u{3000}abc\u{3000}", "\u{3000}abc"),
        (Trim, "\u{a0}a\u{1f}", "\u{a0}a"),
        (Trim, "  ", ""),
    ];
    for (function, text, expected) in cases {
        assert_eq!(apply(&function, text), expected.into(), "{function:?} {text:?}");
    }
}

#[test]
fn lengths_count_utf_16() {
    for (text, length) in [("feature", 7), ("", 0), ("é", 1), ("😀", 2)] {
        assert_eq!(apply(&TextFunction::Length, text), length.into(), "{text}");
    }
}

#[test]
fn parts_are_replaced() {
    let replace = |old: Option<&str>, new: Option<&str>| TextFunction::Replace {
        old: old.map(Arc::from),
        new: new.map(Arc::from),
    };
    let cases = [
        (replace(Some("h"), Some("j")), "that", "tjat"),
        (replace(Some("p"), Some("")), "ripple", "rile"),
        (replace(None, Some("g")), "lop", "lop"),
        (replace(Some("o"), None), "lop", "lop"),
        (replace(Some(""), Some("x")), "lop", "lop"),
    ];
    for (function, text, expected) in cases {
        assert_eq!(apply(&function, text), expected.into(), "{function:?}");
    }
}

#[test]
fn texts_are_split() {
    let cases: [(Option<&str>, &str, &[&str]); 10] = [
        (Some("h"), "that", &["t", "at"]),
        (Some("h"), "test", &["test"]),
        (None, " hello \t world ", &["hello", "world"]),
        (None, "", &[]),
        (Some(""), "thé", &["t", "h", "é"]),
        (Some(""), "", &[""]),
        (Some("--"), "--a----b", &["a", "b"]),
        (Some(","), "a,", &["a", ""]),
        (Some(","), "", &[]),
        (Some("a"), "vadas", &["v", "d", "s"]),
    ];
    for (separator, text, expected) in cases {
        let split = TextFunction::Split { separator: separator.map(Arc::from) };
        assert_eq!(apply(&split, text), texts(expected), "{text:?} at {separator:?}");
    }
}

#[test]
fn positions_count_from_either_end() {
    let cases = [
        (1, Some(8), "hello world", "ello wo"),
        (2, None, "ripple", "pple"),
        (9, None, "lop", ""),
        (1, Some(0), "lop", ""),
        (-3, None, "marko", "rko"),
        (1, Some(-1), "ripple", "ippl"),
        (-4, Some(2), "lop", "lo"),
        (-4, Some(2), "ripple", ""),
        (-3, Some(-1), "ripple", "pl"),
        (-1, Some(i32::MIN), "", ""),
        (0, Some(1), "😀", "\u{fffd}"),
    ];
    for (start, end, text, expected) in cases {
        assert_eq!(apply(&substring_of(start, end), text), expected.into(), "{text} {start} {end:?}");
    }
}

#[test]
fn null_stays_null_and_other_types_are_refused() {
    let trim = TextFunction::LTrim;
    let list = Value::list([" a".into(), Value::Null]);
    assert_eq!(trim.apply(&Value::Null, Scope::Global), Ok(Value::Null));
    assert_eq!(trim.apply(&Value::Null, Scope::Local), Ok(Value::Null));
    assert_eq!(trim.apply(&list, Scope::Local), Ok(Value::list(["a".into(), Value::Null])));
    assert_eq!(trim.apply(&" a".into(), Scope::Local), Ok("a".into()));
    let error = |value: Value, scope| trim.apply(&value, scope).expect_err("an error").message;
    let expected = "The lTrim() step can only take string as argument, encountered List";
    assert_eq!(error(list, Scope::Global), expected);
    let expected = "The lTrim(local) step can only take string or list of strings, encountered Int";
    assert_eq!(error(Value::list([1.into()]), Scope::Local), expected);
    assert_eq!(error(1.into(), Scope::Local), expected);
}

#[test]
fn texts_are_joined_without_nulls() {
    let [a, b] = ["a", "b"].map(Value::from);
    assert_eq!(concat(&a, [&b, &Value::Null, &b]), Ok("abb".into()));
    assert_eq!(concat(&Value::Null, [&b]), Ok("b".into()));
    assert_eq!(concat(&Value::Null, [&Value::Null]), Ok(Value::Null));
    assert_eq!(concat(&a, []), Ok("a".into()));
    let error = concat(&a, [&Value::list([])]).expect_err("an error").message;
    assert_eq!(error, "String concat() can only take string as argument, encountered List");
}

proptest! {
    #[test]
    fn a_text_is_made_of_its_substrings(text in "\\PC*", cut in 0..20) {
        let whole = apply(&substring_of(0, Some(cut)), &text).to_string() + &apply(&substring_of(cut, None), &text).to_string();
        // A cut within a surrogate pair loses the character.
        prop_assume!(!whole.contains('\u{fffd}'));
        prop_assert_eq!(whole, text);
    }

    #[test]
    fn every_position_is_accepted(text in "\\PC*", start: i32, end: Option<i32>) {
        apply(&substring_of(start, end), &text);
    }
}
