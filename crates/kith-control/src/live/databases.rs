//! The databases of live graphs, as far as creating them goes.

use kith_database::{DatabaseError, GraphIdentity, MysqlDatabase, MysqlOptions, MysqlTarget};
use kith_process::topology::TopologyReceiver;
use kith_types::ErrorCode;
use kith_wire::documents::{LiveGraphDocument, TopologyDocument};
use tonic::Status;

/// Where databases of live graphs can be created.
#[derive(Clone, Default)]
pub struct Databases {}

impl Databases {
    /// Where the rows of a new graph are if nobody says: in the first database process of the cluster.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn default_storage(&self, topology: &TopologyDocument) -> Result<String, Status> {
        let first = topology.databases.iter().map(|database| database.database).min();
        first.map(|database| format!("database:{database}")).ok_or_else(|| {
            let message = "the cluster has no database process";
            let help = "start one (`kith database`), or name a server with --storage mysql://USER@HOST:PORT/DATABASE";
            kith_wire::status(ErrorCode::DatabaseUnavailable, message, help)
        })
    }

    /// Refuses a text that names no database.
    pub(super) fn check(&self, storage: &str) -> Result<(), Status> {
        MysqlTarget::parse(storage, None).map(drop).map_err(|error| {
            let help = "use mysql://USER@HOST:PORT/DATABASE, or leave --storage out";
            kith_wire::status(ErrorCode::BadRequest, error.to_string(), help)
        })
    }

    /// Creates the tables of a graph, unless they are there.
    pub(super) async fn create(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
        _topology: &TopologyReceiver,
    ) -> Result<(), DatabaseError> {
        let target = MysqlTarget::parse(&document.storage, None)
            .map_err(|error| DatabaseError::Invalid { detail: error.to_string() })?;
        MysqlDatabase::create(target, identity, MysqlOptions::default()).await.map(drop)
    }
}
