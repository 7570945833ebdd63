//! Results of `profile()` from the maps of names that they are in GraphSON.

use crate::{
    assemble,
    error::{GremlinError, Result},
    value::{Map, Metrics, TraversalMetrics, Value},
};
use std::sync::Arc;

/// The value of one of these types whose fields are those of a map.
pub(super) fn profile(type_name: &str, map: Value) -> Result<Value> {
    let Value::Map(map) = map else { return Err(GremlinError::bad("metrics are no map")) };
    let mut map = Arc::unwrap_or_clone(map);
    let mut take = |name: &str| map.swap_remove(&Value::text(name)).unwrap_or_default();
    if type_name == "g:TraversalMetrics" {
        return traversal_metrics(take("dur"), take("metrics"));
    }
    let names = (take("id").to_string(), take("name").to_string());
    metrics(names, take("dur"), [take("counts"), take("annotations")], take("metrics"))
}

fn traversal_metrics(millis: Value, steps: Value) -> Result<Value> {
    let metrics = TraversalMetrics { nanos: nanos(&millis)?, steps: many_metrics(steps)? };
    Ok(Value::TraversalMetrics(Arc::new(metrics)))
}

fn metrics(
    (id, name): (String, String),
    millis: Value,
    [counts, annotations]: [Value; 2],
    nested: Value,
) -> Result<Value> {
    let counts = assemble::counts(map_of(counts)?)?;
    let annotations = map_of(annotations)?.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
    let (nanos, nested) = (nanos(&millis)?, many_metrics(nested)?);
    Ok(Value::Metrics(Arc::new(Metrics { id, name, nanos, counts, annotations, nested })))
}

fn many_metrics(values: Value) -> Result<Vec<Metrics>> {
    match values {
        Value::Null => Ok(Vec::new()),
        Value::List(list) => Arc::unwrap_or_clone(list).into_iter().map(assemble::metrics).collect(),
        other => Err(assemble::wanted("the metrics of steps", "a List", &other)),
    }
}

fn map_of(value: Value) -> Result<Map> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Map(map) => Ok(Arc::unwrap_or_clone(map)),
        other => Err(assemble::wanted("a part of metrics", "a Map", &other)),
    }
}

/// Nanoseconds from milliseconds.
#[allow(clippy::cast_possible_truncation, reason = "a conversion from a float to an integer saturates")]
fn nanos(millis: &Value) -> Result<i64> {
    match millis {
        Value::Double(millis) => Ok((millis * 1e6).round() as i64),
        other => Err(assemble::wanted("the duration of metrics", "a Double", other)),
    }
}
