//! Number literals: `1`, `1L`, `0x1F`, `017`, `1.5`, `1e3`, `2.5m`.

use crate::value::{Value, numbers};
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use num_traits::{Num, ToPrimitive};
use std::sync::Arc;

/// A longer literal is refused, since reading one takes time quadratic in its length.
const DIGITS_MAX: usize = 10_000;

/// The parts of a literal.
struct Literal {
    /// The sign and digits, without prefix, underscores and suffix.
    digits: String,
    radix: u32,
    is_fractional: bool,
    /// In lower case.
    suffix: Option<char>,
    length: usize,
}

/// Reads the number at the begin of `rest`, which has a digit there or after a sign. Returns its value and its length in the
/// text.
///
/// # Errors
///
/// The fault in the number.
pub fn number(rest: &str) -> Result<(Value, usize), String> {
    let literal = split(rest);
    let written = &rest[..literal.length];
    if literal.length > DIGITS_MAX {
        return Err(format!("a number can have at most {DIGITS_MAX} characters"));
    }
    if rest[literal.length..].starts_with(is_part_of_name) {
        return Err(format!(
            "{written} is followed by a letter that is no suffix of numbers; the suffixes are b s i l n f d m"
        ));
    }
    let value = match literal.suffix {
        Some('f') => literal.digits.parse().ok().map(Value::Float),
        Some('d') => literal.digits.parse().ok().map(Value::Double),
        Some('m') => decimal(&literal.digits)?,
        None if literal.is_fractional => literal.digits.parse().ok().map(Value::Double),
        suffix => integer(&literal, suffix, written)?,
    };
    let value = value.ok_or_else(|| format!("{written} is no number"))?;
    Ok((value, literal.length))
}

/// Whether a name can have this character after its first one.
pub fn is_part_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// Finds the parts of the literal at the begin of `rest`.
fn split(rest: &str) -> Literal {
    let sign = usize::from(rest.starts_with(['-', '+']));
    let is_hexadecimal = matches!(rest.get(sign..sign + 2), Some("0x" | "0X"));
    let digits = if is_hexadecimal { sign + 2 } else { sign };
    let bytes = rest.as_bytes();
    let (end, is_fractional) = match is_hexadecimal {
        true => (run(bytes, digits, u8::is_ascii_hexdigit), false),
        false => decimal_end(bytes, digits),
    };
    let suffix = bytes.get(end).map(|byte| char::from(byte.to_ascii_lowercase()));
    let suffix = suffix.filter(|suffix| "bsilnfdm".contains(*suffix));
    let written = rest[digits..end].replace('_', "");
    let is_whole = !is_fractional && !matches!(suffix, Some('f' | 'd' | 'm'));
    let is_octal = is_whole && written.len() > 1 && written.starts_with('0');
    Literal {
        digits: format!("{}{written}", if rest.starts_with('-') { "-" } else { "" }),
        radix: if is_hexadecimal {
            16
        } else if is_octal {
            8
        } else {
            10
        },
        is_fractional,
        suffix,
        length: end + usize::from(suffix.is_some()),
    }
}

/// Where the digits and underscores that begin at `from` end.
fn run(bytes: &[u8], from: usize, is_digit: fn(&u8) -> bool) -> usize {
    let digits = bytes.get(from..).unwrap_or_default();
    from + digits.iter().take_while(|byte| is_digit(byte) || **byte == b'_').count()
}

/// Where a number with a fraction and an exponent ends, and whether it has one of them.
fn decimal_end(bytes: &[u8], from: usize) -> (usize, bool) {
    let is_digit_at = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = run(bytes, from, u8::is_ascii_digit);
    let mut is_fractional = false;
    if bytes.get(end) == Some(&b'.') && is_digit_at(end + 1) {
        (end, is_fractional) = (run(bytes, end + 1, u8::is_ascii_digit), true);
    }
    let exponent = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
    if matches!(bytes.get(end), Some(b'e' | b'E')) && is_digit_at(exponent) {
        (end, is_fractional) = (run(bytes, exponent, u8::is_ascii_digit), true);
    }
    (end, is_fractional)
}

/// A whole number of the type that the suffix names; without one, of the smallest of `Int`, `Long` and `BigInteger`.
fn integer(literal: &Literal, suffix: Option<char>, written: &str) -> Result<Option<Value>, String> {
    let Ok(number) = BigInt::from_str_radix(&literal.digits, literal.radix) else {
        return Ok(None);
    };
    let (value, type_name) = match suffix {
        Some('b') => (number.to_i8().map(Value::Byte), "a Byte"),
        Some('s') => (number.to_i16().map(Value::Short), "a Short"),
        Some('i') => (number.to_i32().map(Value::Int), "an Int"),
        Some('l') => (number.to_i64().map(Value::Long), "a Long"),
        Some(_) => (Some(Value::BigInteger(Arc::new(number))), "a BigInteger"),
        None => {
            let small = number.to_i32().map(Value::Int).or_else(|| number.to_i64().map(Value::Long));
            (Some(small.unwrap_or_else(|| Value::BigInteger(Arc::new(number)))), "a BigInteger")
        }
    };
    match value {
        Some(value) => Ok(Some(value)),
        None => Err(format!("{written} does not fit {type_name}")),
    }
}

fn decimal(digits: &str) -> Result<Option<Value>, String> {
    let Ok(number) = digits.parse::<BigDecimal>() else {
        return Ok(None);
    };
    let (unscaled, scale) = number.into_bigint_and_exponent();
    numbers::decimal(unscaled, scale).map(Some).map_err(|error| error.message)
}
