//! The router as the backend of its doors.

use super::service::GraphServer;
use kith_doors::Backend;
use kith_query::{QueryError, StoreShape};

impl Backend for GraphServer {
    fn role(&self) -> &'static str {
        "router"
    }

    fn stores(&self) -> Vec<(String, u64)> {
        let topology = self.session.topology();
        let stores = topology.stores.iter();
        stores.map(|(name, store)| (name.clone(), store.pinned.version())).collect()
    }

    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError> {
        let topology = self.session.topology();
        let store = topology.store(store)?;
        Ok(StoreShape { key: store.key, value: store.value })
    }

    fn fans_out(&self) -> bool {
        true
    }
}
