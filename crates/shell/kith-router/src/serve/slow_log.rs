//! The slow-query log. Each line is one JSON object with the query, its duration and its plan.

use crate::settings::SlowLogSettings;
use kith_wire::v1::Profile;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Writes slow queries to the process's log, with a limit on the lines per second.
#[derive(Debug)]
pub(crate) struct SlowLog {
    settings: SlowLogSettings,
    /// The start of the current second, the lines written in it, and the lines left out since the last written one.
    window: Mutex<(Instant, u32, u64)>,
}

impl SlowLog {
    pub fn new(settings: SlowLogSettings) -> Self {
        Self { settings, window: Mutex::new((Instant::now(), 0, 0)) }
    }

    /// Logs a query that took at least the threshold.
    pub fn note(&self, query: &dyn Fn() -> Value, took: Duration, profile: Option<&Profile>, outcome: &str) {
        if took < self.settings.threshold {
            return;
        }
        metrics::counter!("kith_router_slow_queries_total").increment(1);
        let Some(left_out) = self.may_write(Instant::now()) else { return };
        let plan = profile.map_or(Value::Null, plan_of);
        let line =
            json!({"query": query(), "took_ms": took.as_millis() as u64, "outcome": outcome, "plan": plan});
        tracing::warn!(target: "kith::slow_query", left_out, "{line}");
    }

    fn may_write(&self, now: Instant) -> Option<u64> {
        let mut window = self.window.lock();
        if Duration::from_secs(1) <= now.saturating_duration_since(window.0) {
            (window.0, window.1) = (now, 0);
        }
        if window.1 < self.settings.lines_per_second {
            window.1 += 1;
            Some(std::mem::take(&mut window.2))
        } else {
            window.2 += 1;
            None
        }
    }
}

/// The plan as the log shows it: the rounds, each with its requests, slowest first.
fn plan_of(profile: &Profile) -> Value {
    let rounds = profile.rounds.iter().map(|round| {
        let mut requests: Vec<_> = round.requests.iter().collect();
        requests.sort_by_key(|request| std::cmp::Reverse(request.took_us));
        let requests: Vec<Value> = requests
            .iter()
            .map(|request| {
                json!({"node": request.node, "group": request.group, "keys": request.keys,
                       "took_us": request.took_us, "service_us": request.service_us, "outcome": request.outcome})
            })
            .collect();
        json!({"name": round.name, "controller": round.controller, "selector": round.selector,
               "policy": round.policy, "groups_allowed": round.groups_allowed,
               "groups_asked": round.groups_asked, "keys": round.keys, "took_us": round.took_us,
               "requests": requests})
    });
    json!({"requests": profile.requests, "groups": profile.groups, "nodes": profile.nodes,
           "cache": profile.cache, "rounds": rounds.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_slow_queries_is_cut_and_counted() {
        let log = SlowLog::new(SlowLogSettings { threshold: Duration::ZERO, lines_per_second: 2 });
        let start = Instant::now();
        let written: Vec<_> = (0..5).map(|_| log.may_write(start)).collect();
        assert_eq!(written, [Some(0), Some(0), None, None, None]);
        assert_eq!(log.may_write(start + Duration::from_secs(1)), Some(3));
    }
}
