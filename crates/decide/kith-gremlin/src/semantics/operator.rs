//! The combination of sacks and side effects with further values.

use super::{
    extremes::{greatest, least},
    lists::values,
    number::{add, divide, multiply, subtract},
};
use crate::{
    GremlinError, Result,
    value::{Operator, Value},
};
use indexmap::IndexMap;
use std::sync::Arc;

/// Combines what a sack or a side effect holds with a further value. `held` is changed in place where it is not shared.
///
/// # Errors
/// The operator does not take values of these types, or its arithmetic fails.
pub fn apply(operator: Operator, held: Value, value: &Value) -> Result<Value> {
    match operator {
        Operator::Sum => add(&held, value),
        Operator::Minus => subtract(&held, value),
        Operator::Multiply => multiply(&held, value),
        Operator::Divide => divide(&held, value),
        Operator::Minimum => least(&held, value),
        Operator::Maximum => greatest(&held, value),
        Operator::Assign => Ok(value.clone()),
        Operator::And => logical(operator, &held, value, |a, b| a && b),
        Operator::Or => logical(operator, &held, value, |a, b| a || b),
        Operator::AddAll => add_all(held, value),
        Operator::SumLong => match (long(&held), long(value)) {
            (Some(a), Some(b)) => add(&a, &b),
            _ => Err(mismatch(operator, "two integers", held.type_name(), value)),
        },
    }
}

fn mismatch(operator: Operator, takes: &str, held: &str, value: &Value) -> GremlinError {
    GremlinError::bad(format!(
        "the operator {operator} takes {takes}, but got values of the types {held} and {}",
        value.type_name()
    ))
}

fn logical(
    operator: Operator,
    held: &Value,
    value: &Value,
    combine: fn(bool, bool) -> bool,
) -> Result<Value> {
    match (held, value) {
        (Value::Bool(a), Value::Bool(b)) => Ok(Value::Bool(combine(*a, *b))),
        _ => Err(mismatch(operator, "two Booleans", held.type_name(), value)),
    }
}

fn long(value: &Value) -> Option<Value> {
    Some(Value::Long(match value {
        Value::Byte(number) => i64::from(*number),
        Value::Short(number) => i64::from(*number),
        Value::Int(number) => i64::from(*number),
        Value::Long(number) => *number,
        _ => return None,
    }))
}

fn add_all(held: Value, value: &Value) -> Result<Value> {
    let held_type = held.type_name();
    let mismatched = || mismatch(Operator::AddAll, "two collections or two maps", held_type, value);
    match held {
        Value::List(mut all) => {
            Arc::make_mut(&mut all).extend(values(value)?.ok_or_else(mismatched)?);
            Ok(Value::List(all))
        }
        Value::Set(mut all) => {
            Arc::make_mut(&mut all).extend(values(value)?.ok_or_else(mismatched)?);
            Ok(Value::Set(all))
        }
        Value::BulkSet(all) => {
            let added = match value {
                Value::BulkSet(values) => values.as_ref().clone(),
                _ => values(value)?.ok_or_else(mismatched)?.into_iter().map(|value| (value, 1)).collect(),
            };
            let mut counts: IndexMap<Value, i64> = all.iter().cloned().collect();
            for (value, bulk) in added {
                let count = counts.entry(value).or_default();
                *count = count.saturating_add(bulk);
            }
            Ok(Value::BulkSet(Arc::new(counts.into_iter().collect())))
        }
        Value::Map(mut all) => {
            let Value::Map(entries) = value else { return Err(mismatched()) };
            Arc::make_mut(&mut all).extend(entries.iter().map(|(key, value)| (key.clone(), value.clone())));
            Ok(Value::Map(all))
        }
        _ => Err(mismatched()),
    }
}
