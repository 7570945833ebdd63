//! A router that has lost the metadata store says so: in its log, its metrics, its answers' profiles and, if another router
//! knows better, in `/readyz`.

use super::counters::RouterCounters;
use futures::future::join_all;
use kith_client::Fleet;
use kith_control::{own_status, shape::Shape};
use kith_net::{security::Dialer, server::http::Readiness};
use kith_process::{
    freshness::{Freshness, is_behind},
    topology::TopologyReceiver,
};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How often it looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A router that does not answer within this time is not known to know better.
const ROUTER_PATIENCE: Duration = Duration::from_millis(500);

/// Looks until `stop`.
pub(crate) struct Watch {
    pub addr: String,
    pub freshness: Freshness,
    pub topology: TopologyReceiver,
    pub dialer: Dialer,
    pub readiness: Readiness,
    pub counters: Arc<RouterCounters>,
    pub fleet: Arc<Fleet>,
}

impl Watch {
    pub fn start(self, stop: CancellationToken) {
        tokio::spawn(async move {
            let mut was_stale = false;
            let mut shape = Shape::default();
            let mut interval = tokio::time::interval(LOOK_INTERVAL);
            while stop.run_until_cancelled(interval.tick()).await.is_some() {
                shape.show(&self.topology.borrow(), |node| self.fleet.is_up(node));
                was_stale = self.look(was_stale).await;
            }
        });
    }

    async fn look(&self, was_stale: bool) -> bool {
        let age = self.freshness.age();
        self.counters.show();
        metrics::gauge!("kith_router_metadata_age_seconds").set(age.as_secs_f64());
        let is_stale = self.freshness.stale().is_some();
        match (was_stale, is_stale) {
            (false, true) => tracing::warn!(
                age_s = age.as_secs(),
                "the metadata store is out of reach: this router serves what it knows, swaps and rollbacks may pass it by"
            ),
            (true, false) => tracing::info!("the metadata store is in reach again"),
            _ => {}
        }
        let others = if is_stale { self.others().await } else { Vec::new() };
        self.readiness.set_behind(is_behind(age, others));
        is_stale
    }

    /// How old the metadata of other routers is, of those that answer.
    async fn others(&self) -> Vec<Duration> {
        let routers = self.topology.borrow().routers.clone();
        let others = routers.iter().filter(|router| router.addr != self.addr);
        let asked = others.map(|router| async {
            let told = tokio::time::timeout(ROUTER_PATIENCE, own_status(&self.dialer, &router.addr)).await;
            Some(Duration::from_millis(told.ok()?.ok()?.metadata_age_ms))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }
}
