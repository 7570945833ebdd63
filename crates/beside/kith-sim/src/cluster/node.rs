//! A node: a processor with a queue, and the load that the node reports with each reply.

use crate::cluster::{Event, NodeModel, RequestKey, Work};
use crate::station::Station;
use kith_routing::load::{NodeReport, RateMeter};
use kith_types::{FanOutKind, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// The state of a node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Running,
    Paused,
    Crashed,
}

/// A node counts the clients that sent it a request within this time.
const CLIENT_AGE_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Node {
    model: NodeModel,
    pub(super) life: Life,
    /// The time at which the node stopped answering; `None` while it answers.
    pub(super) silent_since: Option<Timestamp>,
    /// The number of crashes. Work of an earlier incarnation is lost.
    pub(super) incarnation: u32,
    pub(super) slowness: f64,
    pub(super) station: Station<Work>,
    /// The events that happened while the node was paused.
    pub(super) held: Vec<Event>,
    pub(super) last_served: Option<Timestamp>,
    requests: RateMeter,
    heard_from: BTreeMap<u32, Timestamp>,
}

impl Node {
    pub(super) fn new(model: NodeModel) -> Self {
        Self {
            model,
            life: Life::Running,
            silent_since: None,
            incarnation: 0,
            slowness: 1.0,
            station: Station::new(model.workers),
            held: Vec::new(),
            last_served: None,
            requests: RateMeter::new(Duration::from_secs(2)),
            heard_from: BTreeMap::new(),
        }
    }

    pub(super) fn hear(&mut self, key: RequestKey, now: Timestamp) {
        self.requests.add(1.0, now);
        self.heard_from.insert(key.client, now);
    }

    /// Returns the time for which the processor is busy with a request.
    pub(super) fn service(&self, kind: FanOutKind, keys: usize) -> Duration {
        let each = match kind {
            FanOutKind::EarlyTerminable | FanOutKind::Broadcast => self.model.per_partition,
            _ => self.model.per_key,
        };
        (self.model.request + each * keys as u32).mul_f64(self.slowness)
    }

    pub(super) fn report(&self, now: Timestamp) -> NodeReport {
        let each = self.model.clients_each;
        let fresh = |heard: &&Timestamp| now.since(**heard) <= CLIENT_AGE_MAX;
        let clients = self.heard_from.values().filter(fresh).count() as u32;
        NodeReport { rps: self.requests.per_second(now) * f64::from(each), clients: clients * each }
    }

    /// The process crashes and loses everything.
    pub(super) fn crash(&mut self, now: Timestamp) {
        self.life = Life::Crashed;
        self.silent_since = Some(now);
        self.incarnation += 1;
        self.station.reset();
        self.held.clear();
    }

    pub(super) fn pause(&mut self, now: Timestamp) {
        if self.life == Life::Running {
            self.life = Life::Paused;
            self.silent_since = Some(now);
        }
    }

    /// Ends the fault. Returns the events that were held while the node was paused.
    pub(super) fn come_back(&mut self) -> Vec<Event> {
        self.life = Life::Running;
        self.silent_since = None;
        self.slowness = 1.0;
        std::mem::take(&mut self.held)
    }
}
