//! What `profile()` returns.

use super::Value;

/// The time and the counts of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct Metrics {
    pub id: String,
    pub name: String,
    pub nanos: i64,
    /// Counts by name, such as `traverserCount` and `elementCount`.
    pub counts: Vec<(String, i64)>,
    /// Further findings by name, such as the groups that a hop asked.
    pub annotations: Vec<(String, Value)>,
    /// The metrics of nested traversals.
    pub nested: Vec<Metrics>,
}

/// The time of a traversal and the metrics of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct TraversalMetrics {
    pub nanos: i64,
    pub steps: Vec<Metrics>,
}
