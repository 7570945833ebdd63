//! Records what a query did: which node got which keys, how long each took, and the merged result.

use kith_routing::{FanOutPlan, execution::Cause};
use kith_wire::v1::{Profile, RequestProfile, RoundProfile};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// Records the rounds of one query. Costs a few vectors if a profile is wanted, and almost nothing otherwise.
#[derive(Debug)]
pub struct Trace {
    started: Instant,
    wanted: bool,
    cache: &'static str,
    rounds: Vec<RoundProfile>,
    /// The number of the rounds that [`Trace::take_new`] has returned.
    taken: usize,
    /// Keys that a cache has answered since then.
    cached_keys: u64,
}

impl Trace {
    /// Starts a trace of a query that began at `started`.
    pub fn new(started: Instant, wanted: bool) -> Self {
        Self { started, wanted, cache: "", rounds: Vec::new(), taken: 0, cached_keys: 0 }
    }

    /// The profile of fan-outs that were planned and not run.
    pub fn planned(rounds: impl IntoIterator<Item = RoundProfile>) -> Profile {
        let now = Instant::now();
        let trace = Self { rounds: rounds.into_iter().collect(), ..Self::new(now, true) };
        trace.profile(now)
    }

    /// Counts time before the query began as time of the query.
    pub fn begin_earlier(&mut self, by: Duration) {
        self.started = self.started.checked_sub(by).unwrap_or(self.started);
    }

    /// Whether a profile is wanted.
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Microseconds since the query started.
    pub fn micros(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.started).as_micros()).unwrap_or(u64::MAX)
    }

    /// Notes how the network cache took part; later notes are ignored.
    pub fn cache(&mut self, outcome: &'static str) {
        if self.cache.is_empty() {
            self.cache = outcome;
        }
    }

    /// Adds a round.
    pub fn round(&mut self, round: RoundProfile) {
        if self.wanted {
            self.rounds.push(round);
        }
    }

    /// Notes that a cache has answered keys.
    pub fn cached_keys(&mut self, count: usize) {
        self.cached_keys += count as u64;
    }

    /// The rounds since the last call, and the number of keys that a cache has answered meanwhile.
    pub fn take_new(&mut self) -> (&[RoundProfile], u64) {
        let from = std::mem::replace(&mut self.taken, self.rounds.len());
        (&self.rounds[from..], std::mem::take(&mut self.cached_keys))
    }

    /// Starts a trace of the same query for a concurrent part of it.
    pub fn beside(&self) -> Self {
        Self::new(self.started, self.wanted)
    }

    /// Adds the rounds of a trace of a concurrent part.
    pub fn absorb(&mut self, other: Self) {
        self.rounds.extend(other.rounds);
    }

    /// The profile, if one is wanted.
    pub fn finish(self) -> Option<Profile> {
        self.wanted.then(|| self.profile(Instant::now()))
    }

    /// The profile so far.
    pub fn profile(&self, now: Instant) -> Profile {
        let all = || self.rounds.iter().flat_map(|round| &round.requests);
        let requests = || all().filter(|request| request.cause != Cause::HEDGE);
        let groups: BTreeSet<u32> = requests().map(|request| request.group).collect();
        let nodes: BTreeSet<u32> = requests().map(|request| request.node).collect();
        Profile {
            requests: requests().count() as u32,
            groups: groups.len() as u32,
            nodes: nodes.len() as u32,
            total_us: self.micros(now),
            hedges: all().filter(|request| request.cause == Cause::HEDGE).count() as u32,
            metadata_age_ms: 0,
            cache: self.cache.to_owned(),
            rounds: self.rounds.clone(),
        }
    }
}

/// Returns the requests of a plan before they are sent. `group_of` returns a node's group.
pub fn planned_requests(
    plan: &FanOutPlan,
    group_of: impl Fn(kith_types::NodeId) -> u32,
) -> Vec<RequestProfile> {
    let planned = plan.assignments.iter().map(|assignment| RequestProfile {
        node: assignment.node.0,
        group: group_of(assignment.node),
        keys: assignment.keys.len() as u64,
        attempt: 1,
        cause: "plan".to_owned(),
        ..RequestProfile::default()
    });
    planned.collect()
}
