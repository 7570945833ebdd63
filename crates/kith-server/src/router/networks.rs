//! The network cache's shell.
use super::settings::CacheSettings;
use futures::{FutureExt, future::BoxFuture};
use kith_client::{NetworkSource, QueryError, Run};
use kith_ops::{Network, NetworkKey};
use std::sync::Arc;
pub(super) struct CachedNetworks;
impl CachedNetworks {
    pub fn new(_: &CacheSettings) -> Self {
        Self
    }
}
impl NetworkSource for CachedNetworks {
    fn network<'a>(
        &'a self,
        run: &'a mut Run<'_>,
        key: NetworkKey,
    ) -> BoxFuture<'a, Result<Arc<Network>, QueryError>> {
        run.fetch_network(key).boxed()
    }
}
