//! The total order of all values, by which `order()` sorts.

use super::number::{self, Number};
use crate::value::Value;
use std::{borrow::Cow, cmp::Ordering};

/// Values that can be compared with each other. The order of the variants is the order of mixed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Family {
    Null,
    Boolean,
    Number,
    DateTime,
    String,
    Uuid,
    Vertex,
    Edge,
    VertexProperty,
    Property,
    Path,
    Set,
    List,
    Map,
    Entry,
    Other,
}

pub(super) fn family(value: &Value) -> Family {
    match value {
        Value::Null => Family::Null,
        Value::Bool(_) => Family::Boolean,
        value if value.is_number() => Family::Number,
        Value::DateTime(_) => Family::DateTime,
        Value::String(_) => Family::String,
        Value::Uuid(_) => Family::Uuid,
        Value::Vertex(_) => Family::Vertex,
        Value::Edge(_) => Family::Edge,
        Value::VertexProperty(_) => Family::VertexProperty,
        Value::Property(_) => Family::Property,
        Value::Path(_) => Family::Path,
        Value::Set(_) | Value::BulkSet(_) => Family::Set,
        Value::List(_) => Family::List,
        Value::Map(_) => Family::Map,
        Value::Entry(_) => Family::Entry,
        _ => Family::Other,
    }
}

/// The order of two values of any types: first by type, from null over booleans, numbers, dates, texts, UUIDs, elements and
/// collections to all others, then by value.
///
/// Numbers of different types are ordered by value, with NaN behind all others. Elements are ordered by id; properties by key
/// and value; lists and paths item by item; sets and maps likewise, after they are sorted. `O(n log n)` for collections.
pub fn order(a: &Value, b: &Value) -> Ordering {
    family(a).cmp(&family(b)).then_with(|| match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
        _ => match (Number::of(a), Number::of(b)) {
            (Some(a), Some(b)) => number::compare(a, b),
            _ => sequences(&parts(a), &parts(b), |a, b| Some(order(a, b)))
                .filter(|order| order.is_ne())
                .unwrap_or_else(|| order_others(a, b)),
        },
    })
}

/// The order of values that have no place in Gremlin's order of types: by the name of the type, then by value.
fn order_others(a: &Value, b: &Value) -> Ordering {
    if family(a) != Family::Other {
        return Ordering::Equal;
    }
    a.type_name().cmp(b.type_name()).then_with(|| match (a, b) {
        (Value::Char(a), Value::Char(b)) => a.cmp(b),
        (Value::Duration { seconds: a, nanos: n }, Value::Duration { seconds: b, nanos: m }) => {
            (a, n).cmp(&(b, m))
        }
        (Value::Binary(a), Value::Binary(b)) => a.cmp(b),
        (Value::Symbol(a), Value::Symbol(b)) => a.name().cmp(b.name()),
        (Value::Class(a), Value::Class(b)) => a.cmp(b),
        (a, b) if a == b => Ordering::Equal,
        // Predicates, traversals and the like are never sorted in practice; any order will do.
        (a, b) => format!("{a:?}").cmp(&format!("{b:?}")),
    })
}

/// A part of a value and how often it occurs at this place.
pub(super) type Part<'a> = (Cow<'a, Value>, i64);

/// The parts by which a composite value is compared, in the order of comparison. Nothing for a value without parts.
pub(super) fn parts(value: &Value) -> Vec<Part<'_>> {
    let once = |part| (Cow::Borrowed(part), 1);
    match value {
        Value::Vertex(vertex) => vec![once(&vertex.id)],
        Value::Edge(edge) => vec![once(&edge.id)],
        Value::VertexProperty(property) => vec![once(&property.id)],
        Value::Property(property) => {
            vec![(Cow::Owned(Value::String(property.key.clone())), 1), once(&property.value)]
        }
        Value::Path(path) => path.objects.iter().map(once).collect(),
        Value::List(values) => values.iter().map(once).collect(),
        Value::Set(values) => sorted(values.iter().map(once).collect()),
        Value::BulkSet(values) => sorted(
            values
                .iter()
                .filter(|(_, bulk)| 0 < *bulk)
                .map(|(value, bulk)| (Cow::Borrowed(value), *bulk))
                .collect(),
        ),
        Value::Entry(entry) => vec![once(&entry.0), once(&entry.1)],
        Value::Map(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by(|(a, x), (b, y)| order(a, b).then_with(|| order(x, y)));
            entries.into_iter().flat_map(|(key, value)| [once(key), once(value)]).collect()
        }
        _ => Vec::new(),
    }
}

fn sorted(mut parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    parts.sort_by(|(a, _), (b, _)| order(a, b));
    parts
}

/// Relates two rows of parts by the first pair that differs; a row that ends first is less. `None` as soon as `relate`
/// cannot tell. The cost does not depend on how often parts occur.
pub(super) fn sequences(
    a: &[Part<'_>],
    b: &[Part<'_>],
    relate: fn(&Value, &Value) -> Option<Ordering>,
) -> Option<Ordering> {
    let (mut a, mut b) =
        (a.iter().map(|(part, bulk)| (part, *bulk)), b.iter().map(|(part, bulk)| (part, *bulk)));
    let (mut x, mut y) = (a.next(), b.next());
    while let (Some((part_a, bulk_a)), Some((part_b, bulk_b))) = (x, y) {
        let order = relate(part_a, part_b)?;
        if order.is_ne() {
            return Some(order);
        }
        let both = bulk_a.min(bulk_b);
        x = if both < bulk_a { Some((part_a, bulk_a - both)) } else { a.next() };
        y = if both < bulk_b { Some((part_b, bulk_b - both)) } else { b.next() };
    }
    Some(x.is_some().cmp(&y.is_some()))
}
