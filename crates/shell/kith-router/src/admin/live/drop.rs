//! Drops live graphs. First the graph stops serving, then its rows are removed, and at last its name becomes free. Repeating
//! an interrupted drop continues it.

use super::schema::{LiveGraphStore, unavailable, unreadable};
use kith_cluster::metadata::{Committed, Condition, Write, keys, types};
use kith_database::DatabaseError;
use kith_topology::identity_of;
use kith_types::ErrorCode;
use kith_wire::{
    documents::{Document, LiveGraphDocument},
    v1,
};
use tonic::Status;

impl LiveGraphStore {
    /// Drops a live graph. With `keep_rows`, its rows stay in the database.
    ///
    /// # Errors
    /// `unknown_graph` or `loaded_graph`; `conflict` if the graph was changed at the same time; `database_…` if the database
    /// cannot be reached, in which case nothing has changed unless the message says so.
    pub(super) async fn drop_graph(&self, graph: &str, keep_rows: bool) -> Result<v1::SchemaOutcome, Status> {
        let key = keys::live_graph(graph);
        let snapshot = self.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
        let Some(entry) = snapshot.get(&key) else { return Err(self.not_live(graph).to_status()) };
        let document = LiveGraphDocument::decode(&entry.value).map_err(|error| unreadable(&error))?;
        // A graph whose types are lost can still be dropped.
        let identity =
            self.identity(identity_of(&document.types).map_err(|error| unreadable_identity(graph, &error))?)?;
        if !keep_rows {
            let reached = self.databases.reach(&document, identity).await;
            reached.map_err(|error| unreachable(&error, &document))?;
        }
        let revision = self.withdraw(&document, entry.revision).await?;
        if !keep_rows {
            let removed = self.databases.remove(&document, identity).await;
            removed.map_err(|error| unfinished(&error, &document))?;
        }
        self.forget(graph, revision).await?;
        Ok(v1::SchemaOutcome { storage: document.storage, ..Default::default() })
    }

    /// Marks a graph as being dropped, so that nodes neither serve nor lead it any more. Returns the new revision of its
    /// document.
    pub(super) async fn withdraw(&self, document: &LiveGraphDocument, revision: u64) -> Result<u64, Status> {
        if document.dropping {
            return Ok(revision);
        }
        let (live, leaders) = (keys::live_graph(&document.name), keys::leaders(&document.name));
        let condition = Condition { key: live.clone(), revision };
        let dropping = LiveGraphDocument { dropping: true, ..document.clone() };
        let writes = vec![Write::put(live, dropping.encode()), Write::delete(leaders)];
        match self.commit(vec![condition], writes).await? {
            Committed::At(revision) => {
                self.wait_until_visible(revision).await;
                Ok(revision)
            }
            Committed::Conflict => {
                let message = format!("graph {:?} was changed at the same time", document.name);
                Err(kith_wire::status(ErrorCode::Conflict, message, "nothing was changed; try again"))
            }
        }
    }

    /// Removes the document and the types of a graph that was withdrawn at `revision`, which frees its name.
    pub(super) async fn forget(&self, graph: &str, revision: u64) -> Result<(), Status> {
        let key = keys::live_graph(graph);
        let condition = Condition { key: key.clone(), revision };
        let types = types::removal(&*self.metadata, graph).await.map_err(|error| unavailable(&error))?;
        let writes = types.into_iter().chain([Write::delete(key)]).collect();
        self.commit(vec![condition], writes).await.map(drop)
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
