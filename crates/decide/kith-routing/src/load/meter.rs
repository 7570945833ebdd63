//! Turns events into a [`LoadSnapshot`]. It has no clock: the shell passes the time.

use super::HedgeRule;
use crate::Latencies;
use crate::load::nodes::Account;
use crate::load::pauses::Pauses;
use crate::load::{Charge, KindLoad, LoadSnapshot, NodeLoad, PendingLimit, RateMeter, RequestEnd, Work};
use crate::load::{Hedging, hedge_times::HedgeTimes};
use kith_types::{FanOutKind, NodeId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The time constants and limits of a [`LoadMeter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadMeterOptions {
    /// The time over which rates are averaged, roughly: long enough to be smooth, short enough for a controller to react
    /// within a few seconds.
    pub window: Duration,
    /// A node's report is forgotten after this time.
    pub report_age_max: Duration,
    /// The number of fan-outs, roughly, over which the share of early terminations is averaged.
    pub termination_window: u32,
    /// The limit above which a node gets no more requests for a while.
    pub pending: PendingLimit,
}

impl Default for LoadMeterOptions {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(2),
            report_age_max: Duration::from_secs(10),
            termination_window: 50,
            pending: PendingLimit::default(),
        }
    }
}

/// A node's report about itself, which each reply carries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeReport {
    /// The requests per second that it serves, from all clients.
    pub rps: f64,
    /// The number of clients that it has heard from recently: `m` in Moolle's equation 8.
    pub clients: u32,
}

/// Measures load at one client.
#[derive(Clone, Debug)]
pub struct LoadMeter {
    options: LoadMeterOptions,
    queries: [RateMeter; FanOutKind::ALL.len()],
    requests: [RateMeter; FanOutKind::ALL.len()],
    nodes: BTreeMap<NodeId, NodeState>,
    /// The number of accounts opened so far, which makes their numbers unique.
    lives: u64,
    times: HedgeTimes,
    /// The times that answers took since these were last taken, by node; `None` if they are not kept because nobody
    /// reports them to nodes.
    waits: Option<BTreeMap<NodeId, Latencies>>,
    /// Whether the nodes to avoid may have changed since they were last requested.
    limits_changed: bool,
    pauses: Pauses,
    termination_share: f64,
    /// The number of fan-outs in the share, at most the window.
    terminable_seen: u32,
}

#[derive(Clone, Debug)]
struct NodeState {
    report: NodeReport,
    reported: Option<Timestamp>,
    account: Account,
}

impl LoadMeter {
    /// Returns a meter without any events.
    pub fn new(options: LoadMeterOptions) -> Self {
        let meters = [RateMeter::new(options.window); FanOutKind::ALL.len()];
        Self {
            options,
            queries: meters,
            requests: meters,
            nodes: BTreeMap::new(),
            lives: 0,
            times: HedgeTimes::default(),
            waits: None,
            limits_changed: false,
            pauses: Pauses::default(),
            termination_share: 0.0,
            terminable_seen: 0,
        }
    }

    /// Records that a fan-out begins.
    pub fn on_query(&mut self, kind: FanOutKind, now: Timestamp) {
        self.queries[kind as usize].add(1.0, now);
    }

    /// Records that a request with `keys` keys is sent. Pass the charge to [`LoadMeter::on_end`] when the request is over.
    pub fn on_send(&mut self, work: Work, node: NodeId, keys: usize, now: Timestamp) -> Charge {
        self.requests[work.kind as usize].add(1.0, now);
        let keys = u32::try_from(keys).unwrap_or(u32::MAX);
        let limit = self.options.pending;
        let account = &mut self.state(node).account;
        account.charge(keys);
        let life = account.life;
        let changed = account.limit(limit, now);
        self.limits_changed |= changed;
        Charge { node, keys, work, sent: now, life }
    }

    /// Records that the request with this charge, which was sent last, is a hedge.
    pub fn on_hedge(&mut self, charge: &Charge) {
        let state = self.nodes.get_mut(&charge.node);
        if let Some(state) = state.filter(|state| state.account.life == charge.life) {
            state.account.hedge(charge.keys);
        }
    }

    /// Records that the request with this charge is over.
    pub fn on_end(&mut self, charge: Charge, end: RequestEnd, now: Timestamp) {
        let tells = self.stood_still(now) <= charge.sent;
        let limit = self.options.pending;
        let state = self.nodes.get_mut(&charge.node);
        let Some(state) = state.filter(|state| state.account.life == charge.life) else { return };
        state.account.release(&charge, end, tells, now);
        self.limits_changed |= state.account.limit(limit, now);
        if tells && matches!(end, RequestEnd::Answered | RequestEnd::Overtaken | RequestEnd::TimedOut) {
            let took = now.since(charge.sent);
            self.times.add(charge.node, charge.work, charge.keys as usize, took, now);
            if let Some(waits) = self.waits.as_mut().filter(|_| end == RequestEnd::Answered) {
                waits.entry(charge.node).or_default().record(took);
            }
        }
    }

    /// Starts keeping how long answers take, for [`LoadMeter::take_waits`].
    pub fn keep_waits(&mut self) {
        self.waits.get_or_insert_default();
    }

    /// Returns how long each node's answers took since the last call, for nodes that answered. O(nodes).
    pub fn take_waits(&mut self) -> BTreeMap<NodeId, Latencies> {
        self.waits.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn state(&mut self, node: NodeId) -> &mut NodeState {
        let Self { nodes, lives, .. } = self;
        nodes.entry(node).or_insert_with(|| {
            *lives += 1;
            NodeState { report: NodeReport::default(), reported: None, account: Account::new(*lives) }
        })
    }

    /// Records that a node that was down is up again. What was known about it is dropped, and it gets requests at once.
    pub fn on_return(&mut self, node: NodeId) {
        if let Some(state) = self.nodes.get_mut(&node) {
            state.account.forgive();
        }
    }

    /// Records that this process is running. A shell that wants pauses of the process to be noticed calls this about every
    /// 50 ms.
    pub fn on_tick(&mut self, now: Timestamp) {
        self.pauses.on_tick(now);
        let limit = self.options.pending;
        for state in self.nodes.values_mut() {
            self.limits_changed |= state.account.limit(limit, now);
        }
    }

    /// Returns the last moment at which this process is known to have been suspended. The duration of a request that was in
    /// flight then says nothing about its node.
    pub fn stood_still(&self, now: Timestamp) -> Timestamp {
        self.pauses.stood_still(now)
    }

    /// Returns when this process has caught up with the events that arrived while it was suspended: after as long as it was
    /// suspended, at most half a second. Requests sent before that are late only because everything is sent at once, and are
    /// not hedged for it.
    pub fn caught_up(&self, now: Timestamp) -> Timestamp {
        self.pauses.caught_up(now)
    }

    /// Returns when requests of a query with `keys` keys count as late; `None` if they never do.
    pub fn hedge_rule(
        &mut self,
        hedging: Hedging,
        work: Work,
        keys: usize,
        now: Timestamp,
    ) -> Option<HedgeRule> {
        self.times.rule(hedging, work, keys, now)
    }

    /// Returns the nodes that have too many requests to get more, if they changed since the last call. At most half of the
    /// `nodes` nodes are avoided, those first that exceeded the limit first: if all nodes are busy, avoiding some makes the
    /// others busier.
    pub fn newly_avoided(&mut self, nodes: usize) -> Option<Vec<NodeId>> {
        std::mem::take(&mut self.limits_changed).then(|| {
            let out = |(node, state): (&NodeId, &NodeState)| Some((state.account.out_since?, *node));
            let mut out: Vec<_> = self.nodes.iter().filter_map(out).collect();
            out.sort_unstable();
            out.into_iter().take(nodes / 2).map(|(_, node)| node).collect()
        })
    }

    /// Takes in a node's report from a reply.
    pub fn on_report(&mut self, node: NodeId, report: NodeReport, now: Timestamp) {
        // A late reply must not bring back a node that left the table. A node that owes nothing has no account.
        let Some(state) = self.nodes.get_mut(&node) else { return };
        state.report = report;
        state.reported = Some(now);
    }

    /// Records the end of an early-terminable fan-out. `terminated` says whether a positive answer ended it.
    pub fn on_terminable_end(&mut self, terminated: bool) {
        // Use the plain mean until the window is full, then an exponential moving average.
        self.terminable_seen = (self.terminable_seen + 1).min(self.options.termination_window.max(1));
        let sample = f64::from(u8::from(terminated));
        self.termination_share += (sample - self.termination_share) / f64::from(self.terminable_seen);
    }

    /// Adopts a new table. Nodes that it does not have are forgotten with everything that they owe.
    pub fn follow(&mut self, table: &crate::RoutingTable) {
        let here: BTreeSet<NodeId> = table.nodes().iter().map(|node| node.id).collect();
        let gone: Vec<NodeId> = self.nodes.keys().copied().filter(|node| !here.contains(node)).collect();
        for node in gone {
            self.nodes.remove(&node);
            self.times.forget(node);
            self.limits_changed = true;
        }
    }

    /// Returns the load at `now`. O(nodes).
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
            outstanding_keys: state.account.keys(now),
            outstanding_requests: state.account.requests(now),
            tally: state.account.tally,
            seconds_per_key: state.account.seconds_per_key(now),
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
mod tests;
