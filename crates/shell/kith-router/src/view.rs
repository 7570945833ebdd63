//! The facts that `kith cluster status` reads from a router.

use crate::{admin::RouterView, serve::RouterCounters};
use futures::future::BoxFuture;
use kith_session::Session;
use kith_types::NodeId;
use kith_wire::v1;
use std::{sync::Arc, time::Duration};
use tonic::Status;

/// The session, through which nodes are pinged, and the counters.
pub(crate) struct View {
    pub session: Session,
    pub counters: Arc<RouterCounters>,
}

impl RouterView for View {
    fn ping<'a>(
        &'a self,
        addr: &'a str,
        request: v1::PingRequest,
    ) -> BoxFuture<'a, Result<v1::PingReply, Status>> {
        self.session.executor().fleet().transport().ping(addr, request)
    }

    fn is_up(&self, node: NodeId) -> bool {
        self.session.executor().fleet().is_up(node)
    }

    fn latencies_of(&self, store: &str) -> (u64, Duration, Duration) {
        self.counters.latencies_of(store)
    }

    fn counters(&self) -> v1::RouterCounters {
        self.counters.told(self.session.executor())
    }
}
