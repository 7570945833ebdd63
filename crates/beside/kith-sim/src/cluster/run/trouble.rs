//! Faults, and how clients detect them: by broken connections and by probes.

use super::Run;
use crate::cluster::config::RESET;
use crate::cluster::node::Life;
use crate::cluster::{Event, Fault, RequestKey};
use kith_routing::HealthEvent;
use kith_routing::execution::{Event as Happened, FailureClass, RequestId};
use kith_routing::load::RequestEnd;
use kith_types::{NodeId, PartitionId};
use std::time::Duration;

/// The interval at which a client checks whether probes are due.
const PROBE_TICK: Duration = Duration::from_millis(10);

/// Clients must not send requests to a node that stopped answering longer ago than this.
const DETECTION_MAX: Duration = Duration::from_secs(1);

impl Run<'_> {
    pub(super) fn on_fault(&mut self, index: usize) {
        let now = self.now();
        let fault = self.config.faults[index];
        let node = self.node_mut(fault.node);
        match fault.fault {
            Fault::Crash => {
                node.crash(now);
                self.break_connections(fault.node);
            }
            Fault::Pause => node.pause(now),
            Fault::Slow(factor) => node.slowness = factor,
            Fault::Return => {
                for event in node.come_back() {
                    self.agenda.at(now, event);
                }
            }
        }
    }

    fn break_connections(&mut self, node: NodeId) {
        let now = self.now();
        for (client, state) in self.clients.iter().enumerate() {
            for (query, under_way) in &state.queries {
                let owed =
                    under_way.calls.iter().enumerate().filter(|(_, call)| call.open && call.node == node);
                for (request, _) in owed {
                    let request = RequestId(request as u32);
                    let key = RequestKey { client: client as u32, query: *query, request };
                    self.agenda.at(now + RESET, Event::Broken { key, node });
                }
            }
        }
    }

    pub(super) fn on_broken(&mut self, key: RequestKey, node: NodeId) {
        let now = self.now();
        let client = &mut self.clients[key.client as usize];
        let was_open = client.open_call(key).is_some();
        let is_down = client.on_health(node, HealthEvent::ConnectionError, &self.table, now);
        if was_open {
            client.close(key, RequestEnd::Failed, now);
            let failed = Happened::Failed { request: key.request, class: FailureClass::Connection };
            self.tell(key.client, key.query, failed);
        }
        if is_down {
            self.lose(key.client, node);
        }
    }

    /// Tells all queries of a client that a node is down, so that they request its unanswered keys from other nodes.
    fn lose(&mut self, client: u32, node: NodeId) {
        let queries: Vec<u64> = self.clients[client as usize].queries.keys().copied().collect();
        for query in queries {
            self.tell(client, query, Happened::NodeDown { node });
        }
    }

    pub(super) fn on_probe_time(&mut self, client: u32) {
        let now = self.now();
        let timeout = self.config.health.probe_timeout;
        for id in self.clients[client as usize].health.probes_due(now) {
            let slowness = self.node(id).slowness;
            let latency = self.config.latency.draw(&mut self.chance).mul_f64(slowness);
            let (after, in_time) = match self.node(id).life {
                Life::Crashed => (RESET, true),
                Life::Paused => (timeout, true),
                Life::Running => (latency.min(timeout), latency < timeout),
            };
            self.agenda.at(now + after, Event::ProbeEnd { client, node: id, in_time });
        }
        // Clients probe as long as queries arrive or are in progress.
        if !self.is_ending() || self.clients.iter().any(|client| !client.queries.is_empty()) {
            self.agenda.at(now + PROBE_TICK, Event::ProbeTime { client });
        }
    }

    pub(super) fn on_probe_end(&mut self, client: u32, id: NodeId, in_time: bool) {
        let now = self.now();
        let is_well = in_time && self.node(id).life == Life::Running;
        let event = if is_well { HealthEvent::ProbeOk } else { HealthEvent::ProbeFailed };
        if self.clients[client as usize].on_health(id, event, &self.table, now) {
            self.lose(client, id);
        }
    }

    /// Whether a request goes to a node that stopped answering more than [`DETECTION_MAX`] ago, although another replica of
    /// one of the keys is running.
    pub(super) fn is_late_send(&self, key: RequestKey, node: NodeId, keys: &[u32]) -> bool {
        let Some(since) = self.node(node).silent_since else { return false };
        let partitions = &self.clients[key.client as usize].queries[&key.query].partitions;
        let runs = |p: &PartitionId| {
            self.table.replicas(*p).iter().any(|replica| self.nodes[replica.index()].life == Life::Running)
        };
        DETECTION_MAX < self.now().since(since) && keys.iter().any(|key| runs(&partitions[*key as usize]))
    }
}
