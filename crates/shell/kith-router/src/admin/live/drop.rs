//! Drops live graphs. First the graph stops serving, then its rows are removed, and at last its name becomes free. Repeating
//! an interrupted drop continues it.

use super::{
    databases::Databases,
    records::{GraphRecords, unavailable, unreadable},
};
use kith_cluster::metadata::keys;
use kith_database::DatabaseError;
use kith_topology::identity_of;
use kith_types::ErrorCode;
use kith_wire::{
    documents::{Document, LiveGraphDocument},
    v1,
};
use tonic::Status;

/// Drops live graphs.
pub(super) struct GraphRemoval<'a> {
    pub records: &'a GraphRecords,
    pub databases: &'a Databases,
}

impl GraphRemoval<'_> {
    /// Drops a live graph. With `keep_rows`, its rows stay in the database.
    ///
    /// # Errors
    /// `unknown_graph` or `loaded_graph`; `conflict` if the graph was changed at the same time; `database_…` if the database
    /// cannot be reached, in which case nothing has changed unless the message says so.
    pub async fn drop_graph(&self, graph: &str, keep_rows: bool) -> Result<v1::SchemaOutcome, Status> {
        let key = keys::live_graph(graph);
        let snapshot = self.records.cluster.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
        let Some(entry) = snapshot.get(&key) else { return Err(self.records.not_live(graph).to_status()) };
        let document = LiveGraphDocument::decode(&entry.value).map_err(|error| unreadable(&error))?;
        // A graph whose types are lost can still be dropped.
        let identity = self
            .records
            .identity(identity_of(&document.types).map_err(|error| unreadable_identity(graph, &error))?)?;
        if !keep_rows {
            let reached = self.databases.reach(&document, identity).await;
            reached.map_err(|error| unreachable(&error, &document))?;
        }
        let revision = self.records.withdraw(&document, entry.revision).await?;
        if !keep_rows {
            let removed = self.databases.remove(&document, identity).await;
            removed.map_err(|error| unfinished(&error, &document))?;
        }
        self.records.forget(graph, revision).await?;
        Ok(v1::SchemaOutcome { storage: document.storage, ..Default::default() })
    }
}

fn unreadable_identity(graph: &str, reason: &str) -> Status {
    let message = format!("the document of graph {graph:?} is damaged: {reason}");
    kith_wire::status(ErrorCode::Internal, message, "restore the metadata store from a backup")
}

fn unreachable(error: &DatabaseError, document: &LiveGraphDocument) -> Status {
    let message = format!("the rows of graph {:?} cannot be removed: {error}", document.name);
    let help = format!(
        "make {} available and try again; if it is gone for good, --keep-rows drops the graph without its rows",
        document.storage
    );
    kith_wire::status(error.code(), message, &help)
}

fn unfinished(error: &DatabaseError, document: &LiveGraphDocument) -> Status {
    let LiveGraphDocument { name, storage, .. } = document;
    let message =
        format!("graph {name:?} no longer serves, but its rows in {storage} were not removed: {error}");
    let help = "drop the graph again to continue; its name is free only after that";
    kith_wire::status(error.code(), message, help)
}
