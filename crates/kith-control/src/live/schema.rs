//! Shows and changes the types of live graphs. `create.rs` creates graphs, `drop.rs` removes them, and `add_types.rs` adds the
//! types that writes name.

use super::databases::Databases;
use kith_api::QueryError;
use kith_database::{DatabaseError, GraphIdentity, Storage};
use kith_live::{DeclaredTypes, GraphTypes, TypeChange, TypesDocument, TypesError};
use kith_metadata::{Committed, Condition, MetadataError, MetadataStore, Write, keys};
use kith_process::topology::TopologyReceiver;
use kith_types::{ErrorCode, PartitionCount, check_store_name};
use kith_wire::{
    documents::{Document, DocumentError, LiveGraphDocument},
    v1::{self, schema_command::Command},
};
use std::{sync::Arc, time::Duration};
use tonic::Status;

/// How long a request waits for its change to come back through the watch of the metadata store.
const VISIBLE_WAIT: Duration = Duration::from_secs(5);

/// Creates, changes, shows and drops live graphs, on behalf of one router.
#[derive(Clone)]
pub struct LiveGraphStore {
    pub(super) metadata: Arc<dyn MetadataStore>,
    pub(super) topology: TopologyReceiver,
    pub(super) databases: Databases,
}

/// A request to create a live graph or to change its types.
#[derive(Clone, Debug)]
pub(super) struct SchemaApply {
    /// The name of the graph.
    pub graph: String,
    /// The types of the graph (`docs/formats/graph-types.md`).
    pub text: String,
    /// The location of the graph's rows, which has been checked. If there is none, the location of an existing graph stays,
    /// and a new graph gets the first database process of the cluster.
    pub storage: Option<Storage>,
    /// Whether to report the changes without making them.
    pub dry_run: bool,
    /// The subject that sent the request.
    pub who: String,
}

/// The result of a [`SchemaApply`], or with `dry_run` the result that it would have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Applied {
    /// Whether the graph is new.
    pub is_new: bool,
    /// The changes to the types.
    pub changes: Vec<TypeChange>,
    /// The revision of the types: 1 for a new graph, and one more with each change.
    pub revision: u64,
    /// The location of the graph's rows.
    pub storage: String,
}

impl LiveGraphStore {
    /// Returns a store of graphs whose rows are in `databases`.
    pub fn new(metadata: Arc<dyn MetadataStore>, topology: TopologyReceiver, databases: Databases) -> Self {
        Self { metadata, topology, databases }
    }

    /// Carries out a command on behalf of the subject `who`.
    pub(crate) async fn command(
        &self,
        request: v1::SchemaCommand,
        who: String,
    ) -> Result<v1::SchemaOutcome, Status> {
        match request.command {
            Some(Command::Apply(v1::ApplySchema { text, storage, dry_run })) => {
                let storage = match storage.as_str() {
                    "" => None,
                    storage => Some(self.databases.check(&request.graph, storage)?),
                };
                let asked = SchemaApply { graph: request.graph, text, storage, dry_run, who };
                let applied = self.apply(asked).await?;
                Ok(v1::SchemaOutcome {
                    is_new: applied.is_new,
                    changes: applied.changes.iter().map(ToString::to_string).collect(),
                    revision: applied.revision,
                    storage: applied.storage,
                    text: String::new(),
                })
            }
            Some(Command::Show(_)) => {
                Ok(v1::SchemaOutcome { text: self.show(&request.graph).await?, ..Default::default() })
            }
            Some(Command::AddTypes(types)) => self.add_types(&request.graph, &types).await,
            Some(Command::Drop(v1::DropGraph { keep_rows })) => {
                self.drop_graph(&request.graph, keep_rows).await
            }
            None => {
                let message = "the request has no command that this release knows";
                Err(kith_wire::status(ErrorCode::UnsupportedOperation, message, "update the cluster"))
            }
        }
    }

    /// Creates a live graph, or changes its types.
    ///
    /// # Errors
    /// `bad_schema` if the text is invalid or the types cannot be changed in this way, `loaded_graph` or `store_exists` if
    /// the name is taken, and `database_…` if the database cannot be used. The message says whether something has changed.
    pub(super) async fn apply(&self, request: SchemaApply) -> Result<Applied, Status> {
        check_store_name(&request.graph).map_err(|error| {
            kith_wire::status(ErrorCode::InvalidName, error.to_string(), "choose another name")
        })?;
        let declared: DeclaredTypes = request.text.parse().map_err(|error| bad_schema(&error))?;
        let key = keys::live_graph(&request.graph);
        let snapshot = self.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
        match snapshot.get(&key) {
            None => self.create(&request, &declared).await,
            Some(entry) => {
                let document = LiveGraphDocument::decode(&entry.value).map_err(|error| unreadable(&error))?;
                self.evolve(&request, &declared, document, entry.revision).await
            }
        }
    }

    /// Returns the types of a graph, as the text that declares them.
    ///
    /// # Errors
    /// `unknown_graph`, `loaded_graph`.
    async fn show(&self, graph: &str) -> Result<String, Status> {
        let (document, _) = self.existing(graph).await?;
        Ok(types_of(&document)?.declared().to_string())
    }

    /// Returns the document of a live graph, and its revision.
    ///
    /// # Errors
    /// `unknown_graph`, `loaded_graph`.
    pub(super) async fn existing(&self, graph: &str) -> Result<(LiveGraphDocument, u64), Status> {
        let key = keys::live_graph(graph);
        let snapshot = self.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
        let Some(entry) = snapshot.get(&key) else { return Err(self.not_live(graph).to_status()) };
        let document = LiveGraphDocument::decode(&entry.value).map_err(|error| unreadable(&error))?;
        Ok((document, entry.revision))
    }

    pub(super) fn not_live(&self, graph: &str) -> QueryError {
        let topology = self.topology.borrow();
        let name = graph.to_owned();
        match topology.stores.iter().any(|store| store.name == graph) {
            true => QueryError::LoadedGraph { name, what: "it has no types of objects and associations" },
            false => {
                let loaded = topology.graphs().map(|graph| graph.name.clone());
                let mut known: Vec<_> =
                    loaded.chain(topology.live.iter().map(|live| live.name.clone())).collect();
                known.sort();
                QueryError::UnknownGraph { name, known }
            }
        }
    }

    async fn evolve(
        &self,
        request: &SchemaApply,
        declared: &DeclaredTypes,
        document: LiveGraphDocument,
        revision: u64,
    ) -> Result<Applied, Status> {
        check_not_dropping(&document)?;
        let is_elsewhere = |storage: &Storage| storage.to_string() != document.storage;
        if request.storage.as_ref().is_some_and(is_elsewhere) {
            let message = format!("the rows of graph {:?} are in {}", document.name, document.storage);
            let help = "leave --storage out: a graph stays where it was created";
            return Err(kith_wire::status(ErrorCode::BadRequest, message, help));
        }
        let old = types_of(&document)?;
        let (types, changes) = old.evolve(declared).map_err(|error| bad_schema(&error))?;
        let storage = document.storage.clone();
        let applied = Applied { is_new: false, changes, revision: types.revision, storage };
        if request.dry_run {
            return Ok(applied);
        }
        let identity = self.identity(&types)?;
        let created = self.databases.create(&document, identity).await;
        created.map_err(|error| no_database(&error))?;
        self.check_not_dropped(&document, identity).await?;
        if applied.changes.is_empty() {
            return Ok(applied);
        }
        match self.put_types(document, revision, &types).await? {
            Committed::At(revision) => {
                self.wait_until_visible(revision).await;
                Ok(applied)
            }
            Committed::Conflict => Err(changed_meanwhile(&request.graph)),
        }
    }

    /// Writes the types of a graph, if its document still has this revision.
    pub(super) async fn put_types(
        &self,
        document: LiveGraphDocument,
        revision: u64,
        types: &GraphTypes,
    ) -> Result<Committed, Status> {
        let key = keys::live_graph(&document.name);
        let next = LiveGraphDocument { types: text_of(types), ..document };
        let condition = Condition { key: key.clone(), revision };
        self.commit(vec![condition], vec![Write::put(key, next.encode())]).await
    }

    pub(super) fn identity(&self, types: &GraphTypes) -> Result<GraphIdentity, Status> {
        let partitions = self.topology.borrow().cluster.partitions;
        let partitions = PartitionCount::new(partitions).ok_or_else(|| {
            kith_wire::status(ErrorCode::Internal, "the cluster has no partitions", "report it")
        })?;
        Ok(GraphIdentity { graph: types.identity, partitions })
    }

    pub(super) async fn commit(
        &self,
        conditions: Vec<Condition>,
        writes: Vec<Write>,
    ) -> Result<Committed, Status> {
        self.metadata.commit(conditions, writes).await.map_err(|error| unavailable(&error))
    }

    /// Waits until this router has seen a change, so that it serves a new graph at once, and a dropped one no longer.
    pub(super) async fn wait_until_visible(&self, revision: u64) {
        let mut topology = self.topology.clone();
        let visible = topology.wait_for(|topology| revision <= topology.revision);
        if tokio::time::timeout(VISIBLE_WAIT, visible).await.is_err() {
            tracing::warn!(
                revision,
                "a change has not yet come back through the watch of the metadata store"
            );
        }
    }
}

/// Refuses to change a graph that is being dropped.
pub(super) fn check_not_dropping(document: &LiveGraphDocument) -> Result<(), Status> {
    if !document.dropping {
        return Ok(());
    }
    let message = format!("graph {:?} is being dropped", document.name);
    let help = "run `kith graph drop` again to finish the drop; after that, the name is free";
    Err(kith_wire::status(ErrorCode::Conflict, message, help))
}

pub(super) fn changed_meanwhile(graph: &str) -> Status {
    let message = format!("the types of graph {graph:?} were changed at the same time");
    kith_wire::status(ErrorCode::Conflict, message, "nothing was changed; try again")
}

pub(super) fn text_of(types: &GraphTypes) -> String {
    serde_json::to_string(&TypesDocument::from(types)).unwrap_or_default()
}

pub(super) fn types_of(document: &LiveGraphDocument) -> Result<GraphTypes, Status> {
    let damaged = |detail: String| {
        let message = format!("the types of graph {:?} cannot be read: {detail}", document.name);
        kith_wire::status(ErrorCode::Internal, message, "use a release that knows these types")
    };
    let types: TypesDocument =
        serde_json::from_str(&document.types).map_err(|error| damaged(error.to_string()))?;
    GraphTypes::try_from(types).map_err(|error| damaged(error.to_string()))
}

pub(super) fn bad_schema(error: &TypesError) -> Status {
    kith_wire::status(
        ErrorCode::BadSchema,
        error.to_string(),
        "nothing was changed; see docs/formats/graph-types.md",
    )
}

pub(super) fn unavailable(error: &MetadataError) -> Status {
    kith_wire::status(error.code(), error.to_string(), "nothing was changed; try again")
}

pub(super) fn unreadable(error: &DocumentError) -> Status {
    kith_wire::status(ErrorCode::Internal, error.to_string(), "use a release that knows this document")
}

pub(super) fn no_database(error: &DatabaseError) -> Status {
    kith_wire::status(error.code(), error.to_string(), "nothing was changed; see docs/operating/databases.md")
}
