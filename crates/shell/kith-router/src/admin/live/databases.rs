//! Creates and removes the databases of live graphs.

use kith_cluster::topology::{TopologyReceiver, database_addresses};
use kith_database::{
    AddressError, DatabaseError, DatabaseServers, GraphIdentity, Reach, Storage, StorageError,
};
use kith_net::security::Dialer;
use kith_types::{ErrorCode, LogPoint};
use kith_wire::documents::{LiveGraphDocument, TopologyDocument};
use tonic::Status;

/// The longest location of rows. The topology, which all processes read, contains it.
const STORAGE_BYTES_MAX: usize = 1 << 10;

/// The database processes and servers in which databases of live graphs can be created.
#[derive(Clone)]
pub struct Databases {
    pub(super) reach: Reach,
}

impl Databases {
    /// Returns the database processes of the cluster, and these servers.
    pub fn new(topology: TopologyReceiver, dialer: Dialer, servers: DatabaseServers) -> Self {
        Self { reach: Reach::new(database_addresses(topology), dialer, servers) }
    }

    /// Returns the default location of the rows of a new graph: the first database process of the cluster.
    ///
    /// # Errors
    /// If the cluster has no database process.
    pub(super) fn default_storage(&self, topology: &TopologyDocument) -> Result<String, Status> {
        let first = topology.databases.iter().map(|database| database.database).min();
        first.map(|database| Storage::Process(database).to_string()).ok_or_else(|| {
            let message = "the cluster has no database process";
            let help =
                "start one (`kith database`), or name a server with --storage mysql://HOST:PORT/DATABASE";
            kith_wire::status(ErrorCode::DatabaseUnavailable, message, help)
        })
    }

    /// Checks that a text names a database in which `graph` may be stored. Makes no connection and opens no file.
    ///
    /// # Errors
    /// `bad_request` if it names no database, `url_not_allowed` if the configuration does not allow it.
    pub(super) fn check(&self, graph: &str, storage: &str) -> Result<Storage, Status> {
        if STORAGE_BYTES_MAX < storage.len() {
            let message = format!("the location of the rows has {} bytes", storage.len());
            let help = format!("name a database with at most {STORAGE_BYTES_MAX} bytes");
            return Err(kith_wire::status(ErrorCode::BadRequest, message, help));
        }
        let storage: Storage = storage.parse().map_err(|error: StorageError| match error {
            StorageError::Address(AddressError::Parameters) => not_allowed(&error.to_string()),
            _ => {
                let help = "use database:ID or mysql://HOST:PORT/DATABASE, or leave --storage out";
                kith_wire::status(ErrorCode::BadRequest, error.to_string(), help)
            }
        })?;
        self.reach.admit(graph, storage).map_err(|refused| not_allowed(&refused.to_string()))
    }

    /// Creates the tables of a graph, unless they exist.
    pub(super) async fn create(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
    ) -> Result<(), DatabaseError> {
        let created = storage_of(document)?.create(&document.name, identity, &self.reach).await?;
        created.close().await;
        Ok(())
    }

    /// Calls [`Databases::create`], and calls it a second time if the database was unavailable: the tables may have been
    /// created although the answer was lost.
    pub(super) async fn create_with_retry(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
    ) -> Result<(), DatabaseError> {
        match self.create(document, identity).await {
            Err(DatabaseError::Unavailable { .. }) => self.create(document, identity).await,
            created => created,
        }
    }

    /// Checks that the database of a graph answers. It need not have the graph.
    pub(super) async fn reach(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
    ) -> Result<(), DatabaseError> {
        match storage_of(document)?.open(&document.name, identity, &self.reach).await {
            Ok(database) => database.close().await,
            Err(DatabaseError::NoGraph { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Removes the database of a graph if none of its partitions has had a leader yet, because it has no rows then. Returns
    /// whether nothing of the graph is left.
    pub(super) async fn remove_unused(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
    ) -> Result<bool, DatabaseError> {
        let opened = storage_of(document)?.open(&document.name, identity, &self.reach).await;
        let database = match opened {
            // At this location, there is no graph of this name, or another graph.
            Err(
                DatabaseError::NoGraph { .. }
                | DatabaseError::OtherGraph { .. }
                | DatabaseError::OtherPartitions { .. },
            ) => return Ok(true),
            opened => opened?,
        };
        let points = database.points(identity.partitions.iter().collect()).await;
        database.close().await;
        if points?.iter().any(|point| *point != LogPoint::default()) {
            return Ok(false);
        }
        self.remove(document, identity).await?;
        Ok(true)
    }

    /// Removes the rows of a graph, if they exist.
    pub(super) async fn remove(
        &self,
        document: &LiveGraphDocument,
        identity: GraphIdentity,
    ) -> Result<(), DatabaseError> {
        storage_of(document)?.remove(&document.name, identity, &self.reach).await
    }
}

fn not_allowed(reason: &str) -> Status {
    let help = "nothing was changed; name a server that a [[database-server]] in the configuration of the routers lists \
                for this graph, as mysql://HOST:PORT/DATABASE";
    kith_wire::status(ErrorCode::UrlNotAllowed, reason, help)
}

fn storage_of(document: &LiveGraphDocument) -> Result<Storage, DatabaseError> {
    let invalid = |error: StorageError| DatabaseError::Invalid { detail: error.to_string() };
    document.storage.parse().map_err(invalid)
}
