//! The lesser and the greater of two values.

use super::{
    compare::compare,
    number::{Kind, Number, widen},
};
use crate::{GremlinError, Result, value::Value};
use std::cmp::Ordering;

/// The lesser of two values, as `min()` finds it. Of two numbers, it is in the wider of their types. A null or NaN is
/// passed over; the result is null only if both are.
///
/// # Errors
/// The values cannot be compared, such as a number and a text.
pub fn least(a: &Value, b: &Value) -> Result<Value> {
    extreme("min", Ordering::Greater, a, b)
}

/// The greater of two values, as `max()` finds it. Otherwise as [`least`].
///
/// # Errors
/// As [`least`].
pub fn greatest(a: &Value, b: &Value) -> Result<Value> {
    extreme("max", Ordering::Less, a, b)
}

/// `b` if `a` relates to it as `worse`, else `a`.
fn extreme(step: &str, worse: Ordering, a: &Value, b: &Value) -> Result<Value> {
    let absent = |value| matches!(value, &Value::Null);
    let nan = |value| Number::of(value).is_some_and(Number::is_nan);
    if absent(a) || (nan(a) && !absent(b)) {
        return Ok(b.clone());
    }
    if absent(b) || nan(b) {
        return Ok(a.clone());
    }
    let order = compare(a, b).ok_or_else(|| {
        GremlinError::bad(format!(
            "{step}() cannot compare a value of type {} with one of type {}",
            a.type_name(),
            b.type_name()
        ))
    })?;
    let found = if order == worse { b } else { a };
    match (Kind::of(a), Kind::of(b)) {
        // An infinity has no BigDecimal and stays as it is.
        (Some(kind_a), Some(kind_b)) => {
            Ok(widen(found, kind_a.common(kind_b, false)).unwrap_or_else(|_| found.clone()))
        }
        _ => Ok(found.clone()),
    }
}
