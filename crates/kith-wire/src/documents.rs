//! Documents: what the metadata store keeps and topology messages carry, as JSON.
//!
//! Readers ignore fields they do not know, so that neighbours one release apart
//! work together; a document of a newer `format` is refused by name.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;

/// The format that this release writes.
pub const DOCUMENT_FORMAT: u32 = 1;

/// A document cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
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
    /// A newer release wrote it.
    #[error("{what} document has format {got}, this release reads up to {DOCUMENT_FORMAT}")]
    NewerFormat {
        /// What it is.
        what: &'static str,
        /// Its format.
        got: u32,
    },
}

/// A document with a name for errors and a format to check.
pub trait Document: Serialize + DeserializeOwned {
    /// What it is, for errors.
    const WHAT: &'static str;

    /// The format it was written in.
    fn format(&self) -> u32;

    /// As JSON bytes.
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("documents hold only strings, numbers and lists")
    }

    /// From JSON bytes.
    ///
    /// # Errors
    /// If it is malformed or of a newer format.
    fn decode(bytes: &[u8]) -> Result<Self, DocumentError> {
        let document: Self = serde_json::from_slice(bytes)
            .map_err(|source| DocumentError::Malformed { what: Self::WHAT, source })?;
        if document.format() > DOCUMENT_FORMAT {
            return Err(DocumentError::NewerFormat { what: Self::WHAT, got: document.format() });
        }
        Ok(document)
    }
}

macro_rules! document {
    ($name:ident, $what:literal) => {
        impl Document for $name {
            const WHAT: &'static str = $what;

            fn format(&self) -> u32 {
                self.format
            }
        }
    };
}

/// The shape of a cluster: key `cluster`. Changes only with topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterDocument {
    /// Document format.
    pub format: u32,
    /// Random, so that a node's data directory of another cluster is refused.
    pub cluster_id: String,
    /// Grows with every change of placement.
    pub epoch: u64,
    /// Partition count, fixed at creation.
    pub partitions: u32,
    /// The replica groups, by id.
    pub groups: Vec<GroupDocument>,
    /// Folder or URL of the object store that holds built components.
    pub object_store: String,
}
document!(ClusterDocument, "cluster");

/// One replica group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDocument {
    /// The group.
    pub group: u32,
    /// Its nodes.
    pub nodes: Vec<u32>,
    /// At each partition's index, the node that holds it.
    pub owners: Vec<u32>,
}

/// Where a node is: key `nodes/<id>`, written by the node when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDocument {
    /// Document format.
    pub format: u32,
    /// The node.
    pub node: u32,
    /// `host:port` of its gRPC service.
    pub addr: String,
    /// `host:port` of `/healthz`, `/readyz` and `/metrics`.
    pub http: String,
    /// Its process.
    pub pid: u32,
}
document!(NodeDocument, "node");

/// Where a router is: key `routers/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterDocument {
    /// Document format.
    pub format: u32,
    /// The router.
    pub router: u32,
    /// `host:port` of its gRPC service.
    pub addr: String,
    /// `host:port` of its HTTP service.
    pub http: String,
    /// Its process.
    pub pid: u32,
}
document!(RouterDocument, "router");

/// A graph at one version: key `graphs/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphDocument {
    /// Document format.
    pub format: u32,
    /// The graph.
    pub name: String,
    /// Grows with every load; the version that queries pin.
    pub version: u64,
    /// In the order in which they were first loaded; the first edge type is the default.
    pub components: Vec<ComponentDocument>,
}
document!(GraphDocument, "graph");

/// One component of a graph version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentDocument {
    /// Edge type, entity kind or `members`.
    pub name: String,
    /// `undirected`, `directed`, `entity` or `members-only`.
    pub role: String,
    /// The component's own version: its folder in the object store.
    pub version: u64,
    /// Identifies the bytes.
    pub manifest_hash: String,
    /// Columns kept beside the ids.
    pub columns: Vec<String>,
    /// Members with an edge of this component.
    pub members: u64,
    /// Edges: undirected ones counted once.
    pub edges: u64,
    /// Bytes of one full replica.
    pub bytes: u64,
    /// When it was loaded, seconds since 1970.
    pub loaded_at: u64,
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
    /// Graphs.
    pub graphs: Vec<GraphDocument>,
}
document!(TopologyDocument, "topology");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_format_is_refused_and_unknown_fields_are_ignored() {
        let newer = br#"{"format":2,"node":1,"addr":"a:1","http":"a:2","pid":3}"#;
        assert!(matches!(NodeDocument::decode(newer), Err(DocumentError::NewerFormat { got: 2, .. })));
        let wider = br#"{"format":1,"node":1,"addr":"a:1","http":"a:2","pid":3,"rack":"r7"}"#;
        assert_eq!(NodeDocument::decode(wider).unwrap().node, 1);
    }
}
