//! The values of Gremlin: what steps take and return, and what travels between drivers and servers.

mod collections;
mod element;
mod metrics;
mod symbol;

pub use collections::{Map, Set};
pub use element::{Edge, ElementId, Path, Property, Vertex, VertexProperty};
pub use metrics::{Metrics, TraversalMetrics};
pub use symbol::{
    Barrier, Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope,
    Symbol, Token,
};

use crate::{bytecode::Bytecode, predicate::Predicate};
use bigdecimal::BigDecimal;
use bytes::Bytes;
use chrono::{DateTime, FixedOffset};
use num_bigint::BigInt;
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};
use uuid::Uuid;

/// A value.
///
/// `==` and [`Hash`] are strict, like `equals` in Java: values of different types are different, also numbers (an `Int` 1 is
/// not a `Long` 1), NaN equals itself, and elements are equal if their ids are. Gremlin's own equality and order are in
/// another module. Cloning is cheap: what is large is shared.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the variants have the names of Gremlin's types")]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    BigInteger(Arc<BigInt>),
    BigDecimal(Arc<BigDecimal>),
    Char(char),
    String(Arc<str>),
    Uuid(Uuid),
    DateTime(DateTime<FixedOffset>),
    /// A duration in seconds and nanoseconds (0 to 999,999,999), as in Java.
    Duration {
        seconds: i64,
        nanos: u32,
    },
    Binary(Bytes),
    List(Arc<Vec<Value>>),
    Set(Arc<Set>),
    Map(Arc<Map>),
    /// Values with how often each occurs.
    BulkSet(Arc<Vec<(Value, i64)>>),
    Vertex(Arc<Vertex>),
    Edge(Arc<Edge>),
    VertexProperty(Arc<VertexProperty>),
    Property(Arc<Property>),
    Path(Arc<Path>),
    Symbol(Symbol),
    Predicate(Arc<Predicate>),
    Traversal(Arc<Bytecode>),
    /// A value that stands for `bulk` equal ones, as results of bytecode travel.
    Traverser {
        bulk: i64,
        value: Arc<Value>,
    },
    /// The argument of `property(Cardinality.list("a"))` or a value of `mergeV` that names its cardinality.
    CardinalityValue {
        cardinality: Cardinality,
        value: Arc<Value>,
    },
    /// A traversal strategy and its configuration. The name has no package: drivers disagree about it.
    Strategy {
        name: Arc<str>,
        configuration: Arc<Map>,
    },
    /// The name of a Java class, such as that of a strategy in `withoutStrategies`.
    Class(Arc<str>),
    /// A function in the words of some programming language, which Kith refuses to run.
    Lambda {
        language: Arc<str>,
        script: Arc<str>,
    },
    Metrics(Arc<Metrics>),
    TraversalMetrics(Arc<TraversalMetrics>),
}

impl Value {
    /// A string.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// A list.
    pub fn list(values: impl Into<Vec<Value>>) -> Self {
        Self::List(Arc::new(values.into()))
    }

    /// The text of a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether this is a number of any type.
    pub fn is_number(&self) -> bool {
        use Value::*;
        matches!(
            self,
            Byte(_) | Short(_) | Int(_) | Long(_) | Float(_) | Double(_) | BigInteger(_) | BigDecimal(_)
        )
    }

    /// The name of its type for messages, such as `Int` or `VertexProperty`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "Boolean",
            Self::Byte(_) => "Byte",
            Self::Short(_) => "Short",
            Self::Int(_) => "Int",
            Self::Long(_) => "Long",
            Self::Float(_) => "Float",
            Self::Double(_) => "Double",
            Self::BigInteger(_) => "BigInteger",
            Self::BigDecimal(_) => "BigDecimal",
            Self::Char(_) => "Char",
            Self::String(_) => "String",
            Self::Uuid(_) => "UUID",
            Self::DateTime(_) => "DateTime",
            Self::Duration { .. } => "Duration",
            Self::Binary(_) => "Binary",
            Self::List(_) => "List",
            Self::Set(_) => "Set",
            Self::Map(_) => "Map",
            Self::BulkSet(_) => "BulkSet",
            Self::Vertex(_) => "Vertex",
            Self::Edge(_) => "Edge",
            Self::VertexProperty(_) => "VertexProperty",
            Self::Property(_) => "Property",
            Self::Path(_) => "Path",
            Self::Symbol(symbol) => symbol.type_name(),
            Self::Predicate(_) => "P",
            Self::Traversal(_) => "Traversal",
            Self::Traverser { .. } => "Traverser",
            Self::CardinalityValue { .. } => "CardinalityValue",
            Self::Strategy { .. } => "Strategy",
            Self::Class(_) => "Class",
            Self::Lambda { .. } => "Lambda",
            Self::Metrics(_) => "Metrics",
            Self::TraversalMetrics(_) => "TraversalMetrics",
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Long(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl<T: Into<Symbol>> From<T> for Value {
    fn from(symbol: T) -> Self {
        Self::Symbol(symbol.into())
    }
}

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
            (DateTime(a), DateTime(b)) => a == b,
            (Duration { seconds: a, nanos: n }, Duration { seconds: b, nanos: m }) => (a, n) == (b, m),
            (Binary(a), Binary(b)) => a == b,
            (List(a), List(b)) => a == b,
            (Set(a), Set(b)) => a == b,
            (Map(a), Map(b)) => a == b,
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
            Self::Set(values) => values.len().hash(state),
            Self::Map(entries) => entries.len().hash(state),
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
            Self::Strategy { name, configuration } => (name, configuration.len()).hash(state),
            Self::Lambda { language, script } => (language, script).hash(state),
            Self::Metrics(metrics) => metrics.id.hash(state),
            Self::TraversalMetrics(metrics) => metrics.nanos.hash(state),
        }
    }
}

/// The bits of a number; all NaN have the same.
fn bits32(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}

/// As [`bits32`].
fn bits64(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}
