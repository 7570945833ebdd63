//! The bytes that values take in memory, estimated roughly and quickly.

use crate::value::{Edge, Property, Value, VertexProperty};
use std::sync::Arc;

/// The memory of every value, whatever it holds: its place in a list that has room to grow, and the head of what it points to.
pub(super) const VALUE_BYTES: u64 = 64;
/// The memory of each member of a set, and of each entry of a map, beyond its values.
const ENTRY_BYTES: u64 = 64;
/// The memory of a vertex, an edge or a property beyond its value.
const VERTEX_BYTES: u64 = 128;
const EDGE_BYTES: u64 = 320;
const PROPERTY_BYTES: u64 = 192;
/// The memory of each value that a traverser remembers in its path, and of each of its labels.
pub(super) const PATH_NODE_BYTES: u64 = 112;
pub(super) const LABEL_BYTES: u64 = 16;
/// The memory of a place in a path that has become a value.
const PATH_PLACE_BYTES: u64 = 96;
/// The memory of a traverser in a batch that has room to grow, and of each `repeat` that it is in.
pub(super) const TRAVERSER_BYTES: u64 = 2 * size_of::<super::traverser::Traverser>() as u64;
pub(super) const LOOP_BYTES: u64 = 32;
/// The depth to which lists in lists are looked into. Results nest no deeper than this can be coded.
const DEPTH_MAX: u32 = 100;

/// The bytes of a value that is an element of the graph, with the properties of an edge, which travel with it; 0 for others.
pub(super) fn of_element(value: &Value) -> u64 {
    match value {
        Value::Vertex(_) => VERTEX_BYTES,
        Value::Edge(edge) => EDGE_BYTES + of_edge(edge),
        Value::VertexProperty(_) | Value::Property(_) => PROPERTY_BYTES,
        _ => 0,
    }
}

/// The memory of vertices that a graph returns, without their properties.
pub fn of_vertices(count: usize) -> u64 {
    (count as u64).saturating_mul(VERTEX_BYTES)
}

/// The memory of `count` properties of vertices whose values have `members` members in all, and `bytes` bytes of texts.
pub fn of_properties(count: usize, members: usize, bytes: usize) -> u64 {
    let properties = (count as u64).saturating_mul(PROPERTY_BYTES + VALUE_BYTES);
    let members = (members as u64).saturating_mul(ENTRY_BYTES + VALUE_BYTES);
    properties.saturating_add(members).saturating_add(bytes as u64)
}

/// The most memory that the properties read from a JSON object take. `O(n)`, without reading it.
pub fn of_json(json: &str) -> u64 {
    // A field takes two of these signs, and a member of a list one.
    let signs = json.bytes().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count() as u64;
    signs.saturating_mul((PROPERTY_BYTES + VALUE_BYTES) / 2).saturating_add(json.len() as u64)
}

/// The bytes of `count` edges that a graph returns, with `properties` properties each and the vertices at their ends.
pub fn of_edges(count: usize, properties: usize) -> u64 {
    let each = EDGE_BYTES.saturating_add((properties as u64).saturating_mul(PROPERTY_BYTES + VALUE_BYTES));
    (count as u64).saturating_mul(each.saturating_add(if properties == 0 { 0 } else { EDGE_BYTES }))
}

/// The bytes of a value, or a number beyond `most` if it takes more. What several values share counts for each of them. Visits
/// at most `most / 64` values: values that share their parts may contain more of them than can be visited.
pub(super) fn up_to(value: &Value, most: u64) -> u64 {
    let mut left = most;
    let is_within = take(value, DEPTH_MAX, &mut left).is_some();
    if is_within { most - left } else { most.saturating_add(1) }
}

/// As [`up_to`], for a value of which each member is made anew: a member of a bulk set counts as often as it occurs.
pub(super) fn unrolled(value: &Value, most: u64) -> u64 {
    let Value::BulkSet(members) = value else { return up_to(value, most) };
    let mut bytes = VALUE_BYTES;
    for (member, bulk) in members.iter() {
        let each = up_to(member, most).saturating_add(ENTRY_BYTES);
        bytes = bytes.saturating_add(each.saturating_mul((*bulk).max(1).unsigned_abs()));
    }
    bytes
}

/// The memory of `count` maps with this many entries each, without that of their values.
pub(super) fn of_entries(count: usize, entries: usize) -> u64 {
    let each = (entries as u64).saturating_mul(ENTRY_BYTES + 2 * VALUE_BYTES).saturating_add(VALUE_BYTES);
    each.saturating_mul(count as u64)
}

/// The memory of the rows of a table of values, without that of the values.
pub(super) fn of_rows(count: usize, columns: usize) -> u64 {
    (count as u64).saturating_mul(columns as u64).saturating_mul(VALUE_BYTES)
}

/// The memory of a value that is kept in a set after its traverser has gone, without the results that steps have made of it.
pub(super) fn of_kept(value: &Value) -> u64 {
    VALUE_BYTES + ENTRY_BYTES + of_element(value)
}

/// The work of looking at a value as a whole, in units of a simple value. Larger collections than [`LOOKED_AT_MAX`]
/// count as that.
pub(super) fn effort(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / VALUE_BYTES,
        Value::Binary(bytes) => 1 + bytes.len() as u64 / VALUE_BYTES,
        Value::BigInteger(number) => of_words(number.bits() / 64),
        Value::BigDecimal(number) => of_words(number.as_bigint_and_scale().0.bits() / 64),
        Value::List(_)
        | Value::Set(_)
        | Value::BulkSet(_)
        | Value::Path(_)
        | Value::Map(_)
        | Value::Entry(_) => 1 + up_to(value, LOOKED_AT_MAX).min(LOOKED_AT_MAX) / VALUE_BYTES,
        _ => 1,
    }
}

/// The number of members of a collection that are looked at to estimate the effort. It is then a part of its own for steps.
const LOOKED_AT_MAX: u64 = super::step::PART_EFFORT_MAX * VALUE_BYTES;

/// The work that a number of this many words is: multiplying and dividing take more than a linear time.
fn of_words(words: u64) -> u64 {
    1 + words + words.saturating_mul(words) / 4_096
}

fn of_value(value: &Value) -> u64 {
    up_to(value, u64::MAX - 1)
}

/// The bytes of the properties of vertices.
pub(super) fn of_vertex_properties(properties: &[Arc<VertexProperty>]) -> u64 {
    properties.iter().map(|property| PROPERTY_BYTES + of_value(&property.value)).sum()
}

/// The bytes of the properties of an edge.
fn of_edge(edge: &Edge) -> u64 {
    edge.properties.as_deref().map_or(0, of_edge_properties)
}

fn of_edge_properties(properties: &[Arc<Property>]) -> u64 {
    properties.iter().map(|property| PROPERTY_BYTES + of_value(&property.value)).sum()
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
        Value::BigDecimal(number) => bytes(number.as_bigint_and_scale().0.bits() / 8),
        Value::Vertex(vertex) => {
            bytes(VERTEX_BYTES)?;
            bytes(vertex.properties.as_deref().map_or(0, of_vertex_properties))
        }
        Value::Edge(edge) => {
            bytes(EDGE_BYTES)?;
            bytes(of_edge(edge))
        }
        Value::List(values) => values.iter().try_for_each(|value| take(value, depth, left)),
        Value::Set(values) => {
            bytes(values.len() as u64 * ENTRY_BYTES)?;
            values.iter().try_for_each(|value| take(value, depth, left))
        }
        Value::BulkSet(values) => {
            bytes(values.len() as u64 * ENTRY_BYTES)?;
            values.iter().try_for_each(|(value, _)| take(value, depth, left))
        }
        Value::Path(path) => {
            bytes(path.objects.len() as u64 * PATH_PLACE_BYTES)?;
            path.objects.iter().try_for_each(|value| take(value, depth, left))
        }
        Value::Map(entries) => entries.iter().try_for_each(|(key, value)| {
            *left = left.checked_sub(ENTRY_BYTES)?;
            take(key, depth, left)?;
            take(value, depth, left)
        }),
        Value::Entry(both) => {
            take(&both.0, depth, left)?;
            take(&both.1, depth, left)
        }
        Value::VertexProperty(property) => {
            bytes(PROPERTY_BYTES)?;
            take(&property.value, depth, left)
        }
        Value::Property(property) => {
            bytes(PROPERTY_BYTES)?;
            take(&property.value, depth, left)
        }
        _ => Some(()),
    }
}

/// The bytes of the slots of members in a collection.
pub(super) fn of_places(count: usize) -> u64 {
    (count as u64).saturating_mul(2 * VALUE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Properties are charged by the text that they are read from before it is read.
    #[test]
    fn the_size_of_properties_is_known_from_their_json() {
        let lists = format!("{{\"a\":[{}1],\"b\":{{\"c\":[[],[2]],\"d\":{{}}}}}}", "1,".repeat(10_000));
        let fields =
            format!("{{{}\"z\":1}}", (0..2_000).map(|at| format!("\"{at}\":1,")).collect::<String>());
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(100_000));
        for json in ["{}", "{\"a\":null}", "{\"a\":1,\"b\":\"x\"}", &lists, &fields, &text] {
            let properties = kith_gremlin::property::Properties::from_json(json).expect("it is an object");
            let taken: u64 = properties.iter().map(|(_, value)| PROPERTY_BYTES + of_value(value)).sum();
            assert!(taken <= of_json(json), "{taken} > {}", of_json(json));
            assert!(of_json(json) <= 400 + 3 * taken, "{taken} is far below {}", of_json(json));
        }
    }

    #[test]
    fn values_take_what_they_hold() {
        let text = Value::text("x".repeat(1_000));
        assert_eq!(of_value(&text), 1_064);
        assert_eq!(of_value(&Value::list([text.clone(), text])), 64 + 2 * 1_064);
        let deep = (0..10_000).fold(Value::Null, |value, _| Value::list([value]));
        assert!(of_value(&deep) < 10_000, "the depth is bounded");
        let many = (0..90).fold(Value::Null, |value, _| Value::list([value.clone(), value]));
        assert!(1 << 20 < up_to(&many, 1 << 20), "what is shared is not visited 2^90 times");
        // Nested lists are dropped one in another, so the stack would not do for all of them at once.
        std::mem::forget(deep);
    }
}
