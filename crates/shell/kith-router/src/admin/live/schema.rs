//! Shows and changes the types of live graphs. `create.rs` creates graphs, `drop.rs` removes them, and `add_types.rs` adds the
//! types that writes name.

use super::{
    apply::{SchemaApply, SchemaResult},
    create::GraphCreation,
    databases::Databases,
    drop::GraphRemoval,
    records::{
        GraphRecords, SHARE_TRIES, TypesWrite, bad_schema, changed_meanwhile, check_not_dropping,
        no_database, unavailable,
    },
};
use crate::admin::ClusterHandle;
use kith_cluster::metadata::keys;
use kith_database::Storage;
use kith_live::{DeclaredTypes, GraphTypes};
use kith_topology::types_text;
use kith_topology::versions::Trust;
use kith_types::{ErrorCode, check_store_name};
use kith_wire::{
    documents::LiveGraphDocument,
    v1::{self, schema_command::Command},
};
use tonic::Status;

/// Creates, changes, shows and drops live graphs, on behalf of one router.
#[derive(Clone)]
pub struct LiveGraphStore {
    pub(super) records: GraphRecords,
    pub(super) databases: Databases,
}

impl LiveGraphStore {
    /// Returns a store of graphs whose rows are in `databases`.
    pub fn new(cluster: ClusterHandle, databases: Databases) -> Self {
        Self { records: GraphRecords { cluster }, databases }
    }

    fn creation(&self) -> GraphCreation<'_> {
        GraphCreation { records: &self.records, databases: &self.databases }
    }

    pub(super) fn removal(&self) -> GraphRemoval<'_> {
        GraphRemoval { records: &self.records, databases: &self.databases }
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
                self.removal().drop_graph(&request.graph, keep_rows).await
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
    pub(super) async fn apply(&self, request: SchemaApply) -> Result<SchemaResult, Status> {
        check_store_name(&request.graph).map_err(|error| {
            kith_wire::status(ErrorCode::InvalidName, error.to_string(), "choose another name")
        })?;
        let declared: DeclaredTypes = request.text.parse().map_err(|error| bad_schema(&error))?;
        let key = keys::live_graph(&request.graph);
        let snapshot = self.records.cluster.metadata.read(&key).await.map_err(|error| unavailable(&error))?;
        match snapshot.get(&key) {
            None => self.creation().create(&request, &declared).await,
            Some(_) => {
                let existing = self.records.existing(&request.graph).await?;
                self.evolve(&request, &declared, existing).await
            }
        }
    }

    /// Returns the types of a graph, as the text that declares them.
    ///
    /// # Errors
    /// `unknown_graph`, `loaded_graph`.
    async fn show(&self, graph: &str) -> Result<String, Status> {
        let (_, _, types) = self.records.existing(graph).await?;
        Ok(types.declared().to_string())
    }

    async fn evolve(
        &self,
        request: &SchemaApply,
        declared: &DeclaredTypes,
        (document, revision, old): (LiveGraphDocument, u64, GraphTypes),
    ) -> Result<SchemaResult, Status> {
        check_not_dropping(&document)?;
        let is_elsewhere = |storage: &Storage| storage.to_string() != document.storage;
        if request.storage.as_ref().is_some_and(is_elsewhere) {
            let message = format!("the rows of graph {:?} are in {}", document.name, document.storage);
            let help = "leave --storage out: a graph stays where it was created";
            return Err(kith_wire::status(ErrorCode::BadRequest, message, help));
        }
        let (types, changes) = old.evolve(declared).map_err(|error| bad_schema(&error))?;
        let storage = document.storage.clone();
        let applied = SchemaResult { is_new: false, changes, revision: types.revision, storage };
        let (reference, text) = types_text(&types);
        self.records.check_share(&document, Some(&reference)).await?;
        if request.dry_run {
            return Ok(applied);
        }
        let identity = self.records.identity(types.identity)?;
        let created = self.databases.create(&document, identity).await;
        created.map_err(|error| no_database(&error))?;
        self.creation().check_not_dropped(&document, identity).await?;
        if applied.changes.is_empty() {
            return Ok(applied);
        }
        for _ in 0..SHARE_TRIES {
            match self.records.put_types(&document, revision, (&reference, &text)).await? {
                TypesWrite::At(revision) => {
                    self.records.cluster.wait_until_visible(revision).await;
                    return Ok(applied);
                }
                TypesWrite::Changed => break,
                TypesWrite::OthersAdded => {}
            }
        }
        Err(changed_meanwhile(&request.graph))
    }
}
