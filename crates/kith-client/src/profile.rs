//! What a query did: which node got which keys, how long each took, what was merged.

use kith_routing::{FanOutPlan, execution::Cause};
use kith_wire::v1::{Profile, RequestProfile, RoundProfile};
use std::{collections::BTreeSet, time::Instant};

/// Records the rounds of one query. Costs a few vectors when on, almost nothing when off.
#[derive(Debug)]
pub struct Trace {
    started: Instant,
    wanted: bool,
    cache: &'static str,
    rounds: Vec<RoundProfile>,
}

impl Trace {
    /// Starts now.
    pub fn new(started: Instant, wanted: bool) -> Self {
        Self { started, wanted, cache: "", rounds: Vec::new() }
    }

    /// Whether a profile is wanted.
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Microseconds since the query started.
    pub fn micros(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.started).as_micros()).unwrap_or(u64::MAX)
    }

    /// Notes how the network cache took part; the first note stays.
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

    /// A trace of the same query, for what runs beside this one.
    pub fn beside(&self) -> Self {
        Self::new(self.started, self.wanted)
    }

    /// Takes in the rounds of a trace that ran beside this one.
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

/// The requests of a plan, before they were sent: `group_of` names a node's group.
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
