//! Numbers as Java prints them, and which decimals are accepted.

use super::Value;
use crate::error::{GremlinError, Result};
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use std::sync::Arc;

/// A `BigDecimal` from outside has at most this many digits after its point, or zeros before it. Arithmetic with a number like
/// 1E+2000000000, which takes a few bytes in a request, would take gigabytes.
pub const DECIMAL_SCALE_MAX: i64 = 10_000;

/// A `BigInteger` from outside, or the digits of a `BigDecimal`, have at most this many bytes, which is about 9,900 digits.
/// Arithmetic takes time that grows with the square of their number.
pub const INTEGER_BYTES_MAX: usize = 4_096;

/// The integer of these bytes in two's complement, the most significant first.
///
/// # Errors
///
/// There are more than [`INTEGER_BYTES_MAX`] of them.
pub fn integer_of_bytes(bytes: &[u8]) -> Result<BigInt> {
    if INTEGER_BYTES_MAX < bytes.len() {
        return Err(too_long(bytes.len() as u64));
    }
    Ok(BigInt::from_signed_bytes_be(bytes))
}

/// The integer of these decimal digits, with an optional sign.
///
/// # Errors
///
/// The text is no integer, or one of more than [`INTEGER_BYTES_MAX`] bytes.
pub fn integer_of_text(text: &str) -> Result<BigInt> {
    let number = short(text)?.parse::<BigInt>();
    bounded(number.map_err(|_| GremlinError::bad(format!("{text:?} is no integer")))?)
}

/// The decimal of these digits, with an optional sign, point and exponent.
///
/// # Errors
///
/// The text is no decimal, or the limits of [`integer_of_text`] and [`decimal`] do not allow it.
pub fn decimal_of_text(text: &str) -> Result<Value> {
    let number = short(text)?.parse::<BigDecimal>();
    let number = number.map_err(|_| GremlinError::bad(format!("{text:?} is no decimal number")))?;
    let (unscaled, scale) = number.into_bigint_and_exponent();
    decimal(bounded(unscaled)?, scale)
}

/// The text, if it is so short that it could be within [`INTEGER_BYTES_MAX`].
fn short(text: &str) -> Result<&str> {
    const CHARS_MAX: usize = 9_900;
    if CHARS_MAX < text.len() {
        let message = format!("a number has {} digits; about {CHARS_MAX} are accepted", text.len());
        return Err(GremlinError::bad(message));
    }
    Ok(text)
}

/// The integer, if it has at most [`INTEGER_BYTES_MAX`] bytes.
fn bounded(number: BigInt) -> Result<BigInt> {
    let bytes = number.bits() / 8 + 1;
    if bytes > INTEGER_BYTES_MAX as u64 {
        return Err(too_long(bytes));
    }
    Ok(number)
}

fn too_long(bytes: u64) -> GremlinError {
    GremlinError::bad(format!("a BigInteger has {bytes} bytes; at most {INTEGER_BYTES_MAX} are accepted"))
}

/// The decimal `unscaled` · 10^-`scale`.
///
/// # Errors
///
/// Its scale is beyond [`DECIMAL_SCALE_MAX`].
pub fn decimal(unscaled: BigInt, scale: i64) -> Result<Value> {
    if !(-DECIMAL_SCALE_MAX..=DECIMAL_SCALE_MAX).contains(&scale) {
        return Err(GremlinError::bad(format!(
            "a BigDecimal has a scale of {scale}; scales from {} to {DECIMAL_SCALE_MAX} are accepted",
            -DECIMAL_SCALE_MAX
        )));
    }
    Ok(Value::BigDecimal(Arc::new(BigDecimal::new(unscaled, scale))))
}

/// A `Double` as Java prints it: `1.0`, `1.0E10`, `NaN`, `-Infinity`.
pub fn double_text(value: f64) -> String {
    java_text(value, format!("{value:?}"), format!("{value:e}"))
}

/// A `Float` as Java prints it.
pub fn float_text(value: f32) -> String {
    java_text(f64::from(value), format!("{value:?}"), format!("{value:e}"))
}

/// Java's choice between two notations of a number, both with as few digits as tell it from all others.
fn java_text(value: f64, plain: String, scientific: String) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return plain;
    }
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

/// A `BigDecimal` as Java prints it: with an exponent if its scale is negative, or if more than five zeros would follow the
/// point.
pub fn decimal_text(value: &BigDecimal) -> String {
    let (unscaled, scale) = value.as_bigint_and_exponent();
    let digits = unscaled.magnitude().to_string();
    let sign = if unscaled.sign() == num_bigint::Sign::Minus { "-" } else { "" };
    let digit_count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let exponent = digit_count.saturating_sub(1).saturating_sub(scale);
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    if 0 < scale && -6 <= exponent {
        let places = usize::try_from(scale).unwrap_or(usize::MAX);
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        return format!("{sign}{whole}.{fraction}");
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let plus = if 0 < exponent { "+" } else { "" };
    let exponent = if exponent == 0 { String::new() } else { format!("E{plus}{exponent}") };
    format!("{sign}{first}{point}{rest}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_numbers_look_as_in_java() {
        let doubles = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.001, "0.001"),
            (0.000_123_4, "1.234E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1e10, "1.0E10"),
            (123_456_789.125, "1.23456789125E8"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, text) in doubles {
            assert_eq!(double_text(value), text);
        }
        assert_eq!(float_text(0.1), "0.1");
        assert_eq!(float_text(3.4e38), "3.4E38");
    }

    #[test]
    fn decimals_look_as_in_java() {
        let decimals = [
            (123, 0, "123"),
            (123, 2, "1.23"),
            (-5, 3, "-0.005"),
            (0, 2, "0.00"),
            (123, -3, "1.23E+5"),
            (1, 7, "1E-7"),
            (12, 9, "1.2E-8"),
        ];
        for (unscaled, scale, text) in decimals {
            assert_eq!(decimal_text(&BigDecimal::new(unscaled.into(), scale)), text);
        }
    }

    #[test]
    fn texts_are_numbers() {
        assert_eq!(integer_of_text("-12").expect("an integer"), (-12).into());
        assert_eq!(decimal_of_text("1.50").expect("a decimal").to_string(), "1.50");
        assert_eq!(decimal_of_text("15e3").expect("a decimal").to_string(), "1.5E+4");
        for text in ["", "1.5", "0x1", "1e3"] {
            assert!(integer_of_text(text).is_err(), "{text}");
        }
        for text in ["", "a", "1e99999", "1e-99999999999999999999", &"7".repeat(10_000)] {
            assert!(decimal_of_text(text).is_err(), "{text}");
        }
        assert!(integer_of_bytes(&[1; INTEGER_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn a_decimal_that_would_fill_the_memory_is_refused() {
        assert!(decimal(1.into(), -DECIMAL_SCALE_MAX).is_ok());
        let error = decimal(1.into(), i64::from(i32::MIN)).expect_err("too large");
        assert!(error.message.contains("-2147483648"), "{error}");
    }
}
