//! Documents of live graphs: their types, their databases, and who leads their partitions.

use super::{Document, names};
use serde::{Deserialize, Serialize};

/// A live graph: key `live-graphs/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveGraphDocument {
    /// Document format.
    pub format: u32,
    /// The graph: a file name of embedded databases, hence checked when it is read.
    #[serde(deserialize_with = "names::store")]
    pub name: String,
    /// Its identity and types: a JSON document of their own (`docs/formats/graph-types.md`).
    pub types: String,
    /// Where its rows are: `database:<id>`, a process of the cluster, or `mysql://…`, without a password.
    pub storage: String,
    /// Whoever created it, for the audit log and for messages.
    pub who: String,
    /// Whether it is being dropped: nobody can ask it any more, and its rows are being removed. Its name is not free yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropping: bool,
}
impl Document for LiveGraphDocument {
    const WHAT: &'static str = "live graph";
}

/// Who leads the partitions of a live graph: key `leaders/<name>`. Every change of it is one conditional write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadersDocument {
    /// Document format.
    pub format: u32,
    /// The graph.
    #[serde(deserialize_with = "names::store")]
    pub graph: String,
    /// The greatest term that was ever given.
    pub term_last: u64,
    /// By partition, the node that leads it.
    pub nodes: Vec<u32>,
    /// By partition, the term for which that node leads; 0: no node could lead it yet.
    pub terms: Vec<u64>,
}
impl Document for LeadersDocument {
    const WHAT: &'static str = "leaders";
}

/// A process with embedded databases: key `databases/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseDocument {
    /// Document format.
    pub format: u32,
    /// Its id.
    pub database: u32,
    /// Where nodes reach it.
    pub addr: String,
    /// Where `/healthz`, `/readyz` and `/metrics` are.
    pub http: String,
    /// Its process id.
    pub pid: u32,
}
impl Document for DatabaseDocument {
    const WHAT: &'static str = "database";
}
