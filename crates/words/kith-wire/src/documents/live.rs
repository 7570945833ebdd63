//! Documents of live graphs: their types, their databases, and the leaders of their partitions.

use super::{Document, names};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, sync::Arc};

/// A live graph, under the key `live-graphs/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveGraphDocument {
    /// Document format.
    pub format: u32,
    /// The name of the graph. It becomes a file name of embedded databases, so it is checked when it is read.
    #[serde(deserialize_with = "names::store")]
    pub name: String,
    /// The reference to the types of the graph. The types themselves are a document of their own, which only those read
    /// who need them.
    pub types: TypesReference,
    /// The place where the rows are kept: `database:<id>` for a database process of the cluster, or `mysql://…` without
    /// a password.
    pub storage: String,
    /// The subject who created the graph, for the audit log and for messages.
    pub who: String,
    /// The subject whose share the graph counts towards; empty if an administrator created it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub charged_to: String,
    /// Whether the graph is being dropped. Its rows are then being removed, queries are refused, and its name is not
    /// yet free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropping: bool,
}
impl Document for LiveGraphDocument {
    const WHAT: &'static str = "live graph";
}

/// Names the types of a live graph at one revision: a JSON text (`docs/formats/graph-types.md`) under the key
/// `~types/<graph>/<identity>-<revision>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypesReference {
    /// The identity of the graph, in 16 hexadecimal digits.
    pub identity: String,
    /// The revision of the types.
    pub revision: u64,
    /// The length of the text.
    pub bytes: u64,
    /// The SHA-256 of the text, in hexadecimal digits.
    pub digest: String,
}

impl TypesReference {
    /// The digest by which a text is named.
    pub fn digest_of(text: &str) -> String {
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Checks that a text is the one that this reference names.
    ///
    /// # Errors
    /// A description of the fault in the text.
    pub fn check(&self, text: &str) -> Result<(), String> {
        if self.bytes != text.len() as u64 {
            return Err(format!("they have {} bytes and should have {}", text.len(), self.bytes));
        }
        match Self::digest_of(text) == self.digest {
            true => Ok(()),
            false => {
                Err("they are damaged: their SHA-256 is not the one that the graph's document names"
                    .to_owned())
            }
        }
    }
}

/// The texts of types that a process has read, by graph, or why it cannot read them. A graph that is not listed has not been
/// asked for.
pub type TypesTexts = BTreeMap<String, Result<Arc<str>, String>>;

/// The leaders of the partitions of a live graph, under the key `leaders/<name>`. Every change is one conditional
/// write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadersDocument {
    /// Document format.
    pub format: u32,
    /// The name of the graph.
    #[serde(deserialize_with = "names::store")]
    pub graph: String,
    /// The greatest term that was ever assigned.
    pub term_last: u64,
    /// The node that leads each partition, by partition number.
    pub nodes: Vec<u32>,
    /// The term for which that node leads, by partition number. 0 means that no node has been able to lead the
    /// partition yet.
    pub terms: Vec<u64>,
}
impl Document for LeadersDocument {
    const WHAT: &'static str = "leaders";
}

/// A process with embedded databases, under the key `databases/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseDocument {
    /// Document format.
    pub format: u32,
    /// The id of the database process.
    pub database: u32,
    /// `host:port` of its gRPC service, which nodes use.
    pub addr: String,
    /// `host:port` of `/healthz`, `/readyz` and `/metrics`.
    pub http: String,
    /// The id of its process.
    pub pid: u32,
}
impl Document for DatabaseDocument {
    const WHAT: &'static str = "database";
}
