//! Reports that a router has lost the metadata store: in its log, its metrics and the profiles of its answers, and in
//! `/readyz` if another router has newer metadata.

use crate::{
    admin::{own_status, shape::Shape},
    serve::RouterCounters,
};
use futures::future::join_all;
use kith_cluster::{
    freshness::{Freshness, should_avoid},
    topology::TopologyReceiver,
};
use kith_net::{security::Dialer, server::http::Readiness};
use kith_session::Fleet;
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The interval at which the age of the metadata is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time limit for another router's answer. A router that does not answer is ignored.
const ROUTER_TIMEOUT: Duration = Duration::from_millis(500);

/// Checks the age of the metadata until `stop`.
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
            let mut interval = tokio::time::interval(CHECK_INTERVAL);
            while stop.run_until_cancelled(interval.tick()).await.is_some() {
                shape.show(&self.topology.borrow(), |node| self.fleet.is_up(node));
                was_stale = self.check(was_stale).await;
            }
        });
    }

    async fn check(&self, was_stale: bool) -> bool {
        let age = self.freshness.age();
        self.counters.show();
        metrics::gauge!("kith_router_metadata_age_seconds").set(age.as_secs_f64());
        let is_stale = self.freshness.stale().is_some();
        match (was_stale, is_stale) {
            (false, true) => tracing::warn!(
                age_s = age.as_secs(),
                "the metadata store cannot be reached: this router goes on answering, but may miss swaps and rollbacks"
            ),
            (true, false) => tracing::info!("the metadata store can be reached again"),
            _ => {}
        }
        let others = if is_stale { self.others().await } else { Vec::new() };
        self.readiness.set_stale(should_avoid(age, others));
        is_stale
    }

    /// The ages of the metadata of the other routers that answer.
    async fn others(&self) -> Vec<Duration> {
        let routers = self.topology.borrow().routers.clone();
        let others = routers.iter().filter(|router| router.addr != self.addr);
        let ages = others.map(|router| async {
            let status = tokio::time::timeout(ROUTER_TIMEOUT, own_status(&self.dialer, &router.addr)).await;
            Some(Duration::from_millis(status.ok()?.ok()?.metadata_age_ms))
        });
        join_all(ages).await.into_iter().flatten().collect()
    }
}
