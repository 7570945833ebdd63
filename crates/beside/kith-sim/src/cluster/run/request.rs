//! The course of a request, from the client's processor through the network and the node's processor, and back.

use super::{Run, node_index};
use crate::cluster::client::{Call, Query};
use crate::cluster::config::RESET;
use crate::cluster::node::Life;
use crate::cluster::{Client, Event, RequestKey, Task, Work};
use kith_routing::execution::{Disposition, Event as Happened, FailureClass};
use kith_routing::load::{self, NodeReport, RequestEnd};
use kith_routing::{HealthEvent, RoutingTable};
use kith_types::{NodeId, PartitionId};
use std::sync::Arc;
use std::time::Duration;

/// Clients must not send requests to a node that stopped answering longer ago than this.
const DETECTION_MAX: Duration = Duration::from_secs(1);

impl Run<'_> {
    pub(super) fn send(&mut self, key: RequestKey, node: NodeId, keys: Arc<[u32]>) {
        let now = self.now();
        self.late_sends += u64::from(self.is_late_send(key, node, &keys));
        let client = &mut self.clients[key.client as usize];
        let query = client.queries.get_mut(&key.query).expect("a query that sends requests is in progress");
        let charge = Some(client.meter.on_send(load::Work::graph(query.kind), node, keys.len(), now));
        assert_eq!(query.calls.len(), key.request.0 as usize, "requests are numbered in order");
        query.calls.push(Call { node, keys, left: now, back: now, open: true, charge });
        self.start_task(Task::Send(key), self.config.client.send);
    }

    fn start_task(&mut self, task: Task, length: Duration) {
        let now = self.now();
        let station = &mut self.clients[task.key().client as usize].station;
        if let Some((task, length)) = station.arrive(task, length) {
            self.agenda.at(now + length, Event::Done { task });
        }
    }

    pub(super) fn on_done(&mut self, task: Task) {
        match task {
            Task::Send(key) => self.leave(key),
            Task::Receive(key) => self.receive(key),
        }
        let now = self.now();
        let Client { station, queries, .. } = &mut self.clients[task.key().client as usize];
        let is_open = |task: &Task| {
            let key = task.key();
            queries.get(&key.query).is_some_and(|query| query.calls[key.request.0 as usize].open)
        };
        if let Some((task, length)) = station.end(is_open) {
            self.agenda.at(now + length, Event::Done { task });
        }
    }

    /// Draws the network latency of a request that leaves the client, and schedules its arrival at the node.
    fn leave(&mut self, key: RequestKey) {
        let now = self.now();
        let Some((call, kind)) = self.clients[key.client as usize].open_call(key) else { return };
        call.left = now;
        let (node, work) = (call.node, Work { key, kind, keys: call.keys.len() as u32 });
        let (slowness, incarnation) = (self.node(node).slowness, self.node(node).incarnation);
        let latency = self.config.latency.draw(&mut self.chance).mul_f64(slowness);
        self.agenda.at(now + latency, Event::AtNode { node, incarnation, work });
    }

    pub(super) fn on_at_node(&mut self, id: NodeId, incarnation: u32, work: Work) {
        let now = self.now();
        let wanted = self.is_wanted(work.key);
        let node = self.node_mut(id);
        if node.life == Life::Crashed {
            self.agenda.at(now + RESET, Event::Broken { key: work.key, node: id });
        } else if node.incarnation != incarnation || !wanted {
            // The connection broke earlier, or the client has cancelled the request.
        } else if node.life == Life::Paused {
            node.held.push(Event::AtNode { node: id, incarnation, work });
        } else {
            node.hear(work.key, now);
            let length = node.service(work.kind, work.keys as usize);
            if let Some((work, length)) = node.station.arrive(work, length) {
                self.agenda.at(now + length, Event::Served { node: id, incarnation, work });
            }
        }
    }

    pub(super) fn on_served(&mut self, id: NodeId, incarnation: u32, work: Work) {
        let now = self.now();
        let node = &mut self.nodes[node_index(&self.table, id)];
        if node.incarnation != incarnation {
            return;
        }
        if node.life == Life::Paused {
            node.held.push(Event::Served { node: id, incarnation, work });
            return;
        }
        node.last_served = Some(now);
        let report = node.report(now);
        let clients = &mut self.clients;
        let next = node.station.end(|work| clients[work.key.client as usize].open_call(work.key).is_some());
        if let Some((work, length)) = next {
            self.agenda.at(now + length, Event::Served { node: id, incarnation, work });
        }
        self.agenda.at(now, Event::Back { key: work.key, report });
    }

    pub(super) fn on_back(&mut self, key: RequestKey, report: NodeReport) {
        let now = self.now();
        let client = &mut self.clients[key.client as usize];
        let Some((call, _)) = client.open_call(key) else { return };
        call.back = now;
        let (node, keys) = (call.node, call.keys.len());
        client.meter.on_report(node, report, now);
        client.on_health(node, HealthEvent::Success, &self.table, now);
        let length = self.config.client.receive + self.config.client.per_key * keys as u32;
        self.start_task(Task::Receive(key), length);
    }

    /// Processes a reply that the client has received. It may complete the query.
    fn receive(&mut self, key: RequestKey) {
        let now = self.now();
        let client = &mut self.clients[key.client as usize];
        if client.open_call(key).is_none() {
            return;
        }
        client.close(key, RequestEnd::Answered, now);
        let query = client.queries.get_mut(&key.query).expect("the query of an open call exists");
        let late = match query.execution.on(Happened::Reply { request: key.request }, now) {
            Disposition::Accepted => Some(Vec::new()),
            Disposition::AcceptedInPart { late } => Some(late),
            Disposition::Held | Disposition::Ignored => None,
        };
        if late.is_some_and(|late| count_answers(query, key, &late, &self.table)) {
            let _ = query.execution.on(Happened::Satisfied, now);
        }
        self.act(key.client, key.query);
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

    /// Whether a request goes to a node that stopped answering more than [`DETECTION_MAX`] ago, although another replica of
    /// one of the keys is running.
    fn is_late_send(&self, key: RequestKey, node: NodeId, keys: &[u32]) -> bool {
        let Some(since) = self.node(node).silent_since else { return false };
        let partitions = &self.clients[key.client as usize].queries[&key.query].partitions;
        let runs = |p: &PartitionId| {
            self.table.replicas(*p).iter().any(|replica| self.nodes[replica.index()].life == Life::Running)
        };
        DETECTION_MAX < self.now().since(since) && keys.iter().any(|key| runs(&partitions[*key as usize]))
    }

    fn is_wanted(&mut self, key: RequestKey) -> bool {
        self.clients[key.client as usize].open_call(key).is_some()
    }
}

/// Counts the keys of a reply as answered, except the keys whose answers came too late, and checks that the node holds them.
/// Returns whether one of the answers is positive.
fn count_answers(query: &mut Query, key: RequestKey, late: &[u32], table: &RoutingTable) -> bool {
    let call = &query.calls[key.request.0 as usize];
    query.record.slowest = query.record.slowest.max(call.back.since(call.left));
    let node = table.node_index(call.node).expect("requests go to nodes of the table");
    let mut settled = false;
    for &index in call.keys.iter().filter(|key| late.binary_search(key).is_err()) {
        let partition = query.partitions[index as usize];
        query.answers[index as usize] = query.answers[index as usize].saturating_add(1);
        query.record.wrong_keys += usize::from(!table.replicas(partition).contains(&node));
        settled |= query.hits.binary_search(&partition).is_ok();
    }
    settled
}
