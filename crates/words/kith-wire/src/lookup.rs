//! The reasons why a name leads to no graph or store that can be read.

use crate::documents::TopologyDocument;
use kith_types::ErrorCode;
use thiserror::Error;
use tonic::Status;

/// A graph or store cannot be read under the name that was given.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum LookupError {
    /// There is no such graph.
    #[error("there is no graph {name:?}")]
    UnknownGraph {
        name: String,
        /// The names of all graphs.
        known: Vec<String>,
    },
    /// The types of a live graph cannot be read.
    #[error("the types of graph {graph:?} cannot be read: {reason}")]
    TypesUnavailable { graph: String, reason: String },
    /// There is no such store of values.
    #[error("there is no store {name:?}")]
    UnknownStore {
        name: String,
        /// The names of all stores of values.
        known: Vec<String>,
    },
    /// The store holds a graph and no values.
    #[error("store {name:?} holds a graph, which has no values by key")]
    NotValues { name: String },
    /// The store has no version yet.
    #[error("store {store:?} serves no version yet")]
    NoVersion { store: String },
}

impl LookupError {
    /// The reason why the cluster has no version of values to read under this name.
    pub fn of_values(topology: &TopologyDocument, name: &str) -> Self {
        let name = name.to_owned();
        match topology.stores.iter().find(|store| store.name == name) {
            Some(store) if store.is_graph() => LookupError::NotValues { name },
            Some(_) => LookupError::NoVersion { store: name },
            None => {
                let stores = topology.stores.iter().filter(|store| !store.is_graph());
                let mut known: Vec<String> = stores.map(|store| store.name.clone()).collect();
                known.sort_unstable();
                LookupError::UnknownStore { name, known }
            }
        }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            LookupError::UnknownGraph { .. } => ErrorCode::UnknownGraph,
            LookupError::TypesUnavailable { .. } => ErrorCode::SchemaUnavailable,
            LookupError::UnknownStore { .. } => ErrorCode::UnknownStore,
            LookupError::NotValues { .. } => ErrorCode::NotValues,
            LookupError::NoVersion { .. } => ErrorCode::NoVersion,
        }
    }

    /// Advice on what to do about it.
    pub fn help(&self) -> String {
        match self {
            LookupError::UnknownGraph { known, .. } if known.is_empty() => {
                "no graph is loaded yet: kith load graph EDGES --graph NAME".to_owned()
            }
            LookupError::UnknownGraph { known, .. } => format!("graphs: {}", known.join(", ")),
            LookupError::TypesUnavailable { .. } => {
                "try again; if it stays so, restore the metadata store from a backup (docs/operating/machines.md)".to_owned()
            }
            LookupError::UnknownStore { known, .. } if known.is_empty() => {
                "no store of values is there yet: kith store create NAME".to_owned()
            }
            LookupError::UnknownStore { known, .. } => format!("stores of values: {}", known.join(", ")),
            LookupError::NotValues { .. } => {
                "ask it with `kith graph`; `kith store list` shows what stores hold".to_owned()
            }
            LookupError::NoVersion { .. } => "push one: kith store push".to_owned(),
        }
    }

    /// Converts the error to a gRPC status with details.
    pub fn to_status(&self) -> Status {
        crate::status(self.code(), self.to_string(), self.help())
    }
}
