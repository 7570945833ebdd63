//! The greatest size of numbers of unlimited width, so that a short traversal cannot fill the memory.

use crate::{
    GremlinError, Result,
    value::{Value, numbers::decimal},
};
use bigdecimal::BigDecimal;
use num_bigint::BigInt;

/// The bits of the largest integer that arithmetic returns: about 315,000 decimal digits.
const BITS_MAX: u64 = 1 << 20;

/// No decimal digit needs more bits than this.
const BITS_PER_DIGIT_MAX: u64 = 4;

/// Checks that a result with this many bits is within the limit.
pub(super) fn check_bits(bits: u64) -> Result<()> {
    if bits <= BITS_MAX {
        return Ok(());
    }
    Err(GremlinError::bad(format!(
        "a number would have more than {BITS_MAX} bits, which is the limit of arithmetic; use Doubles for \
         numbers of this size"
    )))
}

/// Checks that two decimal numbers can be written with the same scale, as their sum requires.
pub(super) fn check_aligned(a: &BigDecimal, b: &BigDecimal) -> Result<()> {
    let distance = a.fractional_digit_count().abs_diff(b.fractional_digit_count());
    check_bits(distance.saturating_mul(BITS_PER_DIGIT_MAX).saturating_add(bits(a).max(bits(b))))
}

/// The value of a decimal number, if its scale is one that `BigDecimal`s from outside may have too.
pub(super) fn decimal_value(number: BigDecimal) -> Result<Value> {
    let (unscaled, scale) = number.into_bigint_and_scale();
    decimal(unscaled, scale)
}

/// The integral part of a decimal number.
pub(super) fn integral(number: &BigDecimal) -> Result<BigInt> {
    let magnitude = number.order_of_magnitude();
    if magnitude < 0 {
        return Ok(BigInt::ZERO);
    }
    check_bits(magnitude.unsigned_abs().saturating_mul(BITS_PER_DIGIT_MAX))?;
    Ok(number.with_scale_round(0, bigdecimal::RoundingMode::Down).into_bigint_and_scale().0)
}

/// The bits of the digits of a decimal number, without its scale.
pub(super) fn bits(number: &BigDecimal) -> u64 {
    number.as_bigint_and_scale().0.bits()
}
