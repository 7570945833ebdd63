//! Traversals in Gremlin, as requests carry them. Values are coded in GraphBinary 1.0, so that only those who evaluate a
//! traversal, or show its results, need to know Gremlin's values (`kith_gremlin`).

use crate::ServedGraph;
use bytes::Bytes;
use kith_wire::v1;

/// A traversal, and what is wanted of its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GremlinQuery {
    /// The traversal.
    pub traversal: GremlinTraversal,
    /// Whether elements in the results have their properties, not only their ids and labels.
    pub with_properties: bool,
    /// Whether the traversal is explained instead of evaluated: the result is a text, and the profile has the fan-outs that
    /// are planned.
    pub is_explained: bool,
    /// Whether the traversal may change the graph. Such a request needs the right to write, and is sent only once. A traversal
    /// that would change the graph is refused if this is not set.
    pub writes: bool,
}

/// A traversal as its caller wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GremlinTraversal {
    /// A text, and the values of its variables: a map with strings as keys. Empty bytes stand for an empty map.
    Text {
        /// The text, such as `g.V(42).out("follows").count()`.
        text: String,
        /// The variables.
        bindings: Bytes,
    },
    /// Bytecode.
    Bytecode(Bytes),
}

/// The results of a traversal.
#[derive(Clone, Debug, PartialEq)]
pub struct GremlinAnswer {
    /// A list of traversers, each a value with how often it occurs.
    pub results: Bytes,
    /// The graph and the version that answered, or the places in the logs of a live graph.
    pub served: ServedGraph,
    /// The timings, if requested.
    pub profile: Option<v1::Profile>,
    /// The metrics of the traversal, if a profile was requested: for each step, the number of results, the time, and
    /// the requests to the graph.
    pub metrics: Option<Bytes>,
    /// Whether the traversal has changed the graph. The places in the logs then include its changes.
    pub wrote: bool,
}
