//! When two values are the same: `==` and [`Hash`], which are strict, as [`Value`] says.

use super::{Path, Value};
use std::hash::{DefaultHasher, Hash, Hasher};

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        use Value::*;
        match (self, other) {
            (Null, Null) => true,
            (Bool(a), Bool(b)) => a == b,
            (Byte(a), Byte(b)) => a == b,
            (Short(a), Short(b)) => a == b,
            (Int(a), Int(b)) => a == b,
            (Long(a), Long(b)) => a == b,
            (Float(a), Float(b)) => bits32(*a) == bits32(*b),
            (Double(a), Double(b)) => bits64(*a) == bits64(*b),
            (BigInteger(a), BigInteger(b)) => a == b,
            (BigDecimal(a), BigDecimal(b)) => a == b,
            (Char(a), Char(b)) => a == b,
            (String(a), String(b)) | (Class(a), Class(b)) => a == b,
            (Uuid(a), Uuid(b)) => a == b,
            (DateTime(a), DateTime(b)) => a == b && a.offset() == b.offset(),
            (Duration { seconds: a, nanos: n }, Duration { seconds: b, nanos: m }) => (a, n) == (b, m),
            (Binary(a), Binary(b)) => a == b,
            (List(a), List(b)) => a == b,
            (Set(a), Set(b)) => a == b,
            (Map(a), Map(b)) => a == b,
            (Entry(a), Entry(b)) => a == b,
            (BulkSet(a), BulkSet(b)) => a == b,
            (Vertex(a), Vertex(b)) => a.id == b.id,
            (Edge(a), Edge(b)) => a.id == b.id,
            (VertexProperty(a), VertexProperty(b)) => a.id == b.id,
            (Property(a), Property(b)) => a == b,
            (Path(a), Path(b)) => a == b,
            (Symbol(a), Symbol(b)) => a == b,
            (Predicate(a), Predicate(b)) => a == b,
            (Traversal(a), Traversal(b)) => a == b,
            (Traverser { bulk: n, value: a }, Traverser { bulk: m, value: b }) => n == m && a == b,
            (
                CardinalityValue { cardinality: c, value: a },
                CardinalityValue { cardinality: d, value: b },
            ) => c == d && a == b,
            (Strategy { name: n, configuration: a }, Strategy { name: m, configuration: b }) => {
                n == m && a == b
            }
            (Lambda { language: l, script: a }, Lambda { language: m, script: b }) => l == m && a == b,
            (Metrics(a), Metrics(b)) => a == b,
            (TraversalMetrics(a), TraversalMetrics(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Bool(value) => value.hash(state),
            Self::Byte(value) => value.hash(state),
            Self::Short(value) => value.hash(state),
            Self::Int(value) => value.hash(state),
            Self::Long(value) => value.hash(state),
            Self::Float(value) => bits32(*value).hash(state),
            Self::Double(value) => bits64(*value).hash(state),
            Self::BigInteger(value) => value.hash(state),
            Self::BigDecimal(value) => value.hash(state),
            Self::Char(value) => value.hash(state),
            Self::String(value) | Self::Class(value) => value.hash(state),
            Self::Uuid(value) => value.hash(state),
            Self::DateTime(value) => value.hash(state),
            Self::Duration { seconds, nanos } => (seconds, nanos).hash(state),
            Self::Binary(value) => value.hash(state),
            Self::List(values) => values.hash(state),
            Self::Set(values) => hash_unordered(values.iter(), state),
            Self::Map(entries) => hash_unordered(entries.iter(), state),
            Self::Entry(entry) => entry.hash(state),
            Self::BulkSet(values) => values.hash(state),
            Self::Vertex(vertex) => vertex.id.hash(state),
            Self::Edge(edge) => edge.id.hash(state),
            Self::VertexProperty(property) => property.id.hash(state),
            Self::Property(property) => property.hash(state),
            Self::Path(path) => path.hash(state),
            Self::Symbol(symbol) => symbol.hash(state),
            Self::Predicate(predicate) => predicate.hash(state),
            Self::Traversal(bytecode) => bytecode.hash(state),
            Self::Traverser { bulk, value } => (bulk, value).hash(state),
            Self::CardinalityValue { cardinality, value } => (cardinality, value).hash(state),
            Self::Strategy { name, configuration } => {
                name.hash(state);
                hash_unordered(configuration.iter(), state);
            }
            Self::Lambda { language, script } => (language, script).hash(state),
            Self::Metrics(metrics) => metrics.hash(state),
            Self::TraversalMetrics(metrics) => metrics.hash(state),
        }
    }
}

impl Hash for Path {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.objects.hash(state);
        self.labels.iter().for_each(|labels| hash_unordered(labels, state));
    }
}

/// Hashes items whose order does not matter. All of them count: if only their number did, many sets of one size would share
/// one slot of a map.
fn hash_unordered<T: Hash, H: Hasher>(items: impl IntoIterator<Item = T>, state: &mut H) {
    let mut sum = 0_u64;
    let mut count = 0_usize;
    for item in items {
        let mut hasher = DefaultHasher::new();
        item.hash(&mut hasher);
        sum = sum.wrapping_add(hasher.finish());
        count += 1;
    }
    (sum, count).hash(state);
}

/// The bits of a number; all NaN have the same.
fn bits32(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}

/// As [`bits32`].
fn bits64(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Map, Set, time::parse_date_time};
    use std::sync::Arc;

    fn hash(value: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn the_order_of_sets_and_maps_does_not_matter() {
        let set = |ids: [i32; 3]| Value::Set(Arc::new(ids.map(Value::from).into_iter().collect::<Set>()));
        assert_eq!(set([1, 2, 3]), set([3, 1, 2]));
        assert_eq!(hash(&set([1, 2, 3])), hash(&set([3, 1, 2])));
        assert_ne!(hash(&set([1, 2, 3])), hash(&set([1, 2, 4])));
        let map = |ids: [i32; 2]| {
            Value::Map(Arc::new(ids.map(|id| (Value::from(id), Value::Null)).into_iter().collect::<Map>()))
        };
        assert_eq!(map([1, 2]), map([2, 1]));
        assert_eq!(hash(&map([1, 2])), hash(&map([2, 1])));
    }

    #[test]
    fn equality_is_strict() {
        assert_ne!(Value::Int(1), Value::Long(1));
        assert_eq!(Value::Double(f64::NAN), Value::Double(-f64::NAN));
        assert_ne!(Value::Double(0.0), Value::Double(-0.0));
        let time = |text| Value::DateTime(parse_date_time(text).expect("a time"));
        assert_ne!(time("2023-08-02T00:00Z"), time("2023-08-02T01:00+01:00"), "one instant, two offsets");
    }
}
