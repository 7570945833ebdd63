//! The steps of a profiled traversal, as JSON.

use kith_gremlin::value::{ELEMENT_COUNT, Metrics, PERCENT_OF_TIME, TRAVERSER_COUNT, Value};
use serde::Serialize;
use std::collections::BTreeMap;

/// The results of a step of a traversal, and its costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepReply {
    /// The step as it is written.
    pub step: String,
    /// The number of traversers that it returned. Equal ones count once.
    pub traversers: i64,
    /// The number of results that they stand for.
    pub results: i64,
    /// The time that it took, without the steps before it.
    pub took_us: i64,
    /// Its requests to the graph: `fan_outs`, `groups`, `nodes`, `requests`, `keys`, `hedges`, `cached_keys`. Empty if
    /// it asked for nothing.
    #[serde(flatten)]
    pub graph: BTreeMap<String, i64>,
    /// The steps of the traversals that are nested in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<StepReply>,
}

impl From<&Metrics> for StepReply {
    fn from(metrics: &Metrics) -> Self {
        let count = |wanted: &str| {
            metrics.counts.iter().find(|(name, _)| name == wanted).map_or(0, |(_, count)| *count)
        };
        let annotation = |(name, value): &(String, Value)| match value {
            Value::Long(count) if name != PERCENT_OF_TIME => Some((snake_case(name), *count)),
            _ => None,
        };
        Self {
            step: metrics.name.clone(),
            traversers: count(TRAVERSER_COUNT),
            results: count(ELEMENT_COUNT),
            took_us: metrics.nanos / 1_000,
            graph: metrics.annotations.iter().filter_map(annotation).collect(),
            nested: metrics.nested.iter().map(Self::from).collect(),
        }
    }
}

/// `fanOuts` as `fan_outs`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 1);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_shows_what_the_graph_did_for_it() {
        let hop = Metrics {
            name: "out(follows)".to_owned(),
            nanos: 1_500_999,
            counts: vec![(TRAVERSER_COUNT.to_owned(), 5), (ELEMENT_COUNT.to_owned(), 7)],
            annotations: vec![
                (PERCENT_OF_TIME.to_owned(), Value::Double(75.0)),
                ("fanOuts".to_owned(), Value::Long(2)),
            ],
            ..Metrics::default()
        };
        let outer =
            Metrics { name: "where(out(follows))".to_owned(), nested: vec![hop], ..Metrics::default() };
        let json = serde_json::to_value(StepReply::from(&outer)).unwrap();
        assert_eq!(
            json["nested"][0],
            serde_json::json!({
                "step": "out(follows)", "traversers": 5, "results": 7, "took_us": 1_500, "fan_outs": 2
            })
        );
    }
}
