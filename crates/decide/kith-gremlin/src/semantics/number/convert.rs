//! Conversions of numbers and texts to types of numbers.

use super::{
    Kind, Number,
    arithmetic::{double, fit},
    compare,
    size::{decimal_value, integral},
};
use crate::{
    GremlinError, Result,
    value::{GType, Value},
};
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::{str::FromStr, sync::Arc};

/// Longer texts are not read as numbers, because the time grows with the square of the length.
const TEXT_BYTES_MAX: usize = 100_000;

/// The result of `asNumber(token)` for a value.
///
/// A text with a decimal point or an exponent becomes a `Float` if that is written with the same digits, or else a `Double`
/// if that is, or else a `BigDecimal`. Other texts become an `Int`, or the next wider type in which they fit; `0x` begins
/// hexadecimal digits. A text may end with `L`, `F` or `D`, for a `Long`, `Float` or `Double`. A date becomes its
/// milliseconds since 1970. Without a token, or with `GType.NUMBER`, numbers stay as they are. With one, they are converted,
/// and their fractions are cut off if it names a type of integers. Null stays null.
///
/// # Errors
/// The token names no type of numbers, the text is no number, the type cannot become a number, or the number does not fit.
pub fn as_number(value: &Value, token: Option<GType>) -> Result<Value> {
    let kind = match token {
        None | Some(GType::Number) => None,
        Some(token) => Some(Kind::named(token).ok_or_else(|| {
            GremlinError::bad(format!(
                "asNumber() requires a numeric type token, got {token}, which names no type of numbers"
            ))
        })?),
    };
    let number = match value {
        Value::Null => return Ok(Value::Null),
        Value::String(text) => parse(text)?,
        Value::DateTime(time) => Value::Long(time.timestamp_millis()),
        number if number.is_number() => number.clone(),
        other => {
            return Err(GremlinError::bad(format!("Can't parse type {} as number.", other.type_name())));
        }
    };
    match kind {
        None => Ok(number),
        Some(kind) => convert(&number, kind)?.ok_or_else(|| overflow(&number, kind)),
    }
}

/// A number in a type that is at least as wide as its own.
pub(in crate::semantics) fn widen(number: &Value, kind: Kind) -> Result<Value> {
    convert(number, kind)?.ok_or_else(|| overflow(number, kind))
}

fn overflow(number: &Value, kind: Kind) -> GremlinError {
    GremlinError::bad(format!(
        "Can't convert number of type {} to {} due to overflow.",
        Kind::of(number).map_or(number.type_name(), Kind::java_name),
        kind.java_name()
    ))
}

fn parse(text: &str) -> Result<Value> {
    let unreadable = || GremlinError::bad(format!("Can't parse string '{text}' as number."));
    if TEXT_BYTES_MAX < text.len() {
        return Err(GremlinError::bad(format!(
            "Can't parse string of {} bytes as number. At most {TEXT_BYTES_MAX} bytes are read.",
            text.len()
        )));
    }
    let trimmed = text.trim();
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return whole(digits, 16, negative).ok_or_else(unreadable);
    }
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return whole(digits, 10, negative).ok_or_else(unreadable);
    }
    if let Some(kind) = suffix(digits) {
        let number = parse(&trimmed[..trimmed.len() - 1]).map_err(|_| unreadable())?;
        let whole = !matches!(Kind::of(&number), Some(kind) if kind.is_floating());
        return convert(&number, kind)?.filter(|_| whole || kind.is_floating()).ok_or_else(unreadable);
    }
    if !is_decimal(digits) {
        return Err(unreadable());
    }
    let exact = BigDecimal::from_str(trimmed).map_err(|_| unreadable()).and_then(decimal_value)?;
    Ok(narrow_decimal(trimmed, &exact).unwrap_or(exact))
}

/// The type that the last letter of a text asks for.
fn suffix(digits: &str) -> Option<Kind> {
    match digits.as_bytes() {
        [.., b'0'..=b'9' | b'.', b'l' | b'L'] => Some(Kind::Long),
        [.., b'0'..=b'9' | b'.', b'f' | b'F'] => Some(Kind::Float),
        [.., b'0'..=b'9' | b'.', b'd' | b'D'] => Some(Kind::Double),
        _ => None,
    }
}

/// The `Float` that a text writes with all its digits, or else the `Double`; `None` if both would round.
fn narrow_decimal(text: &str, exact: &Value) -> Option<Value> {
    let (single, double): (f32, f64) = (text.parse().ok()?, text.parse().ok()?);
    let vanished = |number: f64| number == 0.0 && number_is_not_zero(exact);
    if single.is_finite() && !vanished(f64::from(single)) && format!("{single:e}") == format!("{double:e}") {
        return Some(Value::Float(single));
    }
    let rounded = Value::Double(double);
    let same = compare(Number::of(&rounded)?, Number::of(exact)?).is_eq();
    same.then_some(rounded)
}

fn number_is_not_zero(number: &Value) -> bool {
    Number::of(number).is_some_and(|number| compare(number, Number::Integer(0)).is_ne())
}

/// The narrowest of `Int`, `Long` and `BigInteger` for a row of digits.
fn whole(digits: &str, radix: u32, negative: bool) -> Option<Value> {
    if !digits.bytes().all(|byte| char::from(byte).is_digit(radix)) {
        return None;
    }
    let number = BigInt::parse_bytes(digits.as_bytes(), radix)?;
    let number = if negative { -number } else { number };
    let narrow = number.to_i64().and_then(|number| fit(i128::from(number), Kind::Int));
    Some(narrow.unwrap_or_else(|| Value::BigInteger(Arc::new(number))))
}

/// Whether a text without a sign has the form `digits[.digits][e[sign]digits]`, with at least one digit in front of the `e`.
fn is_decimal(text: &str) -> bool {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent))
}

/// The number in another type; `None` if it does not fit.
fn convert(value: &Value, kind: Kind) -> Result<Option<Value>> {
    let Some(number) = Number::of(value).filter(|_| Kind::of(value) != Some(kind)) else {
        return Ok(Some(value.clone()));
    };
    Ok(match kind {
        Kind::Byte => truncated(number).and_then(|number| i8::try_from(number).ok()).map(Value::Byte),
        Kind::Short => truncated(number).and_then(|number| i16::try_from(number).ok()).map(Value::Short),
        Kind::Int => truncated(number).and_then(|number| i32::try_from(number).ok()).map(Value::Int),
        Kind::Long => truncated(number).map(Value::Long),
        Kind::BigInteger => match number.decimal() {
            Some(decimal) => Some(Value::BigInteger(Arc::new(integral(&decimal)?))),
            None => None,
        },
        Kind::Float => {
            let narrow = double(number) as f32;
            let fits =
                narrow.is_finite() || matches!(number, Number::Floating(number) if !number.is_finite());
            fits.then_some(Value::Float(narrow))
        }
        Kind::Double => {
            let narrow = double(number);
            let fits = narrow.is_finite() || matches!(number, Number::Floating(_));
            fits.then_some(Value::Double(narrow))
        }
        Kind::BigDecimal => number.decimal().map(|decimal| Value::BigDecimal(Arc::new(decimal.into_owned()))),
    })
}

/// The integral part of a number; `None` if it does not fit in a `Long`.
fn truncated(number: Number<'_>) -> Option<i64> {
    match number {
        Number::Integer(number) => Some(number),
        Number::Floating(number) => number.to_i64(),
        Number::BigInteger(number) => number.to_i64(),
        // Beyond 19 digits nothing fits in a Long; the digits of a huge exponent are never written out.
        Number::BigDecimal(number) if 19 < number.order_of_magnitude() => None,
        Number::BigDecimal(number) => integral(number).ok()?.to_i64(),
    }
}
