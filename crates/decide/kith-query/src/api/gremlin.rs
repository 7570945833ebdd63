//! Traversals in Gremlin, as requests carry them. Between processes, values are coded in GraphBinary 1.0, so that only those who
//! evaluate a traversal, or show its results, need to know Gremlin's values (`kith_gremlin`).

use crate::{QueryError, ServedGraph};
use bytes::Bytes;
use kith_wire::v1;
use std::{any::Any, fmt, sync::Arc};

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
    /// Bytecode in GraphBinary, from another process.
    Bytecode(Bytes),
    /// Bytecode that this process has decoded. It is coded only if it leaves the process.
    Decoded(DecodedTraversal),
}

/// Bytecode that this process has decoded. Crates that link Gremlin look into it with the cargo feature `gremlin`.
#[derive(Clone, Debug)]
pub struct DecodedTraversal(Arc<dyn LinkedTraversal>);

/// A traversal as a value of a language that this crate need not link.
pub trait LinkedTraversal: Any + fmt::Debug + Send + Sync {
    /// The traversal in GraphBinary.
    ///
    /// # Errors
    /// It nests too deep to be coded.
    fn encode(&self) -> Result<Bytes, QueryError>;
}

impl DecodedTraversal {
    /// A traversal that has this value.
    pub fn new(value: impl LinkedTraversal) -> Self {
        Self(Arc::new(value))
    }

    /// The value, if it is of this type.
    pub fn value<T: LinkedTraversal>(&self) -> Option<&T> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// The traversal in GraphBinary, for another process.
    ///
    /// # Errors
    /// As [`LinkedTraversal::encode`].
    pub fn encode(&self) -> Result<Bytes, QueryError> {
        self.0.encode()
    }
}

/// Decoded traversals are equal if they are the same value.
impl PartialEq for DecodedTraversal {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for DecodedTraversal {}

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
    /// What the traversal did otherwise than it says.
    pub warnings: Vec<String>,
}
