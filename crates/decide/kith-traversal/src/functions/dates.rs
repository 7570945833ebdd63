//! Functions of dates: `asDate`, `dateAdd`, `dateDiff`.

use crate::{
    GremlinError, Result,
    value::{DateUnit, Value, time},
};
use chrono::{Datelike, TimeDelta};
use num_traits::ToPrimitive;

/// The point in time that a text names, or that lies this many milliseconds after 1970 in UTC.
///
/// # Errors
///
/// The text names no point in time, the number is no whole one, or the value is of another type.
pub fn as_date(value: &Value) -> Result<Value> {
    let millis = match value {
        Value::DateTime(_) => return Ok(value.clone()),
        Value::String(text) => {
            let error = || GremlinError::bad(format!("Can't parse {text} as DateTime."));
            return time::parse_date_time(text).map(Value::DateTime).ok_or_else(error);
        }
        Value::Byte(number) => Some(i64::from(*number)),
        Value::Short(number) => Some(i64::from(*number)),
        Value::Int(number) => Some(i64::from(*number)),
        Value::Long(number) => Some(*number),
        Value::BigInteger(number) => number.to_i64(),
        _ => None,
    };
    let error = || GremlinError::bad(format!("Can't parse {} as DateTime.", value.type_name()));
    time::instant_of_millis(millis.ok_or_else(error)?)
}

/// A date moved by a number of units: later, or earlier if the number is negative.
///
/// # Errors
///
/// The value is no date, or the result is out of range.
pub fn date_add(value: &Value, unit: DateUnit, count: i64) -> Result<Value> {
    let Value::DateTime(date) = value else {
        let found = value.type_name();
        return Err(GremlinError::bad(format!(
            "The dateAdd() step can only take DateTime, encountered {found}"
        )));
    };
    let span = match unit {
        DateUnit::Second => TimeDelta::try_seconds(count),
        DateUnit::Minute => TimeDelta::try_minutes(count),
        DateUnit::Hour => TimeDelta::try_hours(count),
        DateUnit::Day => TimeDelta::try_days(count),
    };
    let later = span.and_then(|span| date.checked_add_signed(span));
    let later = later.filter(|later| later.year().abs() <= time::YEAR_MAX);
    later.map(Value::DateTime).ok_or_else(|| {
        GremlinError::bad(format!(
            "dateAdd({unit}, {count}) leaves the range of dates, years up to {}",
            time::YEAR_MAX
        ))
    })
}

/// The milliseconds from `other` to a date, a `Long`. Null as the other one stands for 1970.
///
/// # Errors
///
/// A value is no date.
pub fn date_diff(value: &Value, other: &Value) -> Result<Value> {
    let millis = |value: &Value| match value {
        Value::DateTime(date) => Ok(date.timestamp_millis()),
        _ => {
            let found = value.type_name();
            Err(GremlinError::bad(format!("The dateDiff() step can only take DateTime, encountered {found}")))
        }
    };
    let other = if *other == Value::Null { 0 } else { millis(other)? };
    Ok(Value::Long(millis(value)? - other))
}
