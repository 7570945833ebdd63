//! Versions of stores, as clients query them and nodes keep them.

use super::{ComponentDocument, DefinitionDocument, Document, HoldsDocument, names};
use serde::{Deserialize, Serialize};

/// A store at one version: everything that a client needs to query it, and a node to prepare it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedDocument {
    /// Document format.
    pub format: u32,
    /// The name of the store. It becomes part of a path, so it is checked when it is read.
    #[serde(deserialize_with = "names::store")]
    pub name: String,
    /// The store's definition.
    pub definition: DefinitionDocument,
    /// The version; 0 means that none is served yet.
    pub version: u64,
    /// The components. Those of a graph are in the order in which they were first loaded, and the first edge type is
    /// the default.
    pub components: Vec<ComponentDocument>,
    /// The nodes that do not have this version, so they are not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<u32>,
}
impl Document for ServedDocument {
    const WHAT: &'static str = "store version";
}

/// A version that nodes keep although it is not served, for a later swap or rollback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDocument {
    /// Whether nodes fetch the version on their own. A version that is being pushed is fetched only when the push asks
    /// for it.
    pub is_whole: bool,
    /// The store at that version.
    pub at: ServedDocument,
}

impl ServedDocument {
    /// Whether the store is a graph.
    pub fn is_graph(&self) -> bool {
        self.definition.holds == HoldsDocument::Graph
    }
}
