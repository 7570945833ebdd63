//! Options that a traversal carries: `g.with_("kith.fan_out", "groups=1")`. They override those of the request.

use super::default_limits;
use kith_api::{CacheMode, QueryError, QueryOptions, merged_tickets, parse_hedging};
use kith_gremlin::value::Value;
use kith_traversal::{evaluate::Limits, plan::Plan};
use std::time::Duration;

/// What all options of Kith begin with.
const PREFIX: &str = "kith.";
/// All options, for messages.
const KNOWN: &str = "fan_out, policy, hedge, deadline_ms, partial, ticket, critical, cache, budget";

/// Applies the options of a traversal, and returns the limits of its evaluation.
///
/// # Errors
/// [`QueryError::BadRequest`] if an option of Kith is unknown or has a wrong value.
pub(super) fn apply(plan: &Plan, options: &mut QueryOptions) -> Result<Limits, QueryError> {
    let mut limits = default_limits();
    for (key, value) in plan.options() {
        match key.strip_prefix(PREFIX) {
            Some(name) => set(name, value, options, &mut limits)?,
            None if &**key == "evaluationTimeout" => {
                options.deadline = Some(Duration::from_millis(number(key, value)?));
            }
            // Options of other systems mean nothing here.
            None => {}
        }
    }
    Ok(limits)
}

fn set(name: &str, value: &Value, options: &mut QueryOptions, limits: &mut Limits) -> Result<(), QueryError> {
    let wrong = |why: String| QueryError::BadRequest { detail: format!("{PREFIX}{name}: {why}") };
    match name {
        "fan_out" => {
            options.fan_out = text(name, value)?.parse().map_err(|error| wrong(format!("{error}")))?
        }
        "policy" => options.policy = Some(text(name, value)?.to_owned()),
        "hedge" => options.hedging = Some(parse_hedging(text(name, value)?).map_err(wrong)?),
        "deadline_ms" => options.deadline = Some(Duration::from_millis(number(name, value)?)),
        "partial" => options.partial = truth(name, value)?,
        "critical" => options.critical = truth(name, value)?,
        "ticket" => options.ticket = merged_tickets(&[text(name, value)?])?,
        "cache" => {
            options.cache = match text(name, value)? {
                "use" => CacheMode::Use,
                "refresh" => CacheMode::Refresh,
                "bypass" => CacheMode::Bypass,
                other => return Err(wrong(format!("{other:?} is not use, refresh or bypass"))),
            };
        }
        "budget" => limits.elements = number(name, value)?,
        _ => return Err(wrong(format!("there is no such option; there are {KNOWN}"))),
    }
    Ok(())
}

fn text<'a>(name: &str, value: &'a Value) -> Result<&'a str, QueryError> {
    value.as_text().ok_or_else(|| not_a(name, "text", value))
}

fn truth(name: &str, value: &Value) -> Result<bool, QueryError> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        other => Err(not_a(name, "true or false", other)),
    }
}

fn number(name: &str, value: &Value) -> Result<u64, QueryError> {
    let number = match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Long(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    number.ok_or_else(|| not_a(name, "a number that is not negative", value))
}

fn not_a(name: &str, what: &str, value: &Value) -> QueryError {
    QueryError::BadRequest { detail: format!("the option {name} must be {what}, not {value}") }
}
