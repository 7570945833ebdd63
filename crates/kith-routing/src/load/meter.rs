//! Turns events into a [`LoadSnapshot`]. No clock: the shell passes the time.

use crate::load::{KindLoad, LoadSnapshot, NodeLoad, RateMeter};
use kith_types::{FanOutKind, NodeId, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a [`LoadMeter`] forgets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadMeterOptions {
    /// Rates are over roughly this long: long enough to be smooth, short enough
    /// that a controller acts within a few seconds.
    pub window: Duration,
    /// What a node said longer ago than this is forgotten.
    pub report_age_max: Duration,
    /// The share that terminates early is over roughly this many fan-outs.
    pub termination_window: u32,
}

impl Default for LoadMeterOptions {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(2),
            report_age_max: Duration::from_secs(10),
            termination_window: 50,
        }
    }
}

/// What a node says about itself on each reply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeReport {
    /// Requests per second it serves, from all clients.
    pub rps: f64,
    /// Clients it has heard from lately: `m` of Moolle's equation 8.
    pub clients: u32,
}

/// Measures load at one client.
#[derive(Clone, Debug)]
pub struct LoadMeter {
    options: LoadMeterOptions,
    queries: [RateMeter; FanOutKind::ALL.len()],
    requests: [RateMeter; FanOutKind::ALL.len()],
    nodes: BTreeMap<NodeId, NodeState>,
    termination_share: f64,
    /// How many the share is over; at most the window.
    terminable_seen: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct NodeState {
    report: NodeReport,
    reported: Option<Timestamp>,
    outstanding_keys: u64,
}

impl LoadMeter {
    /// A meter that has seen nothing.
    pub fn new(options: LoadMeterOptions) -> Self {
        let meters = [RateMeter::new(options.window); FanOutKind::ALL.len()];
        Self {
            options,
            queries: meters,
            requests: meters,
            nodes: BTreeMap::new(),
            termination_share: 0.0,
            terminable_seen: 0,
        }
    }

    /// A fan-out begins.
    pub fn on_query(&mut self, kind: FanOutKind, now: Timestamp) {
        self.queries[kind as usize].add(1.0, now);
    }

    /// A request with `keys` keys is sent. Each is followed by exactly one [`LoadMeter::on_end`].
    pub fn on_send(&mut self, kind: FanOutKind, node: NodeId, keys: usize, now: Timestamp) {
        self.requests[kind as usize].add(1.0, now);
        self.nodes.entry(node).or_default().outstanding_keys += keys as u64;
    }

    /// That request is over: answered, failed or cancelled.
    pub fn on_end(&mut self, node: NodeId, keys: usize) {
        if let Some(state) = self.nodes.get_mut(&node) {
            state.outstanding_keys = state.outstanding_keys.saturating_sub(keys as u64);
        }
    }

    /// A reply carried what its node says about itself.
    pub fn on_report(&mut self, node: NodeId, report: NodeReport, now: Timestamp) {
        let state = self.nodes.entry(node).or_default();
        state.report = report;
        state.reported = Some(now);
    }

    /// An early-terminable fan-out is over; `terminated` if a positive answer ended it.
    pub fn on_terminable_end(&mut self, terminated: bool) {
        // The plain mean until the window is full, then exponential forgetting.
        self.terminable_seen = (self.terminable_seen + 1).min(self.options.termination_window.max(1));
        let sample = f64::from(u8::from(terminated));
        self.termination_share += (sample - self.termination_share) / f64::from(self.terminable_seen);
    }

    /// A node left the table.
    pub fn forget(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    /// Load as of `now`. O(nodes).
    pub fn snapshot(&self, now: Timestamp) -> LoadSnapshot {
        let kind = |index: usize| KindLoad {
            qps: self.queries[index].per_second(now),
            rps: self.requests[index].per_second(now),
        };
        let fresh = |state: &NodeState| {
            let reported = state.reported?;
            (now.since(reported) <= self.options.report_age_max).then_some(state.report)
        };
        let load = |(node, state): (&NodeId, &NodeState)| NodeLoad {
            node: *node,
            rps: fresh(state).map_or(0.0, |report| report.rps),
            outstanding_keys: state.outstanding_keys,
        };
        LoadSnapshot {
            kinds: std::array::from_fn(kind),
            clients: self.nodes.values().filter_map(fresh).map(|report| report.clients).max().unwrap_or(0),
            nodes: self.nodes.iter().map(load).collect(),
            termination_share: (0 < self.terminable_seen).then_some(self.termination_share),
        }
    }
}

impl Default for LoadMeter {
    fn default() -> Self {
        Self::new(LoadMeterOptions::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp(Duration::from_millis(millis))
    }

    #[test]
    fn rates_are_kept_by_kind() {
        let mut meter = LoadMeter::default();
        for step in 0..400 {
            meter.on_query(FanOutKind::EarlyTerminable, at(step * 10));
            for node in 0..6 {
                meter.on_send(FanOutKind::EarlyTerminable, NodeId(node), 4, at(step * 10));
                meter.on_end(NodeId(node), 4);
            }
        }
        let load = meter.snapshot(at(4_000));
        assert!((load.kind(FanOutKind::EarlyTerminable).qps - 100.0).abs() < 5.0, "{load:?}");
        assert!((load.client_rps() - 600.0).abs() < 30.0, "{load:?}");
        assert_eq!(load.kind(FanOutKind::SyncUnion), KindLoad::default());
    }

    #[test]
    fn outstanding_keys_return_to_zero() {
        let mut meter = LoadMeter::default();
        meter.on_send(FanOutKind::SingleKey, NodeId(3), 7, at(0));
        assert_eq!(meter.snapshot(at(0)).node(NodeId(3)).unwrap().outstanding_keys, 7);
        meter.on_end(NodeId(3), 7);
        assert_eq!(meter.snapshot(at(0)).node(NodeId(3)).unwrap().outstanding_keys, 0);
    }

    #[test]
    fn reports_age_out() {
        let mut meter = LoadMeter::default();
        meter.on_report(NodeId(0), NodeReport { rps: 900.0, clients: 4 }, at(0));
        meter.on_report(NodeId(1), NodeReport { rps: 1_100.0, clients: 5 }, at(9_000));
        let load = meter.snapshot(at(9_000));
        assert_eq!((load.clients, load.node_rps_mean()), (5, 1_000.0));
        let load = meter.snapshot(at(15_000));
        assert_eq!((load.clients, load.node_rps_mean()), (5, 1_100.0));
        assert_eq!(meter.snapshot(at(60_000)).clients, 0);
    }

    #[test]
    fn the_termination_share_follows_what_happens() {
        let mut meter = LoadMeter::default();
        assert_eq!(meter.snapshot(at(0)).termination_share, None);
        (0..500).for_each(|step| meter.on_terminable_end(step % 10 != 0));
        let share = meter.snapshot(at(0)).termination_share.unwrap();
        assert!((share - 0.9).abs() < 0.1, "nine of ten end early, share is {share}");
        (0..500).for_each(|_| meter.on_terminable_end(false));
        assert!(meter.snapshot(at(0)).termination_share.unwrap() < 0.01);
    }
}
