//! Turns events into a [`LoadSnapshot`]. No clock: the shell passes the time.

use crate::Latencies;
use crate::execution::HedgeRule;
use crate::load::hedge_times::{HedgeTimes, Hedging};
use crate::load::nodes::Account;
use crate::load::pauses::Pauses;
use crate::load::{Charge, KindLoad, LoadSnapshot, NodeLoad, PendingLimit, RateMeter, RequestEnd, Work};
use kith_types::{FanOutKind, NodeId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
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
    /// When a node is asked no more for a while.
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
    /// Accounts opened so far: no two have the same number.
    lives: u64,
    times: HedgeTimes,
    /// How long answers took since they were taken, by node; `None`: nobody tells nodes.
    waits: Option<BTreeMap<NodeId, Latencies>>,
    /// Whether the nodes to avoid may have changed since that was asked.
    limits_changed: bool,
    pauses: Pauses,
    termination_share: f64,
    /// How many the share is over; at most the window.
    terminable_seen: u32,
}

#[derive(Clone, Debug)]
struct NodeState {
    report: NodeReport,
    reported: Option<Timestamp>,
    account: Account,
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
            lives: 0,
            times: HedgeTimes::default(),
            waits: None,
            limits_changed: false,
            pauses: Pauses::default(),
            termination_share: 0.0,
            terminable_seen: 0,
        }
    }

    /// A fan-out begins.
    pub fn on_query(&mut self, kind: FanOutKind, now: Timestamp) {
        self.queries[kind as usize].add(1.0, now);
    }

    /// A request with `keys` keys is sent. The charge goes back to [`LoadMeter::on_end`] when it is over.
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

    /// The request that was sent last, and has this charge, is a hedge.
    pub fn on_hedge(&mut self, charge: &Charge) {
        let state = self.nodes.get_mut(&charge.node);
        if let Some(state) = state.filter(|state| state.account.life == charge.life) {
            state.account.hedge(charge.keys);
        }
    }

    /// That request is over.
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

    /// From now on, keeps how long answers take, for [`LoadMeter::take_waits`].
    pub fn keep_waits(&mut self) {
        self.waits.get_or_insert_default();
    }

    /// How long each node's answers took since the last time; of nodes that gave any. O(nodes).
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

    /// A node was down and is up again: what was known of it no longer holds, and it is asked at once.
    pub fn on_return(&mut self, node: NodeId) {
        if let Some(state) = self.nodes.get_mut(&node) {
            state.account.forgive();
        }
    }

    /// This process runs: called every 50 ms or so, by a shell that wants its own pauses noticed.
    pub fn on_tick(&mut self, now: Timestamp) {
        self.pauses.on_tick(now);
        let limit = self.options.pending;
        for state in self.nodes.values_mut() {
            self.limits_changed |= state.account.limit(limit, now);
        }
    }

    /// The last moment at which this process is known to have stood still. How long a request
    /// took that was under way then says nothing of its node.
    pub fn stood_still(&self, now: Timestamp) -> Timestamp {
        self.pauses.stood_still(now)
    }

    /// When this process has caught up with what came while it stood still: as long after that as it stood, half a second at the most.
    /// What is sent before is late because all of that is sent at once, and is not hedged for it.
    pub fn caught_up(&self, now: Timestamp) -> Timestamp {
        self.pauses.caught_up(now)
    }

    /// When requests of a query with `keys` keys are late; `None`: never.
    pub fn hedge_rule(
        &mut self,
        hedging: Hedging,
        work: Work,
        keys: usize,
        now: Timestamp,
    ) -> Option<HedgeRule> {
        self.times.rule(hedging, work, keys, now)
    }

    /// The nodes that have too many requests to get more, if that changed since the last call. At most half of the
    /// `nodes` there are, those that came over the limit first: where all are busy, avoiding some makes the others busier.
    pub fn newly_avoided(&mut self, nodes: usize) -> Option<Vec<NodeId>> {
        std::mem::take(&mut self.limits_changed).then(|| {
            let out = |(node, state): (&NodeId, &NodeState)| Some((state.account.out_since?, *node));
            let mut out: Vec<_> = self.nodes.iter().filter_map(out).collect();
            out.sort_unstable();
            out.into_iter().take(nodes / 2).map(|(_, node)| node).collect()
        })
    }

    /// A reply carried what its node says about itself.
    pub fn on_report(&mut self, node: NodeId, report: NodeReport, now: Timestamp) {
        // A late reply does not bring back a node that left the table: while it owes nothing it has no account.
        let Some(state) = self.nodes.get_mut(&node) else { return };
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

    /// There is a new table: nodes that it lacks are forgotten, with all they owe.
    pub fn follow(&mut self, table: &crate::RoutingTable) {
        let here: BTreeSet<NodeId> = table.nodes().iter().map(|node| node.id).collect();
        let gone: Vec<NodeId> = self.nodes.keys().copied().filter(|node| !here.contains(node)).collect();
        for node in gone {
            self.nodes.remove(&node);
            self.times.forget(node);
            self.limits_changed = true;
        }
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
