//! Opening the database of a live graph.

use kith_database::{Database, DatabaseError, GraphIdentity, MysqlDatabase, MysqlOptions, MysqlTarget};
use kith_net::security::Dialer;
use kith_types::PartitionCount;
use kith_wire::documents::{LiveGraphDocument, TopologyDocument};
use std::sync::Arc;

/// What opening needs to know.
pub(super) struct Opener<'a> {
    pub topology: &'a TopologyDocument,
    pub dialer: &'a Dialer,
}

impl Opener<'_> {
    /// The database that a graph names.
    pub async fn open(
        &self,
        document: &LiveGraphDocument,
        graph: u64,
        partitions: PartitionCount,
    ) -> Result<Arc<dyn Database>, DatabaseError> {
        let _ = (self.topology, self.dialer);
        let identity = GraphIdentity { graph, partitions };
        let target = MysqlTarget::parse(&document.storage, None)
            .map_err(|error| DatabaseError::Invalid { detail: error.to_string() })?;
        Ok(Arc::new(MysqlDatabase::open(target, identity, MysqlOptions::default()).await?))
    }
}
