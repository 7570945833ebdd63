//! Versions of stores, as clients ask them and nodes keep them.

use super::{ComponentDocument, DefinitionDocument, Document, HoldsDocument, names};
use serde::{Deserialize, Serialize};

/// A store at one version: what a client needs to ask it, and a node to prepare it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedDocument {
    /// Document format.
    pub format: u32,
    /// The store: a part of paths, hence checked when it is read.
    #[serde(deserialize_with = "names::store")]
    pub name: String,
    /// What it holds and how.
    pub definition: DefinitionDocument,
    /// The version; 0: none is served yet.
    pub version: u64,
    /// Of a graph, in the order in which they were first loaded; the first edge type is the default.
    pub components: Vec<ComponentDocument>,
    /// Nodes that do not have it: they are not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<u32>,
}
impl Document for ServedDocument {
    const WHAT: &'static str = "store version";
}

/// A version that nodes keep though it is not served: a swap or rollback away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDocument {
    /// Whether nodes fetch it by themselves; one that is being pushed is fetched when the push says so.
    pub is_whole: bool,
    /// The version.
    pub at: ServedDocument,
}

impl ServedDocument {
    /// Whether it is a graph.
    pub fn is_graph(&self) -> bool {
        self.definition.holds == HoldsDocument::Graph
    }
}
