//! Documents: the JSON that the metadata store keeps and that topology messages carry.
//!
//! Readers ignore unknown fields, so that a newer release can add some. A document with another `format` is refused,
//! and the error names that format.

mod cluster;
mod live;
mod names;
mod plan;
mod rebalance;
mod served;
mod stores;

pub use cluster::{ClusterDocument, GroupDocument, ListedNodeDocument, NodeDocument, RouterDocument};
pub use live::{DatabaseDocument, LeadersDocument, LiveGraphDocument, TypesReference, TypesTexts};
pub use plan::{
    AddedGroupDocument, BatchDocument, MoveDocument, NodeTotalsDocument, PairTotalsDocument, PlanDocument,
    RosterDocument, ShapeDocument, SizedStoreDocument,
};
pub use rebalance::{
    PhaseDocument, ProgressDocument, RebalanceDocument, RebalanceStatusDocument, ReclaimDocument,
    StopDocument, TransferDocument,
};
pub use served::{KeptDocument, ServedDocument};
pub use stores::{
    CancelledDocument, DefinitionDocument, DroppedDocument, FrozenDocument, HistoryDocument, HoldsDocument,
    RunningDocument, StoreDocument, VersionDocument,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;

/// The format of all documents in this release.
pub const DOCUMENT_FORMAT: u32 = 1;

/// The reason why a document cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum DocumentError {
    /// The bytes are not JSON of the expected form.
    #[error("malformed {what} document")]
    Malformed {
        /// The kind of document that was expected.
        what: &'static str,
        /// The JSON error, with its line and column.
        #[source]
        source: serde_json::Error,
    },
    /// The document has another format than this release reads.
    #[error("{what} document has format {got}, this release reads format {DOCUMENT_FORMAT}")]
    OtherFormat {
        /// The kind of document.
        what: &'static str,
        got: u32,
    },
}

/// A kind of document: its name for error messages, and an encoding whose format is checked.
pub trait Document: Serialize + DeserializeOwned {
    /// The kind of document, for error messages.
    const WHAT: &'static str;

    /// Encodes the document as JSON.
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("documents hold only strings, numbers and lists")
    }

    /// Decodes a document from JSON.
    ///
    /// # Errors
    /// [`DocumentError`] if the bytes are malformed or have another format.
    fn decode(bytes: &[u8]) -> Result<Self, DocumentError> {
        let malformed = |source| DocumentError::Malformed { what: Self::WHAT, source };
        // Check the format first: a document of another format may lack fields that this one requires.
        let Format { format } = serde_json::from_slice(bytes).map_err(malformed)?;
        if format != DOCUMENT_FORMAT {
            return Err(DocumentError::OtherFormat { what: Self::WHAT, got: format });
        }
        serde_json::from_slice(bytes).map_err(malformed)
    }
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// A column of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDocument {
    /// The name of the column in queries.
    pub name: String,
    /// The type of its numbers: `time`, `u64`, `i64` or `f64`.
    pub kind: String,
}

/// One component of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentDocument {
    /// The edge type or entity kind, or `members` or `values`. The name becomes part of a path, so it is checked when
    /// it is read.
    #[serde(deserialize_with = "names::component")]
    pub name: String,
    /// `undirected`, `directed`, `entity`, `members-only` or `values`.
    pub role: String,
    /// The component's own version, which names its folder in the object store.
    pub version: u64,
    /// The hash of the manifest, which identifies the component's bytes.
    pub manifest_hash: String,
    /// The columns that are kept beside the neighbour ids.
    pub columns: Vec<ColumnDocument>,
    /// The number of members that have an edge in this component.
    pub members: u64,
    /// The number of edges. An undirected edge counts once.
    pub edges: u64,
    /// The size of one full replica, in bytes.
    pub bytes: u64,
    /// The time at which the component was loaded, in seconds since 1970.
    pub loaded_at: u64,
    /// The hash of the record schema, which is stored in the manifest; `None` unless the values are records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The folder of the component's files within its place in the object store, which only the push that built them
    /// writes to. `None` means the folder named after its version. The name becomes part of a path, so it is checked
    /// when it is read.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "names::folder")]
    pub folder: Option<String>,
    /// The folder or URL of the component's files. `None` means its place in the cluster's object store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl ComponentDocument {
    /// Returns the folder of the component's files within its place in the cluster's object store.
    pub fn folder(&self) -> String {
        self.folder.clone().unwrap_or_else(|| self.version.to_string())
    }
}

/// Everything that a client needs to route queries; `GetTopology` returns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyDocument {
    /// Document format.
    pub format: u32,
    /// The metadata revision that this topology describes.
    pub revision: u64,
    /// The shape of the cluster.
    pub cluster: ClusterDocument,
    /// The nodes that have registered.
    pub nodes: Vec<NodeDocument>,
    /// The routers that have registered.
    pub routers: Vec<RouterDocument>,
    /// The stores, including graphs, each at the version that is served.
    pub stores: Vec<ServedDocument>,
    /// Further versions that nodes keep. Only nodes and routers receive them, because clients have no use for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptDocument>,
    /// The live graphs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<LiveGraphDocument>,
    /// The types of live graphs that this process has read. They are not a part of the encoded document.
    #[serde(skip)]
    pub types: TypesTexts,
    /// The leaders of the partitions of live graphs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaders: Vec<LeadersDocument>,
    /// The processes with embedded databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<DatabaseDocument>,
    /// The rebalance whose copies and given-up files are still on disk. While it is set, nodes free nothing on their
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebalance: Option<String>,
}
impl Document for TopologyDocument {
    const WHAT: &'static str = "topology";
}

impl TopologyDocument {
    /// Iterates over the graphs that have a version to serve.
    pub fn graphs(&self) -> impl Iterator<Item = &ServedDocument> {
        self.stores.iter().filter(|store| store.is_graph() && store.version != 0)
    }

    /// Returns the graph of this name, if it has a version to serve.
    pub fn graph(&self, name: &str) -> Option<&ServedDocument> {
        self.graphs().find(|graph| graph.name == name)
    }

    /// Returns a copy with only the fields that clients need.
    pub fn for_clients(&self) -> Self {
        Self {
            format: self.format,
            revision: self.revision,
            cluster: self.cluster.clone(),
            nodes: self.nodes.clone(),
            routers: self.routers.clone(),
            stores: self.stores.clone(),
            live: self.live.clone(),
            types: TypesTexts::default(),
            leaders: self.leaders.clone(),
            databases: Vec::new(),
            kept: Vec::new(),
            rebalance: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_format_is_refused_and_unknown_fields_are_ignored() {
        for (other, text) in [(0, r#"{"format":0,"graphs":[]}"#), (2, r#"{"format":2,"node":"one"}"#)] {
            let refused = NodeDocument::decode(text.as_bytes()).unwrap_err().to_string();
            assert_eq!(refused, format!("node document has format {other}, this release reads format 1"));
        }
        let wider = br#"{"format":1,"node":1,"addr":"a:1","http":"a:2","pid":3,"rack":"r7"}"#;
        assert_eq!(NodeDocument::decode(wider).unwrap().node, 1);
    }
}
