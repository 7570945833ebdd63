//! The cases in which the predicate `eq` holds.

use super::{
    compare::compare,
    number::Number,
    order::{Family, family},
};
use crate::value::Value;
use num_traits::ToPrimitive;
use std::{cmp::Ordering, collections::HashSet};

/// Integers up to this one, and down to its negative, have a `Double` of the same value.
const DOUBLE_INTEGER_MAX: f64 = (1_u64 << 53) as f64;

/// Whether two values are equal as the predicate `eq` sees it.
///
/// Numbers are equal by value, whatever their types, and NaN is not equal to anything. Elements are equal by id, properties by
/// key and value, lists and paths item by item, sets and maps without regard to order. Values that cannot be compared are not
/// equal. `O(n log n)` for sets and maps.
pub fn equal(a: &Value, b: &Value) -> bool {
    use Value::*;
    match (a, b) {
        (String(a), String(b)) => a == b,
        (Int(a), Int(b)) => a == b,
        (Long(a), Long(b)) => a == b,
        (Vertex(a), Vertex(b)) => equal(&a.id, &b.id),
        (List(a), List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b)),
        (Map(a), Map(b)) if a.len() != b.len() => false,
        _ => compare(a, b) == Some(Ordering::Equal),
    }
}

/// Values among which others are looked up by [`equal`].
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    all: Vec<Value>,
    keys: HashSet<Key>,
    /// Those without a key.
    others: Vec<Value>,
}

impl Members {
    pub(super) fn new(all: Vec<Value>) -> Self {
        let (mut keys, mut others) = (HashSet::new(), Vec::new());
        for value in &all {
            match key(value) {
                Some(key) => {
                    keys.insert(key);
                }
                None => others.push(value.clone()),
            }
        }
        Self { all, keys, others }
    }

    pub(super) fn all(&self) -> &[Value] {
        &self.all
    }

    /// The number of them that have to be looked at one by one for a value.
    pub(super) fn effort(&self, value: &Value) -> u64 {
        use Value::{BulkSet, Entry, List, Map, Path, Set};
        if matches!(value, List(_) | Set(_) | BulkSet(_) | Map(_) | Path(_) | Entry(_)) {
            return self.len();
        }
        let is_keyed = self.others.len() < self.all.len();
        self.others.len() as u64 + u64::from(is_keyed)
    }

    pub(super) fn len(&self) -> u64 {
        self.all.len() as u64
    }

    /// Whether one of them is equal to the value. `O(1)` unless collections or very large numbers are involved.
    pub(super) fn contain(&self, value: &Value) -> bool {
        match key(value) {
            Some(key) => self.keys.contains(&key) || self.others.iter().any(|other| equal(other, value)),
            None => self.all.iter().any(|other| equal(other, value)),
        }
    }
}

/// The key that two values have in common if and only if they are equal, provided that both have one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key(Family, Value);

fn key(value: &Value) -> Option<Key> {
    let family = family(value);
    let inner = match value {
        Value::Vertex(vertex) => id_key(&vertex.id)?,
        Value::Edge(edge) => id_key(&edge.id)?,
        Value::VertexProperty(property) => id_key(&property.id)?,
        // Times are equal if they are the same instant, whatever their offsets.
        Value::DateTime(time) => Value::DateTime(time.to_utc().fixed_offset()),
        _ => match family {
            Family::Number => number_key(Number::of(value)?)?,
            Family::Null | Family::Boolean | Family::String | Family::Uuid => value.clone(),
            _ => return None,
        },
    };
    Some(Key(family, inner))
}

/// One value for all ids that are equal to this one. An id that is an element has none: it must differ from that element's id.
fn id_key(id: &Value) -> Option<Value> {
    match id {
        Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) => None,
        id => key(id).map(|Key(_, inner)| inner),
    }
}

/// One value for all numbers that are equal to this one; `None` for numbers that would be too costly to write out.
fn number_key(number: Number<'_>) -> Option<Value> {
    match number {
        Number::Integer(number) => Some(Value::Long(number)),
        Number::BigInteger(number) => number.to_i64().map(Value::Long),
        Number::BigDecimal(_) => None,
        Number::Floating(number) if number.is_nan() => None,
        Number::Floating(number) if number.fract() == 0.0 => {
            (number.abs() <= DOUBLE_INTEGER_MAX).then_some(Value::Long(number as i64))
        }
        Number::Floating(number) => Some(Value::Double(number)),
    }
}
