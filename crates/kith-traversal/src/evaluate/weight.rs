//! How many bytes values take in memory, roughly and quickly.

use crate::value::{Edge, Property, Value, VertexProperty};
use std::sync::Arc;

/// What every value takes, whatever it holds.
const VALUE_BYTES: u64 = 32;
/// How deep lists in lists are looked into. Results nest no deeper than this can be coded.
const DEPTH_MAX: u32 = 100;

/// The bytes of a value. What several values share counts for each of them.
pub(super) fn of_value(value: &Value) -> u64 {
    within(value, DEPTH_MAX)
}

/// The bytes of the properties of vertices.
pub(super) fn of_vertex_properties(properties: &[Arc<VertexProperty>]) -> u64 {
    properties.iter().map(|property| VALUE_BYTES + of_value(&property.value)).sum()
}

/// The bytes of the properties of an edge.
pub(super) fn of_edge(edge: &Edge) -> u64 {
    edge.properties.as_deref().map_or(0, of_properties)
}

fn of_properties(properties: &[Arc<Property>]) -> u64 {
    properties.iter().map(|property| VALUE_BYTES + of_value(&property.value)).sum()
}

fn within(value: &Value, depth: u32) -> u64 {
    let Some(depth) = depth.checked_sub(1) else { return VALUE_BYTES };
    let entry = |(key, value): (&Value, &Value)| within(key, depth) + within(value, depth);
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len() as u64,
            Value::Binary(bytes) => bytes.len() as u64,
            Value::BigInteger(number) => number.bits() / 8,
            Value::BigDecimal(number) => number.digits() / 2,
            Value::List(values) => values.iter().map(|value| within(value, depth)).sum(),
            Value::Set(values) => values.iter().map(|value| within(value, depth)).sum(),
            Value::BulkSet(values) => values.iter().map(|(value, _)| within(value, depth)).sum(),
            Value::Map(entries) => entries.iter().map(entry).sum(),
            Value::Entry(both) => entry((&both.0, &both.1)),
            Value::Path(path) => path.objects.iter().map(|value| within(value, depth)).sum(),
            Value::Vertex(vertex) => vertex.properties.as_deref().map_or(0, of_vertex_properties),
            Value::Edge(edge) => of_edge(edge),
            Value::VertexProperty(property) => within(&property.value, depth),
            Value::Property(property) => within(&property.value, depth),
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_what_they_hold() {
        let text = Value::text("x".repeat(1_000));
        assert_eq!(of_value(&text), 1_032);
        assert_eq!(of_value(&Value::list([text.clone(), text])), 32 + 2 * 1_032);
        let deep = (0..10_000).fold(Value::Null, |value, _| Value::list([value]));
        assert!(of_value(&deep) < 10_000, "the depth is bounded");
        // Nested lists are dropped one in another, so the stack would not do for all of them at once.
        std::mem::forget(deep);
    }
}
