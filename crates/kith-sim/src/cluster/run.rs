//! The event loop.

use super::client::{Call, Query};
use super::node::{Life, Node};
use super::trouble::RESET;
use super::{Client, ClusterConfig, Event, QueryRecord, RequestKey, Task, Trace, Work};
use crate::agenda::Agenda;
use kith_routing::execution::{Action, Disposition, Event as Happened, Outcome, Verdict};
use kith_routing::load::{self, COOL_OFF, NodeReport, RequestEnd};
use kith_routing::{HealthEvent, RoutingTable, placement};
use kith_types::{NodeId, PartitionCount, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Run<'a> {
    pub(super) config: &'a ClusterConfig,
    pub(super) table: RoutingTable,
    pub(super) agenda: Agenda<Event>,
    pub(super) clients: Vec<Client>,
    pub(super) nodes: Vec<Node>,
    /// What the network does.
    pub(super) chance: StdRng,
    records: Vec<QueryRecord>,
    late_sends: u64,
}

impl<'a> Run<'a> {
    pub(super) fn new(config: &'a ClusterConfig) -> Self {
        let partitions =
            PartitionCount::new(config.partitions).expect("a cluster has 1 to 65,536 partitions");
        let table = placement::uniform_table(config.groups, config.nodes_per_group, partitions, config.seed)
            .expect("a cluster has groups and nodes");
        Self {
            config,
            agenda: Agenda::new(),
            clients: (0..config.clients).map(|number| Client::new(config, &table, number)).collect(),
            nodes: table.nodes().iter().map(|_| Node::new(config.node)).collect(),
            table,
            chance: StdRng::seed_from_u64(config.seed),
            records: Vec::new(),
            late_sends: 0,
        }
    }

    pub(super) fn carry_out(mut self) -> Trace {
        for client in 0..self.config.clients {
            self.ask_later(client);
            if !self.config.faults.is_empty() {
                self.agenda.at(Timestamp::ZERO, Event::ProbeTime { client });
            }
        }
        for (index, fault) in self.config.faults.iter().enumerate() {
            self.agenda.at(fault.at, Event::Fault { index });
        }
        while let Some(event) = self.agenda.take() {
            self.on(event);
        }
        self.into_trace()
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Asked { client } => self.on_asked(client),
            Event::Done { task } => self.on_done(task),
            Event::AtNode { node, incarnation, work } => self.on_at_node(node, incarnation, work),
            Event::Served { node, incarnation, work } => self.on_served(node, incarnation, work),
            Event::Back { key, report } => self.on_back(key, report),
            Event::Broken { key, node } => self.on_broken(key, node),
            Event::ProbeTime { client } => self.on_probe_time(client),
            Event::ProbeEnd { client, node, in_time } => self.on_probe_end(client, node, in_time),
            Event::Fault { index } => self.on_fault(index),
            Event::Deadline { client, query } => self.tell(client, query, Happened::Deadline),
            Event::HedgeDue { client, query } => self.on_hedge_due(client, query),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.agenda.now()
    }

    pub(super) fn is_ending(&self) -> bool {
        Timestamp(self.config.until) <= self.now()
    }

    fn ask_later(&mut self, client: u32) {
        let gap = self.config.workload.gap(&mut self.clients[client as usize].asked);
        let at = self.now() + gap;
        if at < Timestamp(self.config.until) {
            self.agenda.at(at, Event::Asked { client });
        }
    }

    fn on_asked(&mut self, number: u32) {
        let now = self.now();
        let client = &mut self.clients[number as usize];
        let spec = self.config.workload.draw(self.table.partition_count(), &mut client.asked);
        let (kind, keys) = (spec.kind, spec.partitions.len());
        match client.begin(spec, &self.table, now) {
            Ok(query) => {
                if let Some(deadline) = self.config.deadline {
                    self.agenda.at(now + deadline, Event::Deadline { client: number, query });
                }
                self.act(number, query);
            }
            Err(_) => self.keep(QueryRecord::begin(kind, keys, 0, now)),
        }
        self.ask_later(number);
    }

    /// Carries out what a query's execution wants.
    fn act(&mut self, client: u32, query: u64) {
        for action in self.clients[client as usize].next(query, &self.table) {
            match action {
                Action::Send { request, node, keys, .. } => {
                    self.send(RequestKey { client, query, request }, node, keys);
                }
                Action::Cancel { request, end } => {
                    let now = self.now();
                    self.clients[client as usize].close(RequestKey { client, query, request }, end, now);
                }
                Action::Use { .. } => unreachable!("simulated answers can be taken apart by key"),
                Action::Refresh { .. } => unreachable!("the table of a simulated cluster does not change"),
                Action::Finish(outcome) => self.finish(client, query, &outcome),
            }
        }
        self.arm(client, query);
    }

    /// Sets the query's hedge timer anew if its execution wants another time.
    fn arm(&mut self, client: u32, query: u64) {
        let Some(under_way) = self.clients[client as usize].queries.get_mut(&query) else { return };
        let due = under_way.execution.next_hedge();
        if let Some(at) = due.filter(|_| due != under_way.hedge_timer) {
            self.agenda.at(at, Event::HedgeDue { client, query });
        }
        under_way.hedge_timer = due;
    }

    fn on_hedge_due(&mut self, client: u32, query: u64) {
        // Simulated clients never stand still.
        self.tell(client, query, Happened::HedgeDue { caught_up: Timestamp::ZERO });
    }

    fn send(&mut self, key: RequestKey, node: NodeId, keys: Arc<[u32]>) {
        let now = self.now();
        self.late_sends += u64::from(self.is_late_send(key, node, &keys));
        let client = &mut self.clients[key.client as usize];
        let query = client.queries.get_mut(&key.query).expect("a query that sends is under way");
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

    fn on_done(&mut self, task: Task) {
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

    /// A request leaves the client and meets the network's weather.
    fn leave(&mut self, key: RequestKey) {
        let now = self.now();
        let Some((call, kind)) = self.clients[key.client as usize].open_call(key) else { return };
        call.left = now;
        let (node, work) = (call.node, Work { key, kind, keys: call.keys.len() as u32 });
        let (slowness, incarnation) = (self.node(node).slowness, self.node(node).incarnation);
        let latency = self.config.latency.draw(&mut self.chance).mul_f64(slowness);
        self.agenda.at(now + latency, Event::AtNode { node, incarnation, work });
    }

    fn on_at_node(&mut self, id: NodeId, incarnation: u32, work: Work) {
        let now = self.now();
        let wanted = self.is_wanted(work.key);
        let node = self.node_mut(id);
        if node.life == Life::Crashed {
            self.agenda.at(now + RESET, Event::Broken { key: work.key, node: id });
        } else if node.incarnation != incarnation || !wanted {
            // The connection broke long ago, or the request was cancelled on its way.
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

    fn on_served(&mut self, id: NodeId, incarnation: u32, work: Work) {
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

    fn on_back(&mut self, key: RequestKey, report: NodeReport) {
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

    /// A reply has been read: it counts, and may settle the query.
    fn receive(&mut self, key: RequestKey) {
        let now = self.now();
        let client = &mut self.clients[key.client as usize];
        if client.open_call(key).is_none() {
            return;
        }
        client.close(key, RequestEnd::Answered, now);
        let query = client.queries.get_mut(&key.query).expect("its call was open");
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

    pub(super) fn tell(&mut self, client: u32, query: u64, event: Happened) {
        let now = self.now();
        if let Some(under_way) = self.clients[client as usize].queries.get_mut(&query) {
            let _ = under_way.execution.on(event, now);
            self.act(client, query);
        }
    }

    fn finish(&mut self, client: u32, query: u64, outcome: &Outcome) {
        let now = self.now();
        let ended = self.clients[client as usize].queries.remove(&query);
        let mut ended = ended.expect("a query ends once");
        let meter = &mut self.clients[client as usize].meter;
        if outcome.verdict == Verdict::Complete && ended.kind == kith_types::FanOutKind::EarlyTerminable {
            meter.on_terminable_end(outcome.stopped_early);
        }
        if outcome.verdict == Verdict::Complete && !outcome.stopped_early {
            ended.record.wrong_keys += ended.answers.iter().filter(|answers| **answers != 1).count();
        }
        self.keep(QueryRecord {
            took: now.since(ended.record.began),
            requests: outcome.requests,
            retries: outcome.retries,
            hedged_keys: outcome.hedges.keys,
            verdict: Some(outcome.verdict),
            stopped_early: outcome.stopped_early,
            ..ended.record
        });
    }

    fn keep(&mut self, record: QueryRecord) {
        if Timestamp(self.config.warm_up) <= record.began {
            self.records.push(record);
        }
    }

    fn is_wanted(&mut self, key: RequestKey) -> bool {
        self.clients[key.client as usize].open_call(key).is_some()
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[node_index(&self.table, id)]
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        let index = node_index(&self.table, id);
        &mut self.nodes[index]
    }

    fn into_trace(self) -> Trace {
        let now = self.now();
        let share = |worked: Duration, workers: usize, stations: usize| {
            worked.as_secs_f64() / (self.config.until.as_secs_f64() * (workers * stations) as f64)
        };
        let worked = self.clients.iter().map(|client| client.station.worked()).sum();
        let served = self.nodes.iter().map(|node| node.station.worked()).sum();
        let outstanding = |client: &Client| {
            client.meter.snapshot(now + COOL_OFF).nodes.iter().map(|node| node.outstanding_keys).sum::<u64>()
        };
        let nodes = self.table.nodes().iter().zip(&self.nodes);
        let last_served = nodes.filter_map(|(entry, node)| Some((entry.id, node.last_served?)));
        Trace {
            client_utilisation: share(worked, self.config.client.workers, self.clients.len()),
            node_utilisation: share(served, self.config.node.workers, self.nodes.len()),
            late_sends: self.late_sends,
            unended: self.clients.iter().map(|client| client.queries.len()).sum(),
            outstanding_keys: self.clients.iter().map(outstanding).sum(),
            last_served: last_served.collect(),
            recorded: self.config.until.saturating_sub(self.config.warm_up),
            queries: self.records,
        }
    }
}

fn node_index(table: &RoutingTable, id: NodeId) -> usize {
    table.node_index(id).expect("requests go to nodes of the table").index()
}

/// Counts a reply's keys as answered, by a node that holds them; whether one of them settles the query.
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
