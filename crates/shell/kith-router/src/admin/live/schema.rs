//! Shows and changes the types of live graphs. `create.rs` creates graphs, `drop.rs` removes them, and `add_types.rs` adds the
//! types that writes name.

use super::databases::Databases;
use kith_api::QueryError;
use kith_cluster::metadata::{
    Committed, Condition, MetadataError, MetadataStore, Write, keys,
    records::shares::{Amount, Shared, Shares, SharesError},
    types::{self, TypesError as TypesReadError},
};
use kith_cluster::topology::{TopologyReceiver, catch_up};
use kith_database::{DatabaseError, GraphIdentity, Storage};
use kith_live::{DeclaredTypes, GraphTypes, TypeChange, TypesError};
use kith_topology::LookupError;
use kith_topology::{types_of_text, types_text};
use kith_types::{ErrorCode, PartitionCount, check_store_name};
use kith_versions::Trust;
use kith_wire::{
    documents::{Document, DocumentError, LiveGraphDocument, TypesReference},
    v1::{self, schema_command::Command},
};
use std::{sync::Arc, time::Duration};
use tonic::Status;

/// The time that a request waits for its change to come back through the watch of the metadata store.
const VISIBLE_WAIT: Duration = Duration::from_secs(5);

/// The maximum number of attempts to make a change while types of other graphs are written.
pub(super) const SHARE_TRIES: u32 = 32;
/// The longest pause before the next try. Pauses are random, so that competing routers do not meet again.
pub(super) const SHARE_PAUSE_MAX: Duration = Duration::from_millis(50);

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
    /// The trust in the identity of the subject.
    pub standing: Trust,
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

/// The outcome of an attempt to write the types of a graph.
pub(super) enum Put {
    /// They were written, at this revision.
    At(u64),
    /// The graph was changed meanwhile.
    Changed,
    /// Other graphs got types meanwhile, so that the bounds must be checked again.
    OthersAdded,
}

impl LiveGraphStore {
    /// Returns a store of graphs whose rows are in `databases`.
    pub fn new(metadata: Arc<dyn MetadataStore>, topology: TopologyReceiver, databases: Databases) -> Self {
        Self { metadata, topology, databases }
    }

    /// Carries out a command on behalf of the subject `who`, whose identity is proven as far as `standing` says.
    pub(crate) async fn command(
        &self,
        request: v1::SchemaCommand,
        who: String,
        standing: Trust,
    ) -> Result<v1::SchemaOutcome, Status> {
        match request.command {
            Some(Command::Apply(v1::ApplySchema { text, storage, dry_run })) => {
                let storage = match storage.as_str() {
                    "" => None,
                    storage => Some(self.databases.check(&request.graph, storage)?),
                };
                let asked = SchemaApply { graph: request.graph, text, storage, dry_run, who, standing };
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
            Some(_) => {
                let existing = self.existing(&request.graph).await?;
                self.evolve(&request, &declared, existing).await
            }
        }
    }

    /// Returns the types of a graph, as the text that declares them.
    ///
    /// # Errors
    /// `unknown_graph`, `loaded_graph`.
    async fn show(&self, graph: &str) -> Result<String, Status> {
        let (_, _, types) = self.existing(graph).await?;
        Ok(types.declared().to_string())
    }

    /// Returns the document of a live graph, its revision, and the types that it names.
    ///
    /// # Errors
    /// `unknown_graph`, `loaded_graph`; `schema_unavailable` if the types are missing or damaged.
    pub(super) async fn existing(&self, graph: &str) -> Result<(LiveGraphDocument, u64, GraphTypes), Status> {
        let key = keys::live_graph(graph);
        let mut seen = 0;
        loop {
            let snapshot = self.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
            let Some(entry) = snapshot.get(&key) else { return Err(self.not_live(graph).to_status()) };
            let document = LiveGraphDocument::decode(&entry.value).map_err(|error| unreadable(&error))?;
            match self.types_of(&document).await {
                Ok(types) => return Ok((document, entry.revision, types)),
                // Types that have just been replaced are gone, so the new ones are read; if they are the same, they are lost.
                Err(_) if seen != entry.revision => seen = entry.revision,
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the types that a graph's document names.
    ///
    /// # Errors
    /// `schema_unavailable` if the types are missing or damaged.
    pub(super) async fn types_of(&self, document: &LiveGraphDocument) -> Result<GraphTypes, Status> {
        let LiveGraphDocument { name, types: reference, .. } = document;
        let text = types::read(&*self.metadata, name, reference).await;
        let text = text.map_err(|error| match error {
            TypesReadError::Metadata(error) => unavailable(&error),
            TypesReadError::Damaged { graph, detail } => no_types(graph, detail),
        })?;
        types_of_text(reference, &text).map_err(|detail| no_types(name.clone(), detail))
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
                LookupError::UnknownGraph { name, known }.into()
            }
        }
    }

    async fn evolve(
        &self,
        request: &SchemaApply,
        declared: &DeclaredTypes,
        (document, revision, old): (LiveGraphDocument, u64, GraphTypes),
    ) -> Result<Applied, Status> {
        check_not_dropping(&document)?;
        let is_elsewhere = |storage: &Storage| storage.to_string() != document.storage;
        if request.storage.as_ref().is_some_and(is_elsewhere) {
            let message = format!("the rows of graph {:?} are in {}", document.name, document.storage);
            let help = "leave --storage out: a graph stays where it was created";
            return Err(kith_wire::status(ErrorCode::BadRequest, message, help));
        }
        let (types, changes) = old.evolve(declared).map_err(|error| bad_schema(&error))?;
        let storage = document.storage.clone();
        let applied = Applied { is_new: false, changes, revision: types.revision, storage };
        let (reference, text) = types_text(&types);
        self.check_share(&document, Some(&reference)).await?;
        if request.dry_run {
            return Ok(applied);
        }
        let identity = self.identity(types.identity)?;
        let created = self.databases.create(&document, identity).await;
        created.map_err(|error| no_database(&error))?;
        self.check_not_dropped(&document, identity).await?;
        if applied.changes.is_empty() {
            return Ok(applied);
        }
        for _ in 0..SHARE_TRIES {
            match self.put_types(&document, revision, (&reference, &text)).await? {
                Put::At(revision) => {
                    self.wait_until_visible(revision).await;
                    return Ok(applied);
                }
                Put::Changed => break,
                Put::OthersAdded => {}
            }
        }
        Err(changed_meanwhile(&request.graph))
    }

    /// Writes the types of a graph and the document that names them, if the document still has this revision and the graph may
    /// take so much.
    pub(super) async fn put_types(
        &self,
        document: &LiveGraphDocument,
        revision: u64,
        (reference, text): (&TypesReference, &str),
    ) -> Result<Put, Status> {
        let shares = self.check_share(document, Some(reference)).await?;
        let key = keys::live_graph(&document.name);
        let next = LiveGraphDocument { types: reference.clone(), ..document.clone() };
        let conditions = vec![Condition { key: key.clone(), revision }, shares.condition()];
        let mut writes = types::writes(&document.name, reference, text.to_owned());
        writes.extend([Write::put(key.clone(), next.encode()), shares.write()]);
        if let Committed::At(revision) = self.commit(conditions, writes).await? {
            return Ok(Put::At(revision));
        }
        let snapshot = self.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
        if snapshot.get(&key).is_none_or(|entry| entry.revision != revision) {
            return Ok(Put::Changed);
        }
        tokio::time::sleep(SHARE_PAUSE_MAX.mul_f64(rand::random())).await;
        Ok(Put::OthersAdded)
    }

    /// Checks that a graph may have these types instead of those that its document names; `None` for those, of a new graph.
    ///
    /// # Errors
    /// `out_of_range` if the subject to whom it is charged, or all together, would have too much.
    pub(super) async fn check_share(
        &self,
        document: &LiveGraphDocument,
        next: Option<&TypesReference>,
    ) -> Result<Shares, Status> {
        let shares = Shares::read(&*self.metadata, Shared::Graphs).await;
        let shares = shares.map_err(|error| match error {
            SharesError::Metadata(error) => unavailable(&error),
            SharesError::Document(error) => unreadable(&error),
        })?;
        let amount = |types: &TypesReference| Amount { count: 1, bytes: types.bytes };
        let (before, after) = match next {
            Some(next) => (amount(&document.types), amount(next)),
            None => (Amount::default(), amount(&document.types)),
        };
        shares.check(&document.charged_to, before, after)?;
        Ok(shares)
    }

    pub(super) fn identity(&self, graph: u64) -> Result<GraphIdentity, Status> {
        let partitions = self.topology.borrow().cluster.partitions;
        let partitions = PartitionCount::new(partitions).ok_or_else(|| {
            kith_wire::status(ErrorCode::Internal, "the cluster has no partitions", "report it")
        })?;
        Ok(GraphIdentity { graph, partitions })
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
        if !catch_up(&self.topology, revision, VISIBLE_WAIT).await {
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

/// The error for a graph whose types are missing or damaged.
fn no_types(graph: String, reason: String) -> Status {
    LookupError::TypesUnavailable { graph, reason }.to_status()
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
