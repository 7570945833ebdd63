//! The facts that `kith cluster status` reads from a router.

use crate::serve::RouterCounters;
use kith_session::Session;
use kith_types::NodeId;
use kith_wire::v1;
use std::{sync::Arc, time::Duration};
use tonic::Status;

/// The facts that a router learns by answering queries and that the status of the cluster shows.
pub(crate) struct RouterView {
    pub session: Session,
    pub counters: Arc<RouterCounters>,
}

impl RouterView {
    /// Asks a node about itself, over the connections of queries.
    pub async fn ping(&self, addr: &str, request: v1::PingRequest) -> Result<v1::PingReply, Status> {
        self.session.executor().fleet().transport().ping(addr, request).await
    }

    /// Whether queries are sent to a node now.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.session.executor().fleet().is_up(node)
    }

    /// The number of a store's answers since the router started, and the p50 and p99 of those of the last minutes.
    pub fn latencies_of(&self, store: &str) -> (u64, Duration, Duration) {
        self.counters.latencies_of(store)
    }

    /// The router's counters since it started.
    pub fn counters(&self) -> v1::RouterCounters {
        self.counters.report(self.session.executor())
    }
}
