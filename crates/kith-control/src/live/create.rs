//! Live graphs are created: first their documents, which reserve the names, then their databases.
//!
//! The answer of a database may be lost, and the graph may be dropped at the same time. In both cases either the graph is there, or
//! nothing of it is left, or its document is: then applying the schema again goes on, and dropping the graph removes the rest.

use super::schema::{
    Applied, LiveGraphStore, SchemaApply, bad_schema, no_database, text_of, types_of, unavailable, unreadable,
};
use kith_database::{DatabaseError, GraphIdentity};
use kith_live::{DeclaredTypes, GraphTypes};
use kith_metadata::{Committed, Condition, Write, keys};
use kith_types::ErrorCode;
use kith_wire::documents::{DOCUMENT_FORMAT, Document, LiveGraphDocument};
use tonic::Status;

impl LiveGraphStore {
    pub(super) async fn create(
        &self,
        request: &SchemaApply,
        declared: &DeclaredTypes,
    ) -> Result<Applied, Status> {
        self.check_no_store(&request.graph)?;
        let types = GraphTypes::new(rand::random(), declared).map_err(|error| bad_schema(&error))?;
        let (_, changes) = GraphTypes::default().evolve(declared).map_err(|error| bad_schema(&error))?;
        let storage = match request.storage.as_str() {
            "" => self.databases.default_storage(&self.topology.borrow())?,
            storage => storage.to_owned(),
        };
        let applied = Applied { is_new: true, changes, revision: types.revision, storage: storage.clone() };
        let identity = self.identity(&types)?;
        self.databases.check(&storage)?;
        if request.dry_run {
            return Ok(applied);
        }
        let document = document(request, &types, storage);
        // What is wrong with the place is told before anything is written.
        self.databases.reach(&document, identity).await.map_err(|error| no_database(&error))?;
        let revision = self.reserve(&document).await?;
        if let Err(error) = self.databases.create_with_retry(&document, identity).await {
            return Err(self.undo(&document, identity, revision, &error).await);
        }
        self.check_not_dropped(&document, identity).await?;
        self.wait_until_visible(revision).await;
        Ok(applied)
    }

    /// Refuses the name of a store or a loaded graph.
    fn check_no_store(&self, graph: &str) -> Result<(), Status> {
        let topology = self.topology.borrow();
        match topology.stores.iter().find(|store| store.name == graph) {
            None => Ok(()),
            Some(store) if store.is_graph() => {
                let message = format!("graph {graph:?} was loaded, so it cannot become a live graph");
                Err(kith_wire::status(ErrorCode::LoadedGraph, message, "choose another name"))
            }
            Some(_) => {
                let message = format!("there is a store {graph:?} already");
                Err(kith_wire::status(ErrorCode::StoreExists, message, "choose another name"))
            }
        }
    }

    /// Writes the document of a new graph; its revision.
    async fn reserve(&self, document: &LiveGraphDocument) -> Result<u64, Status> {
        let (live, store) = (keys::live_graph(&document.name), keys::store(&document.name));
        let conditions = [&live, &store].map(|key| Condition { key: key.clone(), revision: 0 });
        match self.commit(conditions.to_vec(), vec![Write::put(live, document.encode())]).await? {
            Committed::At(revision) => Ok(revision),
            Committed::Conflict => {
                let message = format!("a store or graph {:?} was created at the same time", document.name);
                Err(kith_wire::status(ErrorCode::Conflict, message, "nothing was changed; try again"))
            }
        }
    }

    /// Takes back the creation of a graph whose database could not be created, or not with certainty. Returns what the caller is
    /// told. The document stays if something may be left in the database, or if the database was created after all.
    async fn undo(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
        revision: u64,
        error: &DatabaseError,
    ) -> Status {
        let undone = async {
            // From here on, nobody else creates the database or leads the graph.
            let revision = self.withdraw(document, revision).await?;
            if let Ok(true) = self.databases.remove_unused(document, identity).await {
                return self.forget(&document.name, revision).await;
            }
            let key = keys::live_graph(&document.name);
            let condition = Condition { key: key.clone(), revision };
            self.commit(vec![condition], vec![Write::put(key, document.encode())]).await?;
            Err(unfinished(error, document))
        };
        match undone.await {
            Ok(()) => no_database(error),
            Err(_) => unfinished(error, document),
        }
    }

    /// To be called after the database of a graph was created: the graph may have been dropped in between. In that case, what
    /// was created is removed again.
    ///
    /// # Errors
    /// `conflict` if the graph is gone or being dropped.
    pub(super) async fn check_not_dropped(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
    ) -> Result<(), Status> {
        let key = keys::live_graph(&document.name);
        let snapshot = self.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
        if let Some(entry) = snapshot.get(&key) {
            let found = LiveGraphDocument::decode(&entry.value).map_err(|error| unreadable(&error))?;
            if !found.dropping && types_of(&found)?.identity == identity.graph {
                return Ok(());
            }
        }
        // Rows that somebody has written are not removed here: `--keep-rows` may have left them.
        let removed = self.databases.remove_unused(document, identity).await;
        let LiveGraphDocument { name, storage, .. } = document;
        let mut message = format!("graph {name:?} was dropped at the same time");
        if let Err(error) = removed {
            message =
                format!("{message}, and what was created of it in {storage} may be left there: {error}");
        }
        Err(kith_wire::status(
            ErrorCode::Conflict,
            message,
            "apply the schema again to create the graph again",
        ))
    }
}

fn document(request: &SchemaApply, types: &GraphTypes, storage: String) -> LiveGraphDocument {
    LiveGraphDocument {
        format: DOCUMENT_FORMAT,
        name: request.graph.clone(),
        types: text_of(types),
        storage,
        who: request.who.clone(),
        dropping: false,
    }
}

fn unfinished(error: &DatabaseError, document: &LiveGraphDocument) -> Status {
    let LiveGraphDocument { name, storage, .. } = document;
    let message = format!(
        "graph {name:?} has its name now, but whether its database in {storage} was created is not known: {error}"
    );
    let help = "apply the schema again, which goes on from here, or drop the graph";
    kith_wire::status(error.code(), message, help)
}
