//! Tests of expressions.

use kith_traversal::functions::Expression;
use proptest::prelude::*;

/// The value of an expression in which `b` is 4 and all other variables are 3.
fn value(text: &str) -> f64 {
    let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let values: Vec<f64> =
        expression.variables().iter().map(|name| if &**name == "b" { 4.0 } else { 3.0 }).collect();
    expression.evaluate(&values).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    match Expression::parse(text) {
        Ok(expression) => expression.evaluate(&[1.0]).expect_err("an error").message,
        Err(error) => error.message,
    }
}

#[test]
fn operators_bind_as_in_exp4j() {
    let cases = [
        ("a + b * 2", 11.0),
        ("(a+b)*2", 14.0),
        ("a - b - 1", -2.0),
        ("2 ^ a ^ 2", 512.0),
        ("-a^2", -9.0),
        ("a^-1", 1.0 / 3.0),
        ("2 ^ -1 * 4", 2.0),
        ("-a*b", -12.0),
        ("a - -b", 7.0),
        ("+-+a", -3.0),
        ("7 % b", 3.0),
        ("-7 % b", -3.0),
        ("b / a * a", 4.0),
        ("1.5e2 + .5 + 2.", 152.5),
        ("0-_", -3.0),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn functions_take_parentheses_or_all_that_follows() {
    assert_eq!(value("sin _"), 3_f64.sin());
    assert_eq!(value("sin(_) + 1"), 3_f64.sin() + 1.0);
    assert_eq!(value("sin _ + 1"), 4_f64.sin());
    assert_eq!(value("2 * sqrt abs (0 - 16)"), 8.0);
    assert_eq!(value("signum(0) + signum(-2)"), -1.0);
    assert_eq!(value("log10(1000)"), 1000_f64.log10());
    assert_eq!(value("log2 8 + expm1 0 + log1p 0"), 3.0);
    assert_eq!(value("floor(2.7) + ceil(2.2) + cbrt(27)"), 8.0);
}

#[test]
fn variables_are_listed_once_in_their_order() {
    let expression = Expression::parse("b + a * b - _ + sinus").expect("an expression");
    assert_eq!(
        expression.variables().iter().map(|name| &**name).collect::<Vec<_>>(),
        ["b", "a", "_", "sinus"]
    );
    assert_eq!(expression.evaluate(&[1.0, 2.0, 3.0, 4.0]), Ok(4.0));
}

#[test]
fn mistakes_are_explained() {
    assert!(error("1 / (_ - 1)").contains("zero"));
    assert!(error("1 % 0").contains("zero"));
    let column = "expected a number, a variable or a function at character 5 of the expression of math(), found the end";
    assert_eq!(error("1 + "), column);
    assert!(error("1 é").contains("character 3"));
    assert!(error("2 a").contains("operator"));
    assert!(error("(1").contains("\")\""));
    assert!(error("sine(1)").contains("functions are abs"));
    assert!(error("").contains("character 1"));
    for text in ["(".repeat(100_000), "2^".repeat(100_000), "sin ".repeat(100_000)] {
        assert!(error(&text).contains("100 deep"), "{}", &text[..8]);
    }
    assert_eq!(value(&format!("0{}", "+1".repeat(100_000))), 100_000.0);
    assert_eq!(value(&format!("{}1", "-".repeat(100_000))), 1.0);
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in "[-+*/%^()0-9a-c_. e]{0,40}|\\PC*") {
        if let Ok(expression) = Expression::parse(&text) {
            let values = vec![1.0; expression.variables().len()];
            let _ = expression.evaluate(&values);
        }
    }

    #[test]
    fn sums_and_products_are_those_of_rust(a in -1e6..1e6, b in -1e6..1e6, c in 1.0..1e6) {
        let expression = Expression::parse("a + b * a / c - b % c").expect("an expression");
        prop_assert_eq!(expression.evaluate(&[a, b, c]), Ok(a + b * a / c - b % c));
    }
}
