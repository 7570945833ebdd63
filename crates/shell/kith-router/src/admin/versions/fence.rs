//! The steps after a flip: it is counted, and this router waits until every live router serves the version or its lease
//! has ended.

use crate::admin::{ClusterHandle, own_status};
use futures::future::join_all;
use kith_cluster::freshness::LEASE_TTL;
use kith_cluster::metadata::keys;
use kith_topology::versions::{Fence, RouterProgress};
use kith_wire::{documents::StoreDocument, v1};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// After this time, a lease that is not renewed has ended, even if the metadata store rounds its time to live up.
const FENCE_WAIT: Duration = LEASE_TTL.saturating_add(Duration::from_secs(4));
/// The interval at which routers are asked.
const FENCE_RETRY: Duration = Duration::from_millis(50);
/// A router that does not answer within this time is asked again.
const ROUTER_TIMEOUT: Duration = Duration::from_millis(500);

/// Counts and logs the one write that changed what a store serves. Returns its duration in microseconds.
pub(super) fn flipped(store: &StoreDocument, took: Duration) -> u64 {
    metrics::histogram!("kith_router_flip_seconds").record(took.as_secs_f64());
    let version = store.current().map_or(0, |current| current.version);
    let flip_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    tracing::info!(store = store.name, version, flip_us, "a version serves");
    flip_us
}

/// Waits until every router follows a change of what is served.
#[derive(Clone)]
pub(super) struct RouterFence {
    pub cluster: ClusterHandle,
}

impl RouterFence {
    /// Waits until no router begins a query on anything older than the change at `revision`. Returns the state of each
    /// router.
    async fn wait_until_followed(&self, revision: u64) -> Vec<v1::FollowedRouter> {
        let mut fence = Fence::new(revision);
        let started = Instant::now();
        while started.elapsed() < FENCE_WAIT {
            // If the live routers cannot be read, keep waiting for those that are known.
            if let Ok(live) = self.live_routers().await {
                fence.live(&live);
            }
            self.ask_routers(&mut fence).await;
            if fence.waits_for().is_empty() {
                break;
            }
            tokio::time::sleep(FENCE_RETRY).await;
        }
        for router in fence.routers().iter().filter(|(_, followed)| **followed != RouterProgress::Seen) {
            let (router, state) = (router.0, router.1.name());
            tracing::warn!(router, revision, state, "a router has not followed a change of what is served");
        }
        let routers = fence.routers().iter();
        routers
            .map(|(router, followed)| v1::FollowedRouter {
                router: *router,
                state: followed.name().to_owned(),
            })
            .collect()
    }

    /// Waits until a caller who changed what is served finds the change at every router.
    pub(super) async fn wait_until_served(&self, revision: u64) -> Vec<v1::FollowedRouter> {
        tokio::join!(self.cluster.wait_until_visible(revision), self.wait_until_followed(revision)).1
    }

    /// Returns the other routers that hold a lease.
    async fn live_routers(&self) -> Result<BTreeSet<u32>, kith_cluster::metadata::MetadataError> {
        let live = self.cluster.metadata.read(keys::LIVE_ROUTERS).await?;
        let others =
            live.entries.iter().filter(|entry| entry.value != self.cluster.coordinator.name().as_bytes());
        Ok(others.filter_map(|entry| entry.key.strip_prefix(keys::LIVE_ROUTERS)?.parse().ok()).collect())
    }

    async fn ask_routers(&self, fence: &mut Fence) {
        let routers = self.cluster.topology.borrow().routers.clone();
        let waits_for = fence.waits_for();
        let revisions =
            routers.iter().filter(|router| waits_for.contains(&router.router)).map(|router| async {
                let status =
                    tokio::time::timeout(ROUTER_TIMEOUT, own_status(&self.cluster.dialer, &router.addr))
                        .await;
                Some((router.router, status.ok()?.ok()?.revision))
            });
        for (router, revision) in join_all(revisions).await.into_iter().flatten() {
            fence.serves(router, revision);
        }
    }
}
