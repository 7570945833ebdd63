//! Elements of graphs.

use super::{Set, Value};
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

/// The id of a vertex, edge or vertex property: a `Long`, a `BigInteger` from 2⁶³, or a `String`.
pub type ElementId = Value;

/// The id of a vertex that users see, which may differ from the one that a traversal calculates with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ShownId {
    /// The same id.
    #[default]
    Same,
    /// The id that the creator of the vertex gave it. The graph has computed a number from it.
    Given(ElementId),
    /// The graph would have to look the vertex up to tell it.
    Unknown,
}

/// A vertex.
///
/// `==` compares ids only: a traversal may hold the same vertex with and without its properties, and before its label is known.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's terms")]
pub struct Vertex {
    pub id: ElementId,
    pub label: Arc<str>,
    pub shown: ShownId,
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
        Self { id, label: label.into(), shown: ShownId::Same, properties: None }
    }

    /// The id that users see, as far as it is known; otherwise the one that a traversal calculates with.
    pub fn known_id(&self) -> &ElementId {
        match &self.shown {
            ShownId::Given(id) => id,
            ShownId::Same | ShownId::Unknown => &self.id,
        }
    }
}

/// The id of an edge as users see it: `OUT>LABEL>IN`. In the ends, `%25` stands for `%`, and `%3E` for `>`, so that the label is
/// what stands between the only two `>`.
pub fn shown_edge_id(out_vertex: &ElementId, label: &str, in_vertex: &ElementId) -> ElementId {
    let end = |id: &ElementId| match id {
        Value::String(text) => text.replace('%', "%25").replace('>', "%3E"),
        other => other.to_string(),
    };
    Value::text(format!("{}>{label}>{}", end(out_vertex), end(in_vertex)))
}

/// The text of an end in the id of an edge that [`shown_edge_id`] has made.
pub fn end_of_edge_id(text: &str) -> String {
    text.replace("%3E", ">").replace("%25", "%")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_edges_come_back_from_their_ids() {
        for end in ["a", "a>b", "100%", "%3E", "%25", "%253E", ">>%", "a%b>c%3E"] {
            let id = shown_edge_id(&Value::text(end), "knows>well", &Value::Long(-5));
            let (out_vertex, rest) = id.as_text().and_then(|id| id.split_once('>')).expect("it has ends");
            assert_eq!((&*end_of_edge_id(out_vertex), rest), (end, "knows>well>-5"));
        }
    }
}
