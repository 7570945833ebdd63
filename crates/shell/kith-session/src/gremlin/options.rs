//! Options that a traversal carries: `g.with_("kith.fan_out", "groups=1")`. They override those of the request.

use crate::TraversalSettings;
use kith_gremlin::value::Value;
use kith_query::{CacheMode, QueryError, QueryOptions, merged_tickets, parse_hedging};
use kith_traversal::{evaluate::Limits, plan::TraversalPlan};
use std::time::Duration;

/// The options that set the deadline of a traversal: its name, and the name that older drivers use.
const TIMEOUTS: [&str; 2] = ["evaluationTimeout", "scriptEvaluationTimeout"];
/// The prefix of all options of Kith.
const PREFIX: &str = "kith.";
/// All options, for messages.
const KNOWN: &str = "fan_out, policy, hedge, deadline_ms, partial, ticket, critical, cache, budget, replace";

/// The bounds that `kith.budget` can set.
const BOUNDS: [&str; 4] = ["elements", "traversers", "bytes", "passes"];

/// The settings for the evaluation of a traversal, as its options give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AppliedOptions {
    pub limits: Limits,
    /// Whether `addE` replaces an edge that exists already.
    pub replaces_edges: bool,
}

/// Applies the options of a traversal, and returns those that concern its evaluation.
///
/// # Errors
/// [`QueryError::BadRequest`] if an option of Kith is unknown or has a wrong value.
pub(super) fn apply(
    plan: &TraversalPlan,
    options: &mut QueryOptions,
    settings: TraversalSettings,
) -> Result<AppliedOptions, QueryError> {
    let mut applied = AppliedOptions { limits: settings.limits(), replaces_edges: false };
    for (key, value) in plan.options() {
        match key.strip_prefix(PREFIX) {
            Some(name) => set(name, value, options, &mut applied)?,
            None if TIMEOUTS.contains(&&**key) => {
                options.deadline = Some(evaluation_timeout(number(key, value)?));
            }
            // Options of other systems mean nothing here.
            None => {}
        }
    }
    check(&applied.limits, &settings.limits_max())?;
    Ok(applied)
}

/// The deadline that an `evaluationTimeout` in milliseconds stands for. As in a driver's request, 0 stands for the longest
/// deadline that the settings allow.
fn evaluation_timeout(millis: u64) -> Duration {
    match millis {
        0 => Duration::MAX,
        millis => Duration::from_millis(millis),
    }
}

/// Checks that no limit is 0, or higher than the settings allow.
fn check(limits: &Limits, max: &Limits) -> Result<(), QueryError> {
    let bounds = |limits: &Limits| [limits.elements, limits.traversers, limits.bytes, limits.passes.into()];
    for ((name, got), max) in BOUNDS.into_iter().zip(bounds(limits)).zip(bounds(max)) {
        if got == 0 {
            return Err(QueryError::BadRequest {
                detail: format!("{PREFIX}budget: {name} must be at least 1"),
            });
        }
        if max < got {
            return Err(QueryError::BadRequest {
                detail: format!(
                    "{PREFIX}budget: {name}={got} is too high; at most {max} is allowed ({name}-max × budget-factor-max in \
                     [session.traversals])"
                ),
            });
        }
    }
    Ok(())
}

fn set(
    name: &str,
    value: &Value,
    options: &mut QueryOptions,
    applied: &mut AppliedOptions,
) -> Result<(), QueryError> {
    let limits = &mut applied.limits;
    let wrong = |why: String| QueryError::BadRequest { detail: format!("{PREFIX}{name}: {why}") };
    match name {
        "fan_out" => {
            options.fan_out = text(name, value)?.parse().map_err(|error| wrong(format!("{error}")))?
        }
        "policy" => options.policy = Some(text(name, value)?.to_owned()),
        "hedge" => {
            let known = |text| wrong(format!("{text:?} is not on, table or off"));
            options.hedging = Some(parse_hedging(text(name, value)?).map_err(known)?);
        }
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
        "replace" => applied.replaces_edges = truth(name, value)?,
        "budget" => match value {
            Value::String(bounds) => set_bounds(bounds, limits).map_err(wrong)?,
            value => limits.elements = number(name, value)?,
        },
        _ => return Err(wrong(format!("there is no such option; there are {KNOWN}"))),
    }
    Ok(())
}

/// Sets bounds such as `elements=500000,bytes=1000000`.
fn set_bounds(bounds: &str, limits: &mut Limits) -> Result<(), String> {
    for bound in bounds.split(',') {
        let (name, number) =
            bound.split_once('=').map_or(("elements", bound), |(name, number)| (name, number));
        let (name, number) = (name.trim(), number.trim());
        let number: u64 = number.parse().map_err(|_| {
            format!("{bound:?} is neither a number of elements nor a bound such as elements=500000")
        })?;
        match name {
            "elements" => limits.elements = number,
            "traversers" => limits.traversers = number,
            "bytes" => limits.bytes = number,
            "passes" => limits.passes = u32::try_from(number).unwrap_or(u32::MAX),
            _ => return Err(format!("there is no bound {name:?}; there are {}", BOUNDS.join(", "))),
        }
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
    let found = value.type_name();
    QueryError::BadRequest {
        detail: format!("the option {name} must be {what}, not {value} of type {found}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_raises_bounds_as_far_as_the_settings_allow() {
        let settings = TraversalSettings { elements_max: 10, budget_factor_max: 3, ..Default::default() };
        let check = |elements| check(&Limits { elements, ..settings.limits() }, &settings.limits_max());
        assert_eq!(check(30), Ok(()));
        let refused = check(31).unwrap_err().to_string();
        assert!(refused.contains("elements=31") && refused.contains("at most 30"), "{refused}");
        assert!(check(0).unwrap_err().to_string().contains("elements must be at least 1"));
    }

    #[test]
    fn a_timeout_of_zero_is_none() {
        assert_eq!(evaluation_timeout(0), Duration::MAX);
        assert_eq!(evaluation_timeout(70), Duration::from_millis(70));
    }

    #[test]
    fn the_error_of_a_wrong_value_names_the_right_ones() {
        let error_of = |name: &str, value: Value| {
            let mut applied = AppliedOptions { limits: Limits::default(), replaces_edges: false };
            set(name, &value, &mut QueryOptions::default(), &mut applied).unwrap_err().to_string()
        };
        let hedge = error_of("hedge", Value::text("maybe"));
        assert!(hedge.contains("kith.hedge: \"maybe\" is not on, table or off"), "{hedge}");
        let deadline = error_of("deadline_ms", Value::text("5"));
        assert!(deadline.contains("a number that is not negative, not 5 of type String"), "{deadline}");
        let replace = error_of("replace", Value::text("yes"));
        assert!(replace.contains("replace must be true or false, not yes"), "{replace}");
    }

    #[test]
    fn a_budget_is_a_number_of_elements_or_named_bounds() {
        let set = |bounds: &str| {
            let mut limits = Limits::default();
            set_bounds(bounds, &mut limits).map(|()| limits)
        };
        let default = Limits::default();
        assert_eq!(set("7"), Ok(Limits { elements: 7, ..default }));
        let all = Limits { elements: 1, traversers: 2, bytes: 3, passes: 4, ..default };
        assert_eq!(set("elements=1,traversers=2, bytes = 3,passes=4"), Ok(all));
        for (wrong, part) in
            [("depth=3", "elements, traversers, bytes, passes"), ("bytes=", "bytes="), ("", "\"\"")]
        {
            assert!(set(wrong).unwrap_err().contains(part), "{wrong}");
        }
    }
}
