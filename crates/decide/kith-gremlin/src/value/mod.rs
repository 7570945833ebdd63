//! The values of Gremlin: what steps take and return, and what travels between drivers and servers.

pub mod bytecode;
mod collections;
mod display;
pub mod duration;
mod element;
mod identity;
mod metrics;
pub mod numbers;
pub mod predicate;
mod symbol;
pub mod time;

pub use collections::{Map, Set};
pub use element::{
    Edge, ElementId, Path, Property, ShownId, Vertex, VertexProperty, end_of_edge_id, shown_edge_id,
};
pub use metrics::{ELEMENT_COUNT, Metrics, PERCENT_OF_TIME, TRAVERSER_COUNT, TraversalMetrics};
pub use symbol::{
    Barrier, Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope,
    Symbol, Token,
};

use crate::{bytecode::Bytecode, predicate::Predicate};
use bigdecimal::BigDecimal;
use bytes::Bytes;
use chrono::{DateTime, FixedOffset};
use num_bigint::BigInt;
use std::sync::Arc;
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
    /// An entry of a map by itself, as `unfold` returns it. It travels as a map with one entry.
    Entry(Arc<(Value, Value)>),
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
    /// A whole number that is not negative: a `Long`, or a `BigInteger` from 2⁶³.
    pub fn unsigned(number: u64) -> Self {
        i64::try_from(number).map_or_else(|_| Self::BigInteger(Arc::new(BigInt::from(number))), Self::Long)
    }

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
            Self::Entry(_) => "Entry",
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
