//! Creates live graphs: first the document, which reserves the name, then the database.
//!
//! The answer of the database may be lost, and the graph may be dropped at the same time. In both cases, either the graph
//! exists, or nothing of it is left, or at least its document is left. With the document, applying the schema again
//! continues the creation, and dropping the graph removes the rest.

use super::{
    apply::{SchemaApply, SchemaResult},
    databases::Databases,
    records::{
        GraphRecords, SHARE_PAUSE_MAX, SHARE_TRIES, bad_schema, changed_meanwhile, no_database, unavailable,
        unreadable,
    },
};
use kith_cluster::metadata::{CommitOutcome, Condition, Write, keys, records::shares::charged_to, types};
use kith_database::{DatabaseError, GraphIdentity};
use kith_live::{DeclaredTypes, GraphTypes};
use kith_topology::{identity_of, types_text};
use kith_types::ErrorCode;
use kith_wire::documents::{DOCUMENT_FORMAT, Document, LiveGraphDocument, TypesReference};
use tonic::Status;

/// Creates live graphs.
pub(super) struct GraphCreation<'a> {
    pub records: &'a GraphRecords,
    pub databases: &'a Databases,
}

impl GraphCreation<'_> {
    pub async fn create(
        &self,
        request: &SchemaApply,
        declared: &DeclaredTypes,
    ) -> Result<SchemaResult, Status> {
        self.check_no_store(&request.graph)?;
        let types = GraphTypes::new(rand::random(), declared).map_err(|error| bad_schema(&error))?;
        let (_, changes) = GraphTypes::default().evolve(declared).map_err(|error| bad_schema(&error))?;
        self.see_all_databases().await?;
        let storage = match &request.storage {
            None => self.databases.default_storage(&self.records.cluster.topology.borrow())?,
            Some(storage) => storage.to_string(),
        };
        let applied =
            SchemaResult { is_new: true, changes, revision: types.revision, storage: storage.clone() };
        let identity = self.records.identity(types.identity)?;
        let (reference, text) = types_text(&types);
        let document = document(request, reference, storage);
        self.records.check_share(&document, None).await?;
        if request.dry_run {
            return Ok(applied);
        }
        // Errors of the storage location are reported before anything is written.
        self.databases.reach(&document, identity).await.map_err(|error| no_database(&error))?;
        let revision = self.reserve(&document, &text).await?;
        if let Err(error) = self.databases.create_with_retry(&document, identity).await {
            return Err(self.undo(&document, identity, revision, &error).await);
        }
        self.check_not_dropped(&document, identity).await?;
        self.records.cluster.wait_until_visible(revision).await;
        Ok(applied)
    }

    /// Waits until this router knows every database process that has registered, so that one that has just started counts.
    async fn see_all_databases(&self) -> Result<(), Status> {
        let databases =
            self.records.cluster.metadata.read(keys::DATABASES).await.map_err(|error| unavailable(&error))?;
        let newest = databases.entries.iter().map(|entry| entry.revision).max();
        if let Some(newest) = newest {
            self.records.cluster.wait_until_visible(newest).await;
        }
        Ok(())
    }

    /// Checks that no store or loaded graph has the name.
    ///
    /// # Errors
    /// `loaded_graph` or `store_exists`.
    fn check_no_store(&self, graph: &str) -> Result<(), Status> {
        let topology = self.records.cluster.topology.borrow();
        match topology.stores.iter().find(|store| store.name == graph) {
            None => Ok(()),
            Some(store) if store.is_graph() => {
                let message = format!("graph {graph:?} was loaded, so it cannot become a live graph");
                Err(kith_wire::status(ErrorCode::LoadedGraph, message, "choose another name"))
            }
            Some(_) => {
                let message = format!("store {graph:?} exists already");
                Err(kith_wire::status(ErrorCode::StoreExists, message, "choose another name"))
            }
        }
    }

    /// Writes the document of a new graph and its types. Returns its revision.
    async fn reserve(&self, document: &LiveGraphDocument, text: &str) -> Result<u64, Status> {
        let (live, store) = (keys::live_graph(&document.name), keys::store(&document.name));
        for _ in 0..SHARE_TRIES {
            let shares = self.records.check_share(document, None).await?;
            let only_if_new = [&live, &store].map(|key| Condition { key: key.clone(), revision: 0 });
            let conditions = only_if_new.into_iter().chain([shares.condition()]).collect();
            let mut writes = types::writes(&document.name, &document.types, text.to_owned());
            writes.extend([Write::put(live.clone(), document.encode()), shares.write()]);
            if let CommitOutcome::At(revision) = self.records.commit(conditions, writes).await? {
                return Ok(revision);
            }
            for key in [&live, &store] {
                let snapshot =
                    self.records.cluster.metadata.read(key).await.map_err(|error| unavailable(&error))?;
                if snapshot.get(key).is_some() {
                    let message =
                        format!("a store or graph {:?} was created at the same time", document.name);
                    return Err(kith_wire::status(
                        ErrorCode::Conflict,
                        message,
                        "nothing was changed; try again",
                    ));
                }
            }
            // Another graph got types at the same time.
            tokio::time::sleep(SHARE_PAUSE_MAX.mul_f64(rand::random())).await;
        }
        Err(changed_meanwhile(&document.name))
    }

    /// Undoes the creation of a graph after its database returned an error. Returns the error for the caller. The document
    /// stays if the database may still hold a part of the graph.
    async fn undo(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
        revision: u64,
        error: &DatabaseError,
    ) -> Status {
        let undone = async {
            // From here on, no other router creates the database, and no node leads the graph.
            let revision = self.records.withdraw(document, revision).await?;
            if let Ok(true) = self.databases.remove_unused(document, identity).await {
                return self.records.forget(&document.name, revision).await;
            }
            let key = keys::live_graph(&document.name);
            let condition = Condition { key: key.clone(), revision };
            self.records.commit(vec![condition], vec![Write::put(key, document.encode())]).await?;
            Err(unfinished(error, document))
        };
        match undone.await {
            Ok(()) => no_database(error),
            Err(_) => unfinished(error, document),
        }
    }

    /// Checks, after the database of a graph was created, that the graph was not dropped in the meantime. If it was, the new
    /// database is removed again unless it was used.
    ///
    /// # Errors
    /// `conflict` if the graph does not exist any more or is being dropped.
    pub async fn check_not_dropped(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
    ) -> Result<(), Status> {
        let key = keys::live_graph(&document.name);
        let snapshot = self.records.cluster.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
        if let Some(entry) = snapshot.get(&key) {
            let found = LiveGraphDocument::decode(&entry.value).map_err(|error| unreadable(&error))?;
            if !found.dropping && identity_of(&found.types) == Ok(identity.graph) {
                return Ok(());
            }
        }
        // A database that had a leader is not removed here, because `--keep-rows` may have left its rows on purpose.
        let removed = self.databases.remove_unused(document, identity).await;
        let LiveGraphDocument { name, storage, .. } = document;
        let mut message = format!("graph {name:?} was dropped at the same time");
        if let Err(error) = removed {
            message =
                format!("{message}, and its new database in {storage} may not have been removed: {error}");
        }
        Err(kith_wire::status(
            ErrorCode::Conflict,
            message,
            "apply the schema again if you want to create the graph again",
        ))
    }
}

fn document(request: &SchemaApply, types: TypesReference, storage: String) -> LiveGraphDocument {
    LiveGraphDocument {
        format: DOCUMENT_FORMAT,
        name: request.graph.clone(),
        types,
        storage,
        who: request.who.clone(),
        charged_to: charged_to(&request.who, request.standing),
        dropping: false,
    }
}

fn unfinished(error: &DatabaseError, document: &LiveGraphDocument) -> Status {
    let LiveGraphDocument { name, storage, .. } = document;
    let message = format!(
        "the name of graph {name:?} is reserved, but whether its database in {storage} was created is not known: {error}"
    );
    let help = "apply the schema again to continue, or drop the graph";
    kith_wire::status(error.code(), message, help)
}
