//! Documents: what the metadata store keeps and topology messages carry, as JSON.
//!
//! Readers ignore fields that they do not know, so that a newer release can add
//! some; a document of another `format` is refused by its number.

mod cluster;
mod live;
mod names;
mod plan;
mod rebalance;
mod served;
mod stores;

pub use cluster::{ClusterDocument, GroupDocument, ListedNodeDocument, NodeDocument, RouterDocument};
pub use live::{DatabaseDocument, LeadersDocument, LiveGraphDocument};
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

/// The format of all documents.
pub const DOCUMENT_FORMAT: u32 = 1;

/// A document cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum DocumentError {
    /// It is not the JSON that it should be.
    #[error("malformed {what} document")]
    Malformed {
        /// What it should be.
        what: &'static str,
        /// Where it is not.
        #[source]
        source: serde_json::Error,
    },
    /// It is of another format.
    #[error("{what} document has format {got}, this release reads format {DOCUMENT_FORMAT}")]
    OtherFormat {
        /// What it is.
        what: &'static str,
        got: u32,
    },
}

/// A document with a name for errors and a format to check.
pub trait Document: Serialize + DeserializeOwned {
    /// What it is, for errors.
    const WHAT: &'static str;

    /// As JSON bytes.
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("documents hold only strings, numbers and lists")
    }

    /// From JSON bytes.
    ///
    /// # Errors
    /// If it is malformed or of another format.
    fn decode(bytes: &[u8]) -> Result<Self, DocumentError> {
        let malformed = |source| DocumentError::Malformed { what: Self::WHAT, source };
        // First the format: one of another may lack what this one needs.
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
    /// Its name in queries.
    pub name: String,
    /// `time`, `u64`, `i64` or `f64`.
    pub kind: String,
}

/// One component of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentDocument {
    /// Edge type, entity kind, `members` or `values`: a part of paths, hence checked when it is read.
    #[serde(deserialize_with = "names::component")]
    pub name: String,
    /// `undirected`, `directed`, `entity` or `members-only`.
    pub role: String,
    /// The component's own version: its folder in the object store.
    pub version: u64,
    /// Identifies the bytes.
    pub manifest_hash: String,
    /// Columns kept beside the ids.
    pub columns: Vec<ColumnDocument>,
    /// Members with an edge of this component.
    pub members: u64,
    /// Edges: undirected ones counted once.
    pub edges: u64,
    /// Bytes of one full replica.
    pub bytes: u64,
    /// When it was loaded, seconds since 1970.
    pub loaded_at: u64,
    /// Of records: the hash of their schema, which lies in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The folder of its files in its place in the cluster's object store, where only the push that built them writes; `None`: the
    /// folder of its version. A part of paths, hence checked when it is read.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "names::folder")]
    pub folder: Option<String>,
    /// The folder or URL of its files; `None`: its place in the cluster's object store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl ComponentDocument {
    /// The folder of its files in its place in the cluster's object store.
    pub fn folder(&self) -> String {
        self.folder.clone().unwrap_or_else(|| self.version.to_string())
    }
}

/// Everything a client needs to route: what `GetTopology` answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyDocument {
    /// Document format.
    pub format: u32,
    /// The metadata revision that this describes.
    pub revision: u64,
    /// The shape.
    pub cluster: ClusterDocument,
    /// Nodes that have registered.
    pub nodes: Vec<NodeDocument>,
    /// Routers that have registered.
    pub routers: Vec<RouterDocument>,
    /// Stores, graphs among them, at the version that is served.
    pub stores: Vec<ServedDocument>,
    /// Further versions that nodes keep. Only nodes and routers know them: clients have no use for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptDocument>,
    /// Live graphs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<LiveGraphDocument>,
    /// Who leads their partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaders: Vec<LeadersDocument>,
    /// Processes with embedded databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<DatabaseDocument>,
    /// The rebalance whose copies and given-up files still lie about: nodes free nothing by themselves while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebalance: Option<String>,
}
impl Document for TopologyDocument {
    const WHAT: &'static str = "topology";
}

impl TopologyDocument {
    /// The graphs that can be asked.
    pub fn graphs(&self) -> impl Iterator<Item = &ServedDocument> {
        self.stores.iter().filter(|store| store.is_graph() && store.version != 0)
    }

    /// The graph of this name, if it can be asked.
    pub fn graph(&self, name: &str) -> Option<&ServedDocument> {
        self.graphs().find(|graph| graph.name == name)
    }

    /// What clients need of it.
    pub fn for_clients(&self) -> Self {
        Self {
            format: self.format,
            revision: self.revision,
            cluster: self.cluster.clone(),
            nodes: self.nodes.clone(),
            routers: self.routers.clone(),
            stores: self.stores.clone(),
            live: self.live.clone(),
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
