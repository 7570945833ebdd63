//! Decides which nodes are up, from the results of requests and probes.
//!
//! A node goes down at once on a connection error or a failed probe, and comes up again on the first successful probe. Nodes
//! that are down, or have been silent, are probed regularly. A timeout only brings the next probe forward, because a slow
//! node is not a dead one. A node that is new, or has a new address, is probed at once. It gets no requests before it has
//! answered: the probe opens the connection that requests will use.

#[cfg(test)]
mod tests;

use crate::{Availability, NodeEntry, RoutingTable};
use kith_types::{NodeId, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// The parameters of the health decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthOptions {
    /// The interval at which a node is probed that is down, or that has not answered for this long. Five times per
    /// second notices the death or return of a node well within a second.
    pub probe_interval: Duration,
    /// A probe that has not ended after this time counts as failed.
    pub probe_timeout: Duration,
}

impl Default for HealthOptions {
    fn default() -> Self {
        Self { probe_interval: Duration::from_millis(200), probe_timeout: Duration::from_millis(500) }
    }
}

/// The outcome of a request or probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthEvent {
    /// A request was answered, even if with an error, so the node is alive.
    Success,
    /// A connection could not be made or broke.
    ConnectionError,
    /// A request was not answered in time.
    Timeout,
    /// The connection was lost while no request was in flight. The next probe opens another one.
    ConnectionIdleLost,
    /// A probe was answered.
    ProbeOk,
    /// A probe failed, or was not answered in time.
    ProbeFailed,
}

/// A change that the caller must pass on to views and, as `NodeDown`, to executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthChange {
    /// The node is down from now on.
    Down,
    /// The node is up again.
    Up,
    /// A new node has answered for the first time.
    Joined,
}

/// The known facts about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeState {
    /// It has not answered a probe yet.
    New,
    Up,
    Down,
}

#[derive(Clone, Debug)]
struct NodeHealth {
    standing: NodeState,
    /// The address; empty if it is unknown.
    address: String,
    /// The time at which the next probe is due.
    probe_at: Timestamp,
    /// The time at which the running probe was sent.
    probing_since: Option<Timestamp>,
}

/// The health of every node, as one client sees it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    options: HealthOptions,
    nodes: BTreeMap<NodeId, NodeHealth>,
}

impl Health {
    /// Returns a value that knows no nodes yet.
    pub fn new(options: HealthOptions) -> Self {
        Self { options, nodes: BTreeMap::new() }
    }

    /// Adopts the nodes of a new table. Nodes that are new, or have a new address, are probed at once. Nodes that left are
    /// forgotten, and the others keep their state.
    pub fn follow(&mut self, table: &RoutingTable, now: Timestamp) {
        let mut known = std::mem::take(&mut self.nodes);
        let mut keep = |node: &NodeEntry| match known.remove(&node.id) {
            Some(state) if state.address == node.address => state,
            _ => NodeHealth {
                standing: NodeState::New,
                address: node.address.clone(),
                probe_at: now,
                probing_since: None,
            },
        };
        self.nodes = table.nodes().iter().map(|node| (node.id, keep(node))).collect();
    }

    /// Whether every node has been probed at least once at its current address.
    pub fn is_settled(&self) -> bool {
        self.nodes.values().all(|state| state.standing != NodeState::New)
    }

    /// Takes in an event. Returns a change if the node went down or came up.
    pub fn on(&mut self, node: NodeId, event: HealthEvent, now: Timestamp) -> Option<HealthChange> {
        let interval = self.options.probe_interval;
        let state = self.nodes.get_mut(&node)?;
        match event {
            // An answer that was on its way when the node died must not revive it. While the node is down, an answer only
            // brings the next probe forward.
            HealthEvent::Success if state.standing == NodeState::Down => {
                state.probe_at = state.probe_at.min(now);
                None
            }
            HealthEvent::Success => state.turn(NodeState::Up, now + interval),
            HealthEvent::Timeout | HealthEvent::ConnectionIdleLost => {
                state.probe_at = state.probe_at.min(now);
                None
            }
            HealthEvent::ConnectionError => state.turn(NodeState::Down, now + interval),
            HealthEvent::ProbeOk | HealthEvent::ProbeFailed => {
                state.probing_since = None;
                let is_well = event == HealthEvent::ProbeOk;
                state.turn(if is_well { NodeState::Up } else { NodeState::Down }, now + interval)
            }
        }
    }

    /// Returns the nodes to probe now. Each has at most one probe at a time. The caller reports the end of each probe. A
    /// probe that takes too long is given up here and repeated.
    pub fn probes_due(&mut self, now: Timestamp) -> Vec<NodeId> {
        let HealthOptions { probe_interval, probe_timeout } = self.options;
        let mut due = Vec::new();
        for (node, state) in &mut self.nodes {
            let overdue = state.probing_since.is_some_and(|since| probe_timeout <= now.since(since));
            let idle = state.probing_since.is_none();
            if state.probe_at <= now && (idle || overdue) {
                state.probing_since = Some(now);
                state.probe_at = now + probe_interval;
                due.push(*node);
            }
        }
        due
    }

    /// Returns when to call [`Health::probes_due`] next.
    pub fn next_probe(&self) -> Option<Timestamp> {
        self.nodes.values().map(|state| state.probe_at).min()
    }

    /// Whether a node is not known to be down. This is true for unknown and new nodes.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_none_or(|state| state.standing != NodeState::Down)
    }

    /// Returns which nodes of a table are up; new ones are not up yet. If the caller excludes more nodes, it must then call
    /// [`Availability::rescue`], so that partitions without a live replica are tried instead of refused.
    pub fn availability(&self, table: &RoutingTable) -> Availability {
        let down: Vec<NodeId> = self
            .nodes
            .iter()
            .filter(|(_, state)| state.standing != NodeState::Up)
            .map(|(node, _)| *node)
            .collect();
        Availability::all_but(table, &down)
    }
}

impl NodeHealth {
    fn turn(&mut self, standing: NodeState, probe_at: Timestamp) -> Option<HealthChange> {
        self.probe_at = probe_at;
        let before = std::mem::replace(&mut self.standing, standing);
        match (before, standing) {
            (before, now) if before == now => None,
            (_, NodeState::Down) => Some(HealthChange::Down),
            (NodeState::New, _) => Some(HealthChange::Joined),
            (NodeState::Up | NodeState::Down, _) => Some(HealthChange::Up),
        }
    }
}
