//! The order of numbers by their value, whatever their types.
//!
//! A `Float` or `Double` stands for the shortest decimal number that reads back as the same `Double`, so 0.1 is equal to a
//! `BigDecimal` 0.1. TinkerPop's documentation instead converts both numbers to the wider type. That loses digits, so that
//! three numbers can be equal in two pairs and different in the third, and it gives no order that `order()` could use. The
//! two rules differ only where an integer has more digits than a floating-point number can hold.

use crate::value::Value;
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use num_traits::Zero;
use std::{borrow::Cow, cmp::Ordering, str::FromStr};

/// Integers up to this one, and down to its negative, have a `Double` of the same value.
const DOUBLE_INTEGER_MAX: u64 = 1 << 53;

/// A number, without its width.
#[derive(Clone, Copy, Debug)]
pub(in crate::semantics) enum Number<'a> {
    Integer(i64),
    Floating(f64),
    BigInteger(&'a BigInt),
    BigDecimal(&'a BigDecimal),
}

impl<'a> Number<'a> {
    /// The number that a value is; `None` if it is none.
    pub(in crate::semantics) fn of(value: &'a Value) -> Option<Self> {
        Some(match value {
            Value::Byte(number) => Self::Integer(i64::from(*number)),
            Value::Short(number) => Self::Integer(i64::from(*number)),
            Value::Int(number) => Self::Integer(i64::from(*number)),
            Value::Long(number) => Self::Integer(*number),
            Value::Float(number) => Self::Floating(f64::from(*number)),
            Value::Double(number) => Self::Floating(*number),
            Value::BigInteger(number) => Self::BigInteger(number),
            Value::BigDecimal(number) => Self::BigDecimal(number),
            _ => return None,
        })
    }

    /// Whether this is NaN, which is not equal to any number.
    pub(in crate::semantics) fn is_nan(self) -> bool {
        matches!(self, Self::Floating(number) if number.is_nan())
    }

    /// Its decimal digits; `None` for NaN and the infinities, which have none.
    pub(super) fn decimal(self) -> Option<Cow<'a, BigDecimal>> {
        Some(match self {
            Self::Integer(number) => Cow::Owned(BigDecimal::from(number)),
            Self::Floating(number) => Cow::Owned(shortest(number)?),
            Self::BigInteger(number) => Cow::Owned(BigDecimal::new(number.clone(), 0)),
            Self::BigDecimal(number) => Cow::Borrowed(number),
        })
    }
}

/// The shortest decimal number that reads back as this one; `None` for NaN and the infinities.
fn shortest(number: f64) -> Option<BigDecimal> {
    // Display of a finite number in scientific notation always reads as a decimal number.
    number
        .is_finite()
        .then(|| BigDecimal::from_str(&format!("{number:e}")).unwrap_or_else(|_| BigDecimal::zero()))
}

/// The order of two numbers by value. NaN is equal to NaN and greater than everything else; 0.0 is equal to -0.0.
pub(in crate::semantics) fn compare(a: Number<'_>, b: Number<'_>) -> Ordering {
    use Number::*;
    match (a, b) {
        (Integer(a), Integer(b)) => a.cmp(&b),
        (Floating(a), Floating(b)) => compare_floating(a, b),
        (Integer(a), Floating(b)) if a.unsigned_abs() <= DOUBLE_INTEGER_MAX => compare_floating(a as f64, b),
        (Floating(a), Integer(b)) if b.unsigned_abs() <= DOUBLE_INTEGER_MAX => compare_floating(a, b as f64),
        (BigInteger(a), BigInteger(b)) => a.cmp(b),
        (BigDecimal(a), BigDecimal(b)) => a.cmp(b),
        _ => match (a.decimal(), b.decimal()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => compare_floating(rough(a), rough(b)),
        },
    }
}

fn compare_floating(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Something on the same side of NaN and the infinities as the number.
fn rough(number: Number<'_>) -> f64 {
    match number {
        Number::Floating(number) => number,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn decimal(text: &str) -> Value {
        Value::BigDecimal(Arc::new(BigDecimal::from_str(text).unwrap()))
    }

    fn integer(text: &str) -> Value {
        Value::BigInteger(Arc::new(text.parse().unwrap()))
    }

    fn compared(a: &Value, b: &Value) -> Ordering {
        let (a, b) = (Number::of(a).unwrap(), Number::of(b).unwrap());
        assert_eq!(compare(a, b), compare(b, a).reverse());
        compare(a, b)
    }

    #[test]
    fn numbers_are_equal_by_value_across_types() {
        let ones = [
            Value::Byte(1),
            Value::Short(1),
            Value::Int(1),
            Value::Long(1),
            Value::Float(1.0),
            Value::Double(1.0),
            integer("1"),
            decimal("1.00"),
        ];
        for a in &ones {
            for b in &ones {
                assert_eq!(compared(a, b), Ordering::Equal, "{a:?} {b:?}");
            }
        }
        assert_eq!(compared(&Value::Double(0.1), &decimal("0.1")), Ordering::Equal);
        assert_eq!(compared(&Value::Double(0.0), &Value::Double(-0.0)), Ordering::Equal);
        assert_eq!(compared(&Value::Double(1e23), &integer("100000000000000000000000")), Ordering::Equal);
    }

    #[test]
    fn close_numbers_of_different_types_are_distinguished() {
        assert_eq!(compared(&Value::Float(0.1), &Value::Double(0.1)), Ordering::Greater);
        let edge = 1_i64 << 53;
        assert_eq!(compared(&Value::Long(edge + 1), &Value::Double(edge as f64)), Ordering::Greater);
        assert_eq!(compared(&Value::Long(i64::MAX), &integer("9223372036854775808")), Ordering::Less);
        assert_eq!(compared(&decimal("1E-400"), &Value::Int(0)), Ordering::Greater);
    }

    #[test]
    fn infinities_and_nan_stand_outside_of_all_numbers() {
        let huge = decimal("1E+2000000000");
        for number in [Value::Int(1), Value::Long(i64::MAX), integer("123456789012345678901234567890"), huge]
        {
            assert_eq!(compared(&Value::Double(f64::INFINITY), &number), Ordering::Greater);
            assert_eq!(compared(&Value::Float(f32::NEG_INFINITY), &number), Ordering::Less);
            assert_eq!(compared(&Value::Float(f32::NAN), &number), Ordering::Greater);
        }
        assert_eq!(compared(&Value::Float(f32::INFINITY), &Value::Double(f64::INFINITY)), Ordering::Equal);
        assert_eq!(compared(&Value::Float(f32::NAN), &Value::Double(f64::NAN)), Ordering::Equal);
        assert_eq!(compared(&Value::Double(f64::NAN), &Value::Double(f64::INFINITY)), Ordering::Greater);
    }
}
