//! Elements of graphs.

use super::{Set, Value};
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

/// The id of a vertex, edge or vertex property: a `Long`, a `BigInteger` from 2⁶³, or a `String`.
pub type ElementId = Value;

/// A vertex.
///
/// `==` compares ids only: a traversal may hold the same vertex with and without its properties, and before its label is known.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct Vertex {
    pub id: ElementId,
    pub label: Arc<str>,
    /// The properties, or `None` if this is a reference to the vertex.
    pub properties: Option<Vec<Arc<VertexProperty>>>,
}

/// An edge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct Edge {
    pub id: ElementId,
    pub label: Arc<str>,
    /// The vertex at which the edge begins, without properties.
    pub out_vertex: Arc<Vertex>,
    /// The vertex at which the edge ends, without properties.
    pub in_vertex: Arc<Vertex>,
    /// The properties, or `None` if this is a reference to the edge.
    pub properties: Option<Vec<Arc<Property>>>,
}

/// A property of a vertex, which is an element too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct VertexProperty {
    pub id: ElementId,
    pub key: Arc<str>,
    pub value: Value,
    /// The vertex that has the property, without properties. `None` if it is unknown, as in a request.
    pub vertex: Option<Arc<Vertex>>,
    /// Properties of this property. Kith's graphs have none.
    pub properties: Vec<Arc<Property>>,
}

/// A property of an edge or of a vertex property.
///
/// `==` compares keys and values only: two edges may have the same property.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct Property {
    pub key: Arc<str>,
    pub value: Value,
    /// The element that has the property, without properties: an edge or a vertex property. `None` if it is unknown.
    pub element: Option<Value>,
}

/// The objects that a traverser has visited, with the labels (`as`) of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct Path {
    pub labels: Vec<Set>,
    pub objects: Vec<Value>,
}

impl Vertex {
    /// A vertex without its properties.
    pub fn reference(id: ElementId, label: impl Into<Arc<str>>) -> Self {
        Self { id, label: label.into(), properties: None }
    }
}

impl PartialEq for Vertex {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Vertex {}

impl Hash for Vertex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialEq for Property {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

impl Eq for Property {}

impl Hash for Property {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
        self.value.hash(state);
    }
}
