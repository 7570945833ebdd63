//! The event loop of a simulation, with the faults of nodes, and the probes by which clients detect them.

mod query;
mod request;

use super::config::RESET;
use super::node::{Life, Node};
use super::{Client, ClusterConfig, Event, Fault, QueryRecord, RequestKey, Trace};
use crate::agenda::Agenda;
use kith_routing::execution::{Event as Happened, RequestId};
use kith_routing::load::COOL_OFF;
use kith_routing::{HealthEvent, RoutingTable, placement};
use kith_types::{NodeId, PartitionCount, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::time::Duration;

/// The interval at which a client checks whether probes are due.
const PROBE_TICK: Duration = Duration::from_millis(10);

pub(super) struct Run<'a> {
    config: &'a ClusterConfig,
    table: RoutingTable,
    agenda: Agenda<Event>,
    clients: Vec<Client>,
    nodes: Vec<Node>,
    /// The random numbers for the latencies of the network.
    chance: StdRng,
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

    fn now(&self) -> Timestamp {
        self.agenda.now()
    }

    fn is_ending(&self) -> bool {
        Timestamp(self.config.until) <= self.now()
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[node_index(&self.table, id)]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        let index = node_index(&self.table, id);
        &mut self.nodes[index]
    }

    fn on_fault(&mut self, index: usize) {
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

    fn on_probe_time(&mut self, client: u32) {
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

    fn on_probe_end(&mut self, client: u32, id: NodeId, in_time: bool) {
        let now = self.now();
        let is_well = in_time && self.node(id).life == Life::Running;
        let event = if is_well { HealthEvent::ProbeOk } else { HealthEvent::ProbeFailed };
        if self.clients[client as usize].on_health(id, event, &self.table, now) {
            self.lose(client, id);
        }
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
