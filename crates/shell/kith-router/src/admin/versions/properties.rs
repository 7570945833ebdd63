//! The choice of the store from which the members of a loaded graph have their properties.

use crate::admin::ClusterHandle;
use kith_cluster::metadata::{
    keys,
    records::{ChangeError, read},
};
use kith_types::ErrorCode;
use kith_wire::LookupError;
use kith_wire::documents::{HoldsDocument, StoreDocument};
use tonic::Status;

/// The stores from which the members of loaded graphs have their properties.
pub(super) struct PropertyStores<'a> {
    pub cluster: &'a ClusterHandle,
}

impl PropertyStores<'_> {
    /// Refuses to take the properties of `graph` from `store`, unless one is a loaded graph and the other a store of records
    /// by id.
    pub async fn check(&self, graph: &str, store: &str) -> Result<(), ChangeError> {
        match read(&*self.cluster.metadata, graph).await? {
            Some(known) if known.document.definition.holds == HoldsDocument::Graph => {}
            Some(_) => {
                let message =
                    format!("{graph:?} is a store of values: only graphs have members with properties");
                return Err(refused(ErrorCode::NotAGraph, message, "`kith graph list` shows the graphs"));
            }
            None => return Err(self.not_loaded(graph).await?),
        }
        let listed = "`kith store list` shows the stores with their types";
        let Some(known) = read(&*self.cluster.metadata, store).await? else {
            let message = format!("there is no store {store:?} with properties for graph {graph:?}");
            return Err(refused(ErrorCode::UnknownStore, message, listed));
        };
        let by_id = "create one with `kith store create NAME --key id --value record`";
        match &known.document.definition.holds {
            HoldsDocument::Values { value, .. } if value != "record" => {
                let message = format!("store {store:?} holds {value}: its values have no fields");
                Err(refused(ErrorCode::NotRecords, message, by_id))
            }
            HoldsDocument::Values { key, .. } if key != "id" => {
                let message = format!("the keys of store {store:?} are of type {key}, but members are ids");
                Err(refused(ErrorCode::WrongKeyType, message, by_id))
            }
            HoldsDocument::Values { .. } => Ok(()),
            HoldsDocument::Graph => {
                let message = format!("{store:?} is a graph: properties come from a store of records");
                Err(refused(ErrorCode::NotValues, message, listed))
            }
        }
    }

    /// Returns the reason why a graph is not among the loaded ones.
    async fn not_loaded(&self, graph: &str) -> Result<ChangeError, ChangeError> {
        let key = keys::live_graph(graph);
        Ok(match self.cluster.metadata.read(&key).await?.get(&key) {
            None => unknown_graph(self.cluster, graph).into(),
            Some(_) => {
                let message = format!("graph {graph:?} is live: the fields of its types are its properties");
                refused(ErrorCode::LiveGraph, message, "`kith schema apply` changes its types")
            }
        })
    }

    /// Refuses to drop a store whose fields are the properties of a graph.
    pub async fn check_unused(&self, store: &str) -> Result<(), ChangeError> {
        let uses = |document: &&StoreDocument| document.definition.properties.as_deref() == Some(store);
        let documents = self.cluster.stores().await?;
        let Some(graph) = documents.iter().find(uses).map(|document| &document.name) else { return Ok(()) };
        let message = format!("the fields of store {store:?} are the properties of graph {graph:?}");
        let help = format!("separate them first: kith graph properties {graph} --none");
        Err(refused(ErrorCode::StoreInUse, message, &help))
    }
}

fn refused(code: ErrorCode, message: String, help: &str) -> ChangeError {
    kith_wire::status(code, message, help).into()
}

/// The error for a name that no loaded graph has.
pub(super) fn unknown_graph(cluster: &ClusterHandle, name: &str) -> Status {
    let known = cluster.topology.borrow().graphs().map(|graph| graph.name.clone()).collect();
    LookupError::UnknownGraph { name: name.to_owned(), known }.to_status()
}
