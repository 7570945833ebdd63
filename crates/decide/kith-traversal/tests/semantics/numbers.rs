//! Arithmetic, sums and conversions of numbers.

use crate::values::*;
use kith_gremlin::semantics::{greatest, least, number::*};
use kith_gremlin::{
    Result,
    value::{GType, Value},
};

const BIG_DOUBLE: f64 = 1.7976931348623157E+308;

#[track_caller]
fn refused(result: Result<Value>, message: &str) {
    let error = result.expect_err("there is no such number");
    assert!(error.message.contains(message), "{error}");
}

#[test]
fn results_have_the_wider_type_and_the_next_one_if_they_do_not_fit() {
    use Value::*;
    let table = [
        (add(&Byte(1), &Short(2)), Short(3)),
        (add(&Byte(127), &Byte(1)), Short(128)),
        (add(&Short(32767), &Short(1)), Int(32768)),
        (add(&Int(i32::MAX), &Int(1)), Long(2147483648)),
        (add(&Int(1), &big("1000")), big("1001")),
        (add(&Float(1.5), &Int(1)), Float(2.5)),
        (add(&Float(1.5), &Long(1)), Double(2.5)),
        (add(&Float(f32::MAX), &Float(f32::MAX)), Double(2.0 * f64::from(f32::MAX))),
        (add(&Double(BIG_DOUBLE), &Double(BIG_DOUBLE)), Double(f64::INFINITY)),
        (add(&big("1"), &Double(0.5)), decimal("1.5")),
        (add(&decimal("0.1"), &Double(0.2)), decimal("0.3")),
        (subtract(&Byte(-128), &Byte(1)), Short(-129)),
        (subtract(&Short(-32768), &Short(1)), Int(-32769)),
        (multiply(&Byte(127), &Byte(2)), Short(254)),
        (multiply(&Short(32767), &Short(2)), Int(65534)),
        (divide(&Byte(-128), &Byte(-1)), Short(128)),
        (divide(&Int(7), &Int(-2)), Int(-3)),
        (divide(&Byte(127), &Float(0.5)), Float(254.0)),
        (divide(&Int(2), &Double(4.0)), Double(0.5)),
        (divide(&Float(1.0), &Int(0)), Double(f64::INFINITY)),
        (divide(&Double(1.0), &Int(0)), Double(f64::INFINITY)),
        (fraction(&Int(1), &Int(2)), Float(0.5)),
        (fraction(&Long(1), &Int(2)), Double(0.5)),
        (fraction(&big("1"), &big("2")), decimal("0.5")),
        (divide(&decimal("1"), &decimal("3")), decimal("0.3333333333")),
        (divide(&decimal("2"), &decimal("3")), decimal("0.6666666667")),
        (divide(&decimal("1"), &decimal("1024")), decimal("0.0009765625")),
        (divide(&decimal("100.00"), &decimal("10")), decimal("10")),
        (divide(&decimal("0"), &decimal("7")), decimal("0")),
    ];
    for (index, (result, expected)) in table.into_iter().enumerate() {
        assert_eq!(result, Ok(expected), "row {index}");
    }
}

#[test]
fn null_leaves_the_first_operand() {
    assert_eq!(add(&Value::Int(1), &Value::Null), Ok(Value::Int(1)));
    assert_eq!(add(&Value::Null, &Value::Int(1)), Ok(Value::Null));
}

#[test]
fn what_does_not_fit_or_is_no_number_is_refused() {
    refused(add(&Value::Long(i64::MAX), &Value::Long(1)), "long overflow");
    refused(divide(&Value::Long(i64::MIN), &Value::Long(-1)), "long overflow");
    refused(divide(&Value::Int(1), &Value::Int(0)), "/ by zero");
    refused(divide(&big("1"), &Value::Int(0)), "/ by zero");
    refused(divide(&decimal("1"), &Value::Int(0)), "/ by zero");
    refused(add(&Value::Int(1), &"2".into()), "of type String");
    refused(add(&decimal("1"), &Value::Double(f64::NAN)), "NaN or an infinity");
}

#[test]
fn numbers_of_unlimited_width_stay_within_bounds() {
    let far = decimal("1E+2000000000");
    refused(add(&far, &Value::Int(1)), "more than 1048576 bits");
    refused(multiply(&far, &far), "a BigDecimal has a scale of");
    refused(as_number(&far, Some(GType::BigInt)), "more than 1048576 bits");
    refused(as_number(&far, Some(GType::Long)), "overflow");
    assert_eq!(as_number(&decimal("1E-2000000000"), Some(GType::Int)), Ok(Value::Int(0)));
    let mut power = big("1267650600228229401496703205376");
    let error = loop {
        match multiply(&power, &power) {
            Ok(square) => power = square,
            Err(error) => break error,
        }
    };
    assert!(error.message.contains("more than 1048576 bits"), "{error}");
}

#[test]
fn sums_skip_nulls_and_keep_their_type() {
    let sum = |values: &[(Value, i64)]| {
        let mut sum = Sum::default();
        values.iter().try_for_each(|(value, bulk)| sum.add(value, *bulk)).map(|()| sum.finish())
    };
    assert_eq!(sum(&[]), Ok(None));
    assert_eq!(sum(&[(Value::Null, 2)]), Ok(Some(Value::Null)));
    assert_eq!(
        sum(&[(Value::Null, 1), (10.into(), 1), (5.into(), 1), (Value::Null, 1)]),
        Ok(Some(15.into()))
    );
    assert_eq!(
        sum(&[(Value::Byte(1), 1), (Value::Byte(2), 1), (Value::Short(3), 1)]),
        Ok(Some(Value::Short(6)))
    );
    assert_eq!(sum(&[(Value::Byte(100), 1000)]), Ok(Some(Value::Int(100_000))));
    assert_eq!(sum(&[(Value::Float(0.5), 4)]), Ok(Some(Value::Float(2.0))));
    assert_eq!(sum(&[(1.into(), 1), (big("1000"), 2)]), Ok(Some(big("2001"))));
    assert_eq!(sum(&[(decimal("0.5"), 3)]), Ok(Some(decimal("1.5"))));
    assert!(sum(&[(Value::Long(i64::MAX), 2)]).unwrap_err().message.contains("long overflow"));
    assert!(sum(&[("a".into(), 1)]).unwrap_err().message.contains("sum() takes numbers"));
}

#[test]
fn means_are_doubles_or_decimals() {
    let mean = |values: &[(Value, i64)]| {
        let mut mean = Mean::default();
        values.iter().try_for_each(|(value, bulk)| mean.add(value, *bulk))?;
        mean.finish()
    };
    assert_eq!(mean(&[]), Ok(None));
    assert_eq!(mean(&[(Value::Null, 1)]), Ok(Some(Value::Null)));
    assert_eq!(mean(&[(Value::Null, 1), (10.into(), 1), (20.into(), 1)]), Ok(Some(15.0.into())));
    assert_eq!(
        mean(&[(29.into(), 1), (27.into(), 1), (32.into(), 1), (35.into(), 1)]),
        Ok(Some(30.75.into()))
    );
    assert_eq!(mean(&[(1.into(), 3), (Value::Float(5.0), 1)]), Ok(Some(2.0.into())));
    assert_eq!(mean(&[(Value::Long(i64::MAX), 2)]), Ok(Some((i64::MAX as f64).into())));
    assert_eq!(mean(&[(big("1"), 1), (2.into(), 1), (0.75.into(), 2)]), Ok(Some(decimal("1.125"))));
    assert!(mean(&[("a".into(), 1)]).unwrap_err().message.contains("mean() takes numbers"));
}

#[test]
fn extremes_are_in_the_wider_type_and_pass_over_what_is_missing() {
    assert_eq!(greatest(&29.into(), &0.4.into()), Ok(29.0.into()));
    assert_eq!(least(&1.into(), &2_i64.into()), Ok(1_i64.into()));
    assert_eq!(least(&Value::Null, &2.into()), Ok(2.into()));
    assert_eq!(least(&2.into(), &Value::Null), Ok(2.into()));
    assert_eq!(least(&Value::Null, &Value::Null), Ok(Value::Null));
    assert_eq!(greatest(&f64::NAN.into(), &2.into()), Ok(2.into()));
    assert_eq!(greatest(&2.into(), &f64::NAN.into()), Ok(2.into()));
    assert_eq!(greatest(&f64::NAN.into(), &f64::NAN.into()), Ok(f64::NAN.into()));
    assert_eq!(greatest(&Value::Null, &f64::NAN.into()), Ok(f64::NAN.into()));
    assert_eq!(greatest(&"josh".into(), &"vadas".into()), Ok("vadas".into()));
    refused(
        greatest(&"josh".into(), &1.into()),
        "max() cannot compare a value of type String with one of type Int",
    );
    refused(least(&decimal("1"), &"a".into()), "min() cannot compare");
    assert_eq!(greatest(&decimal("1"), &f64::INFINITY.into()), Ok(f64::INFINITY.into()));
}

#[test]
fn texts_become_the_narrowest_numbers() {
    for (text, expected) in [
        ("5", Value::Int(5)),
        (" -5 ", Value::Int(-5)),
        ("+5", Value::Int(5)),
        ("2147483648", Value::Long(2147483648)),
        ("9223372036854775808", big("9223372036854775808")),
        ("0x5", Value::Int(5)),
        ("-0xFF", Value::Int(-255)),
        ("0x80000000", Value::Long(2147483648)),
        ("5.75", Value::Float(5.75)),
        ("0.1", Value::Float(0.1)),
        ("-1.5e-3", Value::Float(-0.0015)),
        ("1e3", Value::Float(1000.0)),
        (".5", Value::Float(0.5)),
        ("5.", Value::Float(5.0)),
        ("0.0", Value::Float(0.0)),
        ("123.456789012", Value::Double(123.456789012)),
        ("16777217.0", Value::Double(16777217.0)),
        ("1e-50", Value::Double(1e-50)),
        ("1e39", Value::Double(1e39)),
        ("0.1234567890123456789", decimal("0.1234567890123456789")),
        ("1e400", decimal("1E+400")),
        ("1e-400", decimal("1E-400")),
        ("5l", Value::Long(5)),
        ("5F", Value::Float(5.0)),
        ("-5.5d", Value::Double(-5.5)),
    ] {
        assert_eq!(as_number(&text.into(), None), Ok(expected), "{text}");
    }
    for text in [
        "",
        "test",
        "1,000",
        "1_000",
        "0x",
        "0x-5",
        "--5",
        ".",
        "e5",
        "5e",
        "5e+",
        "NaN",
        "5.5l",
        "5ll",
        "l",
        "9223372036854775808l",
    ] {
        refused(as_number(&text.into(), None), "Can't parse string '");
    }
    refused(as_number(&"1e99999999999".into(), None), "a BigDecimal has a scale of -99999999999");
    refused(as_number(&Value::text("9".repeat(100_001)), None), "At most 100000 bytes");
}

#[test]
fn numbers_are_converted_if_they_fit() {
    use Value::*;
    for (value, token, expected) in [
        (Double(5.67), GType::Int, Int(5)),
        (Double(-5.67), GType::Int, Int(-5)),
        (Int(5), GType::Long, Long(5)),
        (Double(15.0), GType::Byte, Byte(15)),
        (Value::from("5"), GType::Byte, Byte(5)),
        (Value::from("5.9"), GType::Short, Short(5)),
        (Int(42), GType::BigInt, big("42")),
        (Double(1e20), GType::BigInt, big("100000000000000000000")),
        (Double(0.1), GType::BigDecimal, decimal("0.1")),
        (decimal("12.9"), GType::Long, Long(12)),
        (decimal("-12.9"), GType::BigInt, big("-12")),
        (big("7"), GType::Double, Double(7.0)),
        (Double(2.5), GType::Float, Float(2.5)),
        (Double(f64::INFINITY), GType::Float, Float(f32::INFINITY)),
        (Float(0.5), GType::Number, Float(0.5)),
        (date("1970-01-01T00:00:01.5Z"), GType::Long, Long(1500)),
        (Null, GType::Int, Null),
    ] {
        assert_eq!(as_number(&value, Some(token)), Ok(expected), "{value:?} to {token}");
    }
    assert_eq!(as_number(&Float(0.5), None), Ok(Float(0.5)));
    assert_eq!(as_number(&date("1970-01-01T00:00:01Z"), None), Ok(Long(1000)));
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    for (value, token, message) in [
        (Value::Int(32768), GType::Short, "Can't convert number of type Integer to Short due to overflow."),
        (Value::Double(300.0), GType::Byte, "Can't convert number of type Double to Byte due to overflow."),
        (Value::Double(f64::NAN), GType::Int, "Double to Integer due to overflow"),
        (Value::Double(1e300), GType::Float, "Double to Float due to overflow"),
        (Value::Double(f64::INFINITY), GType::BigDecimal, "Double to BigDecimal due to overflow"),
        (decimal("1E+400"), GType::Double, "BigDecimal to Double due to overflow"),
        (big("9223372036854775808"), GType::Long, "BigInteger to Long due to overflow"),
        (Value::Int(1), GType::Vertex, "asNumber() requires a numeric type token, got VERTEX"),
        (Value::from("1,000"), GType::BigInt, "Can't parse string '1,000' as number."),
        (Value::Bool(true), GType::Int, "Can't parse type Boolean as number."),
    ] {
        refused(as_number(&value, Some(token)), message);
    }
}
