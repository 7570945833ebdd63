//! Sums, differences, products and quotients.

use super::{
    Kind, Number,
    size::{bits, check_aligned, check_bits, decimal_value},
};
use crate::{GremlinError, Result, value::Value};
use bigdecimal::{BigDecimal, RoundingMode};
use num_bigint::BigInt;
use num_traits::{NumOps, ToPrimitive, Zero};
use std::sync::Arc;

/// The number of digits of a quotient beyond those of its operands, if its digits never end.
const QUOTIENT_DIGITS_EXTRA: u64 = 10;

#[derive(Clone, Copy, strum::Display)]
#[strum(serialize_all = "lowercase")]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// `a + b`. If either is null, the result is `a`, as in all functions of this module.
///
/// # Errors
/// A value is no number, an integer result does not fit in a `Long`, or a result of unlimited width is too large.
pub fn add(a: &Value, b: &Value) -> Result<Value> {
    combine(Operation::Add, a, b, false)
}

/// `a - b`.
///
/// # Errors
/// As [`add`].
pub fn subtract(a: &Value, b: &Value) -> Result<Value> {
    combine(Operation::Subtract, a, b, false)
}

/// `a * b`.
///
/// # Errors
/// As [`add`].
pub fn multiply(a: &Value, b: &Value) -> Result<Value> {
    combine(Operation::Multiply, a, b, false)
}

/// `a / b`. The quotient of two integers is an integer, rounded toward zero.
///
/// # Errors
/// As [`add`], and for a division of integers or of `BigDecimal`s by zero.
pub fn divide(a: &Value, b: &Value) -> Result<Value> {
    combine(Operation::Divide, a, b, false)
}

/// `a / b` as a floating-point number, also if both are integers.
///
/// # Errors
/// As [`divide`].
pub fn fraction(a: &Value, b: &Value) -> Result<Value> {
    combine(Operation::Divide, a, b, true)
}

fn combine(operation: Operation, a: &Value, b: &Value, floating: bool) -> Result<Value> {
    use Number::Integer;
    if matches!(a, Value::Null) || matches!(b, Value::Null) {
        return Ok(a.clone());
    }
    let (Some(kind_a), Some(kind_b)) = (Kind::of(a), Kind::of(b)) else {
        return Err(not_numbers(operation, a, b));
    };
    let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) else {
        return Err(not_numbers(operation, a, b));
    };
    match (kind_a.common(kind_b, floating), x, y) {
        (Kind::Float, ..) => Ok(single(operation, x, y)),
        (Kind::Double, ..) => Ok(Value::Double(perform(operation, double(x), double(y)))),
        (Kind::BigDecimal, ..) => decimals(operation, x, y),
        (kind, Integer(x), Integer(y)) if kind < Kind::BigInteger => integers(operation, kind, x, y),
        _ => big_integers(operation, x, y),
    }
}

fn not_numbers(operation: Operation, a: &Value, b: &Value) -> GremlinError {
    let stranger = if a.is_number() { b } else { a };
    GremlinError::bad(format!(
        "cannot {operation} numbers, because one of the two values is of type {}",
        stranger.type_name()
    ))
}

fn perform<T: NumOps>(operation: Operation, a: T, b: T) -> T {
    match operation {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide => a / b,
    }
}

fn integers(operation: Operation, kind: Kind, a: i64, b: i64) -> Result<Value> {
    if b == 0 && matches!(operation, Operation::Divide) {
        return Err(divided_by_zero());
    }
    fit(perform(operation, i128::from(a), i128::from(b)), kind).ok_or_else(|| {
        GremlinError::bad(format!(
            "long overflow: cannot {operation} {a} and {b}, because the result does not fit in a Long; \
             make one of them a BigInteger"
        ))
    })
}

/// The number in the narrowest type that holds it and is at least as wide as `kind`; `None` if it does not fit in a `Long`.
pub(super) fn fit(number: i128, kind: Kind) -> Option<Value> {
    let byte = i8::try_from(number).ok().filter(|_| kind <= Kind::Byte).map(Value::Byte);
    let short = i16::try_from(number).ok().filter(|_| kind <= Kind::Short).map(Value::Short);
    let int = i32::try_from(number).ok().filter(|_| kind <= Kind::Int).map(Value::Int);
    byte.or(short).or(int).or_else(|| i64::try_from(number).ok().map(Value::Long))
}

/// The result as a `Float`, or as a `Double` if it is too large for a `Float`.
fn single(operation: Operation, a: Number<'_>, b: Number<'_>) -> Value {
    let result = perform(operation, double(a) as f32, double(b) as f32);
    if result.is_infinite() {
        return Value::Double(perform(operation, double(a), double(b)));
    }
    Value::Float(result)
}

/// The number as a `Double`, rounded if it has too many digits.
pub(super) fn double(number: Number<'_>) -> f64 {
    match number {
        Number::Integer(number) => number as f64,
        Number::Floating(number) => number,
        Number::BigInteger(number) => number.to_f64().unwrap_or(f64::NAN),
        Number::BigDecimal(number) => number.to_scientific_notation().parse().unwrap_or(f64::NAN),
    }
}

fn big_integers(operation: Operation, a: Number<'_>, b: Number<'_>) -> Result<Value> {
    let (Some(a), Some(b)) = (big_integer(a), big_integer(b)) else {
        return Err(GremlinError::bad("cannot combine numbers that are no integers as BigIntegers"));
    };
    match operation {
        Operation::Divide if b.is_zero() => return Err(divided_by_zero()),
        Operation::Multiply => check_bits(a.bits() + b.bits())?,
        _ => check_bits(a.bits().max(b.bits()))?,
    }
    Ok(Value::BigInteger(Arc::new(perform(operation, a, b))))
}

fn big_integer(number: Number<'_>) -> Option<BigInt> {
    match number {
        Number::Integer(number) => Some(BigInt::from(number)),
        Number::BigInteger(number) => Some(number.clone()),
        Number::Floating(_) | Number::BigDecimal(_) => None,
    }
}

fn decimals(operation: Operation, a: Number<'_>, b: Number<'_>) -> Result<Value> {
    let (Some(a), Some(b)) = (a.decimal(), b.decimal()) else {
        return Err(GremlinError::bad(format!(
            "cannot {operation} NaN or an infinity and a number of unlimited width; convert the other number with \
             asNumber(GType.DOUBLE) first"
        )));
    };
    let result = match operation {
        Operation::Divide => quotient(&a, &b)?,
        Operation::Multiply => {
            check_bits(bits(&a) + bits(&b))?;
            a.as_ref() * b.as_ref()
        }
        Operation::Add | Operation::Subtract => {
            check_aligned(&a, &b)?;
            perform(operation, a.into_owned(), b.into_owned())
        }
    };
    decimal_value(result)
}

/// The quotient of decimal numbers: exact if its digits end, else rounded half up to [`QUOTIENT_DIGITS_EXTRA`] digits more
/// than the longer operand has.
fn quotient(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal> {
    if b.is_zero() {
        return Err(divided_by_zero());
    }
    let (numerator, scale_a) = a.as_bigint_and_scale();
    let (denominator, scale_b) = b.as_bigint_and_scale();
    check_bits(numerator.bits() + 4 * denominator.bits())?;
    let scale = scale_a - scale_b;
    let precision = a.digits().max(b.digits()) + QUOTIENT_DIGITS_EXTRA;
    // Digits of an exact quotient end after at most one digit for each bit of the denominator.
    let digits = denominator.bits().max(precision + b.digits()) + 1;
    let shifted =
        numerator.as_ref() * num_traits::pow(BigInt::from(10), digits.to_usize().unwrap_or(usize::MAX));
    let exact = (&shifted % denominator.as_ref()).is_zero();
    let result = BigDecimal::new(shifted / denominator.as_ref(), scale.saturating_add_unsigned(digits));
    if exact {
        return Ok(without_zeros(result, scale));
    }
    let rounded = result.with_precision_round(
        std::num::NonZeroU64::new(precision).unwrap_or(std::num::NonZeroU64::MIN),
        RoundingMode::HalfUp,
    );
    let scale_max = scale_a.max(scale_b).max(QUOTIENT_DIGITS_EXTRA as i64);
    if scale_max < rounded.fractional_digit_count() {
        return Ok(rounded.with_scale_round(scale_max, RoundingMode::HalfUp));
    }
    Ok(rounded)
}

/// The same number with as few digits as possible, but at least this scale.
fn without_zeros(number: BigDecimal, scale_min: i64) -> BigDecimal {
    let normal = number.normalized();
    if normal.fractional_digit_count() < scale_min && !normal.is_zero() {
        return normal.with_scale(scale_min);
    }
    normal
}

fn divided_by_zero() -> GremlinError {
    GremlinError::bad("/ by zero: only Floats and Doubles can be divided by zero")
}
