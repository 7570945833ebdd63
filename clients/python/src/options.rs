//! The options of a request. They have the same names as in `docs/queries.md`.

use kith_client::{CacheMode, QueryOptions, parse_hedging};
use kith_live::Ticket;
use kith_query::merged_tickets;
use kith_routing::FanOutLimits;
use kith_types::Workflow;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};
use std::time::Duration;

/// The names of the options.
pub const NAMES: [&str; 11] = [
    "deadline", "partial", "fan_out", "policy", "hedge", "cache", "workflow", "trace_id", "ticket",
    "critical", "group",
];

/// Converts a dictionary of options. Options that are `None` count as not given.
///
/// # Errors
/// `TypeError` for an unknown name or a value of the wrong type, `ValueError` for an invalid value.
pub fn options(given: Option<&Bound<'_, PyDict>>) -> PyResult<QueryOptions> {
    let mut options = QueryOptions::default();
    for (name, value) in given.into_iter().flatten() {
        if value.is_none() {
            continue;
        }
        let name: String = name.extract()?;
        match name.as_str() {
            "deadline" => options.deadline = Some(duration(&value)?),
            "partial" => options.partial = value.extract()?,
            "fan_out" => options.fan_out = fan_out(&value.extract::<String>()?)?,
            "policy" => options.policy = Some(value.extract()?),
            "hedge" => {
                let hedging = parse_hedging(&value.extract::<String>()?);
                options.hedging = Some(hedging.map_err(|got| wrong("hedge", &got, "on, table or off"))?);
            }
            "cache" => options.cache = cache(&value.extract::<String>()?)?,
            "workflow" => options.workflow = workflow(&value.extract::<String>()?)?,
            "ticket" => options.ticket = ticket(&value)?,
            "critical" => options.critical = value.extract()?,
            "group" => options.group = Some(value.extract()?),
            "trace_id" => options.trace_id = value.extract()?,
            _ => {
                let message = format!("there is no option {name:?}; options: {}", NAMES.join(", "));
                return Err(PyTypeError::new_err(message));
            }
        }
    }
    Ok(options)
}

/// Converts a deadline: a number of seconds or a `datetime.timedelta`.
fn duration(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let duration = match value.extract::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => value.extract::<Duration>().ok(),
    };
    let positive = duration.filter(|duration| !duration.is_zero());
    positive.ok_or_else(|| {
        PyValueError::new_err("a deadline must be a number of seconds above 0, or a datetime.timedelta")
    })
}

/// Converts one ticket or a sequence of tickets, which are merged.
fn ticket(value: &Bound<'_, PyAny>) -> PyResult<Option<Ticket>> {
    let texts = match value.extract::<String>() {
        Ok(text) => vec![text],
        Err(_) => value.extract::<Vec<String>>()?,
    };
    merged_tickets(&texts).map_err(|why| PyValueError::new_err(why.to_string()))
}

fn fan_out(text: &str) -> PyResult<FanOutLimits> {
    text.parse().map_err(|error| PyValueError::new_err(format!("fan_out: {error}")))
}

fn cache(text: &str) -> PyResult<CacheMode> {
    match text {
        "use" => Ok(CacheMode::Use),
        "bypass" => Ok(CacheMode::Bypass),
        "refresh" => Ok(CacheMode::Refresh),
        _ => Err(wrong("cache", text, "use, bypass or refresh")),
    }
}

fn workflow(text: &str) -> PyResult<Workflow> {
    match text {
        "interactive" => Ok(Workflow::Interactive),
        "background" => Ok(Workflow::Background),
        _ => Err(wrong("workflow", text, "interactive or background")),
    }
}

/// Returns the error for a word that is not one of the known ones.
pub fn wrong(name: &str, got: &str, known: &str) -> PyErr {
    PyValueError::new_err(format!("{name} must be {known}, not {got:?}"))
}
