//! Encodes a value as a given type, if that does not lose information.
//!
//! Conversions between whole types, from whole to floating-point types, and from floating-point numbers that are whole must
//! be exact (tables written by pandas store whole columns with gaps as floating-point numbers). Only floating-point numbers
//! are rounded, to a narrower floating-point type that the schema asks for.

use super::{Scalar, ValueFault};
use crate::{ElementType, ScalarType, TimeUnit, f16_from_f32, time_of_text};

/// Every whole number up to this is exact as an `f64`.
const WHOLE_F64_MAX: i128 = 1 << 53;
/// Every whole number up to this is exact as an `f32`.
const WHOLE_F32_MAX: i128 = 1 << 24;
/// Every whole number up to this is exact as a binary16.
const WHOLE_F16_MAX: i128 = 1 << 11;

/// How the times of a field are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// The unit of times that are plain numbers.
    pub(super) unit: TimeUnit,
    /// The first number that is unlikely to be in milliseconds, if that is the unit.
    pub(super) doubtful: Option<i128>,
}

impl Clock {
    /// A time, which may be a number, a date or RFC 3339, in milliseconds.
    fn time(&mut self, value: Scalar<'_>) -> Result<i128, ValueFault> {
        let expected = ScalarType::Timestamp.name();
        match value {
            Scalar::Timestamp(value) => Ok(value.into()),
            Scalar::Text(text) => {
                time_of_text(text).map(i128::from).ok_or_else(|| wrong_type(expected, value))
            }
            _ => {
                let number = whole(expected, value)?;
                let is_doubtful = || TimeUnit::doubt("", number, |_| String::new()).is_some();
                if self.unit == TimeUnit::Millis && self.doubtful.is_none() && is_doubtful() {
                    self.doubtful = Some(number);
                }
                self.unit.millis(number).ok_or_else(|| out_of_range(expected, value))
            }
        }
    }
}

/// Appends `value` as `scalar`.
pub(super) fn put_scalar(
    scalar: ScalarType,
    value: Scalar<'_>,
    clock: &mut Clock,
    out: &mut Vec<u8>,
) -> Result<(), ValueFault> {
    let wrong = || ValueFault::WrongType { expected: scalar.to_string(), got: value.describe() };
    match (scalar, value) {
        (ScalarType::Bool, Scalar::Bool(value)) => out.push(u8::from(value)),
        (ScalarType::Text, Scalar::Text(text)) => out.extend_from_slice(text.as_bytes()),
        (ScalarType::Bytes, Scalar::Bytes(bytes)) => out.extend_from_slice(bytes),
        (ScalarType::Bool | ScalarType::Text | ScalarType::Bytes, _) => return Err(wrong()),
        (ScalarType::I32, _) => {
            put_whole(scalar, value, |value| i32::try_from(value).ok().map(i32::to_le_bytes), out)?
        }
        (ScalarType::Timestamp, _) => {
            let millis = clock.time(value)?;
            let millis = i64::try_from(millis).map_err(|_| out_of_range(scalar.name(), value))?;
            out.extend_from_slice(&millis.to_le_bytes());
        }
        (ScalarType::I64, _) => {
            put_whole(scalar, value, |value| i64::try_from(value).ok().map(i64::to_le_bytes), out)?;
        }
        (ScalarType::U64, _) => {
            put_whole(scalar, value, |value| u64::try_from(value).ok().map(u64::to_le_bytes), out)?;
        }
        (ScalarType::F32, _) => {
            out.extend_from_slice(&single(scalar.name(), value, WHOLE_F32_MAX)?.to_le_bytes())
        }
        (ScalarType::F64, _) => out.extend_from_slice(&double(value)?.to_le_bytes()),
    }
    Ok(())
}

/// Appends `value` as an element of a vector.
pub(super) fn put_element(
    element: ElementType,
    value: Scalar<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueFault> {
    match element {
        ElementType::F32 => out.extend_from_slice(&single("f32", value, WHOLE_F32_MAX)?.to_le_bytes()),
        ElementType::F16 => {
            let bits = f16_from_f32(single("f16", value, WHOLE_F16_MAX)?);
            if bits & 0x7c00 == 0x7c00 {
                return Err(out_of_range("f16", value));
            }
            out.extend_from_slice(&bits.to_le_bytes());
        }
        ElementType::I8 => {
            let whole = whole("i8", value)?;
            out.push(i8::try_from(whole).map_err(|_| out_of_range("i8", value))? as u8);
        }
    }
    Ok(())
}

fn put_whole<const BYTES: usize>(
    scalar: ScalarType,
    value: Scalar<'_>,
    code: impl FnOnce(i128) -> Option<[u8; BYTES]>,
    out: &mut Vec<u8>,
) -> Result<(), ValueFault> {
    let coded = code(whole(scalar.name(), value)?).ok_or_else(|| out_of_range(scalar.name(), value))?;
    out.extend_from_slice(&coded);
    Ok(())
}

fn out_of_range(expected: &str, value: Scalar<'_>) -> ValueFault {
    ValueFault::OutOfRange { expected: expected.to_owned(), got: value.describe() }
}

fn wrong_type(expected: &str, value: Scalar<'_>) -> ValueFault {
    ValueFault::WrongType { expected: expected.to_owned(), got: value.describe() }
}

/// The value as a whole number.
fn whole(expected: &str, value: Scalar<'_>) -> Result<i128, ValueFault> {
    let (double, whole_max) = match value {
        Scalar::I32(value) => return Ok(value.into()),
        Scalar::I64(value) | Scalar::Timestamp(value) => return Ok(value.into()),
        Scalar::U64(value) => return Ok(value.into()),
        Scalar::F32(value) => (f64::from(value), WHOLE_F32_MAX),
        Scalar::F64(value) => (value, WHOLE_F64_MAX),
        Scalar::Bool(_) | Scalar::Text(_) | Scalar::Bytes(_) => return Err(wrong_type(expected, value)),
    };
    if !double.is_finite() {
        return Err(ValueFault::NotFinite);
    }
    // The greatest itself may have been rounded from the next number.
    if double.fract() != 0.0 || whole_max as f64 <= double.abs() {
        return Err(out_of_range(expected, value));
    }
    Ok(double as i128)
}

fn double(value: Scalar<'_>) -> Result<f64, ValueFault> {
    let double = match value {
        Scalar::F32(value) => f64::from(value),
        Scalar::F64(value) => value,
        _ => exact(whole("f64", value)?, WHOLE_F64_MAX).ok_or_else(|| out_of_range("f64", value))?,
    };
    if double.is_finite() { Ok(double) } else { Err(ValueFault::NotFinite) }
}

fn single(expected: &str, value: Scalar<'_>, whole_max: i128) -> Result<f32, ValueFault> {
    let single = match value {
        Scalar::F32(value) => value,
        Scalar::F64(value) if value.is_finite() => {
            let single = value as f32;
            return if single.is_finite() {
                Ok(single)
            } else {
                Err(out_of_range(expected, value_of(value)))
            };
        }
        Scalar::F64(_) => return Err(ValueFault::NotFinite),
        _ => exact(whole(expected, value)?, whole_max).ok_or_else(|| out_of_range(expected, value))? as f32,
    };
    if single.is_finite() { Ok(single) } else { Err(ValueFault::NotFinite) }
}

fn value_of(value: f64) -> Scalar<'static> {
    Scalar::F64(value)
}

/// `whole` as a floating-point number, if it is certainly exact.
fn exact(whole: i128, max: i128) -> Option<f64> {
    (whole.abs() <= max).then_some(whole as f64)
}
