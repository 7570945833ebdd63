//! How many bytes values take in memory, roughly and quickly.

use crate::value::{Edge, Property, Value, VertexProperty};
use std::sync::Arc;

/// What every value takes, whatever it holds.
const VALUE_BYTES: u64 = 32;
/// What each value takes that a traverser remembers in its path.
pub(super) const PATH_NODE_BYTES: u64 = 64;
/// How deep lists in lists are looked into. Results nest no deeper than this can be coded.
const DEPTH_MAX: u32 = 100;

/// The bytes of a value, or a number beyond `most` if it takes more. What several values share counts for each of them. Visits
/// at most `most / 32` values: values that share their parts may contain more of them than can be visited.
pub(super) fn up_to(value: &Value, most: u64) -> u64 {
    let mut left = most;
    let is_within = take(value, DEPTH_MAX, &mut left).is_some();
    if is_within { most - left } else { most.saturating_add(1) }
}

fn of_value(value: &Value) -> u64 {
    up_to(value, u64::MAX - 1)
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

/// Takes the bytes of a value from what is left; `None` if they exceed it.
fn take(value: &Value, depth: u32, left: &mut u64) -> Option<()> {
    let mut bytes = |count: u64| {
        *left = left.checked_sub(count)?;
        Some(())
    };
    bytes(VALUE_BYTES)?;
    let Some(depth) = depth.checked_sub(1) else { return Some(()) };
    match value {
        Value::String(text) => bytes(text.len() as u64),
        Value::Binary(binary) => bytes(binary.len() as u64),
        Value::BigInteger(number) => bytes(number.bits() / 8),
        Value::BigDecimal(number) => bytes(number.digits() / 2),
        Value::Vertex(vertex) => bytes(vertex.properties.as_deref().map_or(0, of_vertex_properties)),
        Value::Edge(edge) => bytes(of_edge(edge)),
        Value::List(values) => values.iter().try_for_each(|value| take(value, depth, left)),
        Value::Set(values) => values.iter().try_for_each(|value| take(value, depth, left)),
        Value::BulkSet(values) => values.iter().try_for_each(|(value, _)| take(value, depth, left)),
        Value::Path(path) => path.objects.iter().try_for_each(|value| take(value, depth, left)),
        Value::Map(entries) => entries.iter().try_for_each(|(key, value)| {
            take(key, depth, left)?;
            take(value, depth, left)
        }),
        Value::Entry(both) => {
            take(&both.0, depth, left)?;
            take(&both.1, depth, left)
        }
        Value::VertexProperty(property) => take(&property.value, depth, left),
        Value::Property(property) => take(&property.value, depth, left),
        _ => Some(()),
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
        let many = (0..90).fold(Value::Null, |value, _| Value::list([value.clone(), value]));
        assert!(1 << 20 < up_to(&many, 1 << 20), "what is shared is not visited 2^90 times");
        // Nested lists are dropped one in another, so the stack would not do for all of them at once.
        std::mem::forget(deep);
    }
}
