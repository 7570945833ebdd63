//! `asString`, `asBool`, and `reverse` of text and lists.

use crate::{
    GremlinError, Result,
    semantics::lists,
    value::{Scope, Value},
};
use num_traits::Zero;

/// The text of a value. With a local scope, the list of the texts of a collection's members.
///
/// # Errors
///
/// The value, or a member with a local scope, is null.
pub fn as_string(value: &Value, scope: Scope) -> Result<Value> {
    let text = |value: &Value| match value {
        Value::Null => Err(GremlinError::bad("Can't parse null as String.")),
        Value::String(_) => Ok(value.clone()),
        _ => Ok(Value::text(value.to_string())),
    };
    if scope == Scope::Local
        && let Some(members) = lists::values(value)?
    {
        let texts: Vec<Value> = members.iter().map(text).collect::<Result<_>>()?;
        return Ok(Value::list(texts));
    }
    text(value)
}

/// Whether a number differs from zero (NaN counts as zero), or the truth value that a text spells in any case.
///
/// # Errors
///
/// The value is null, another text, or of another type.
pub fn as_bool(value: &Value) -> Result<Value> {
    let truth = match value {
        Value::Bool(truth) => *truth,
        Value::Byte(number) => *number != 0,
        Value::Short(number) => *number != 0,
        Value::Int(number) => *number != 0,
        Value::Long(number) => *number != 0,
        Value::Float(number) => *number != 0.0 && !number.is_nan(),
        Value::Double(number) => *number != 0.0 && !number.is_nan(),
        Value::BigInteger(number) => !number.is_zero(),
        Value::BigDecimal(number) => !number.is_zero(),
        Value::String(text) if text.eq_ignore_ascii_case("true") => true,
        Value::String(text) if text.eq_ignore_ascii_case("false") => false,
        Value::String(text) => return Err(GremlinError::bad(format!("Can't parse {text} as Boolean."))),
        _ => return Err(GremlinError::bad(format!("Can't parse {} as Boolean.", value.type_name()))),
    };
    Ok(Value::Bool(truth))
}

/// A text or list in reverse order. Other values stay as they are, and sets and paths become lists.
///
/// # Errors
///
/// The value is a bulk set of more than a million values.
pub fn reverse(value: &Value) -> Result<Value> {
    if let Value::String(text) = value {
        return Ok(Value::text(text.chars().rev().collect::<String>()));
    }
    Ok(match lists::values(value)? {
        Some(mut members) => {
            members.reverse();
            Value::list(members)
        }
        None => value.clone(),
    })
}
