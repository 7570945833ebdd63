//! The records of live graphs in the metadata: their documents and their types.

use crate::admin::ClusterHandle;
use kith_cluster::metadata::{
    CommitOutcome, Condition, MetadataError, Write, keys,
    records::shares::{Amount, ShareKind, Shares, SharesError},
    types::{self, TypesError as TypesReadError},
};
use kith_database::{DatabaseError, GraphIdentity};
use kith_live::{GraphTypes, TypesError};
use kith_query::QueryError;
use kith_topology::types_of_text;
use kith_types::{ErrorCode, PartitionCount};
use kith_wire::LookupError;
use kith_wire::documents::{Document, DocumentError, LiveGraphDocument, TypesReference};
use std::time::Duration;
use tonic::Status;

/// The maximum number of attempts to make a change while types of other graphs are written.
pub(super) const SHARE_TRIES: u32 = 32;
/// The longest pause before the next try. Pauses are random, so that competing routers do not meet again.
pub(super) const SHARE_PAUSE_MAX: Duration = Duration::from_millis(50);

/// The outcome of an attempt to write the types of a graph.
pub(super) enum TypesWrite {
    /// They were written, at this revision.
    At(u64),
    /// The graph was changed meanwhile.
    Changed,
    /// Other graphs got types meanwhile, so that the bounds must be checked again.
    OthersAdded,
}

/// Reads and writes the records of live graphs.
#[derive(Clone)]
pub(super) struct GraphRecords {
    pub cluster: ClusterHandle,
}

impl GraphRecords {
    /// Returns the document of a live graph, its revision, and the types that it names.
    ///
    /// # Errors
    /// `unknown_graph`, `loaded_graph`; `schema_unavailable` if the types are missing or damaged.
    pub async fn existing(&self, graph: &str) -> Result<(LiveGraphDocument, u64, GraphTypes), Status> {
        let key = keys::live_graph(graph);
        let mut seen = 0;
        loop {
            let snapshot = self.cluster.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
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
    pub async fn types_of(&self, document: &LiveGraphDocument) -> Result<GraphTypes, Status> {
        let LiveGraphDocument { name, types: reference, .. } = document;
        let text = types::read(&*self.cluster.metadata, name, reference).await;
        let text = text.map_err(|error| match error {
            TypesReadError::Metadata(error) => unavailable(&error),
            TypesReadError::Damaged { graph, detail } => no_types(graph, detail),
        })?;
        types_of_text(reference, &text).map_err(|detail| no_types(name.clone(), detail))
    }

    pub fn not_live(&self, graph: &str) -> QueryError {
        let topology = self.cluster.topology.borrow();
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

    /// Writes the types of a graph and the document that names them, if the document still has this revision and the graph may
    /// take so much.
    pub async fn put_types(
        &self,
        document: &LiveGraphDocument,
        revision: u64,
        (reference, text): (&TypesReference, &str),
    ) -> Result<TypesWrite, Status> {
        let shares = self.check_share(document, Some(reference)).await?;
        let key = keys::live_graph(&document.name);
        let next = LiveGraphDocument { types: reference.clone(), ..document.clone() };
        let conditions = vec![Condition { key: key.clone(), revision }, shares.condition()];
        let mut writes = types::writes(&document.name, reference, text.to_owned());
        writes.extend([Write::put(key.clone(), next.encode()), shares.write()]);
        if let CommitOutcome::At(revision) = self.commit(conditions, writes).await? {
            return Ok(TypesWrite::At(revision));
        }
        let snapshot = self.cluster.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
        if snapshot.get(&key).is_none_or(|entry| entry.revision != revision) {
            return Ok(TypesWrite::Changed);
        }
        tokio::time::sleep(SHARE_PAUSE_MAX.mul_f64(rand::random())).await;
        Ok(TypesWrite::OthersAdded)
    }

    /// Checks that a graph may have these types instead of those that its document names; `None` for those, of a new graph.
    ///
    /// # Errors
    /// `out_of_range` if the subject to whom it is charged, or all together, would have too much.
    pub async fn check_share(
        &self,
        document: &LiveGraphDocument,
        next: Option<&TypesReference>,
    ) -> Result<Shares, Status> {
        let shares = Shares::read(&*self.cluster.metadata, ShareKind::Graphs).await;
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

    pub fn identity(&self, graph: u64) -> Result<GraphIdentity, Status> {
        let partitions = self.cluster.topology.borrow().cluster.partitions;
        let partitions = PartitionCount::new(partitions).ok_or_else(|| {
            kith_wire::status(ErrorCode::Internal, "the cluster has no partitions", "report it")
        })?;
        Ok(GraphIdentity { graph, partitions })
    }

    pub async fn commit(
        &self,
        conditions: Vec<Condition>,
        writes: Vec<Write>,
    ) -> Result<CommitOutcome, Status> {
        self.cluster.metadata.commit(conditions, writes).await.map_err(|error| unavailable(&error))
    }

    /// Marks a graph as being dropped, so that nodes neither serve nor lead it any more. Returns the new revision of its
    /// document.
    pub async fn withdraw(&self, document: &LiveGraphDocument, revision: u64) -> Result<u64, Status> {
        if document.dropping {
            return Ok(revision);
        }
        let (live, leaders) = (keys::live_graph(&document.name), keys::leaders(&document.name));
        let condition = Condition { key: live.clone(), revision };
        let dropping = LiveGraphDocument { dropping: true, ..document.clone() };
        let writes = vec![Write::put(live, dropping.encode()), Write::delete(leaders)];
        match self.commit(vec![condition], writes).await? {
            CommitOutcome::At(revision) => {
                self.cluster.wait_until_visible(revision).await;
                Ok(revision)
            }
            CommitOutcome::Conflict => {
                let message = format!("graph {:?} was changed at the same time", document.name);
                Err(kith_wire::status(ErrorCode::Conflict, message, "nothing was changed; try again"))
            }
        }
    }

    /// Removes the document and the types of a graph that was withdrawn at `revision`, which frees its name.
    pub async fn forget(&self, graph: &str, revision: u64) -> Result<(), Status> {
        let key = keys::live_graph(graph);
        let condition = Condition { key: key.clone(), revision };
        let types =
            types::removal(&*self.cluster.metadata, graph).await.map_err(|error| unavailable(&error))?;
        let writes = types.into_iter().chain([Write::delete(key)]).collect();
        self.commit(vec![condition], writes).await.map(drop)
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
