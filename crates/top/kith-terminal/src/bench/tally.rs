//! Counts of the queries of one kind under one setting.

use super::{latency::Latencies, workload::Kind};
use kith_wire::v1;
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};

/// The number of different messages of failed queries that are kept.
const ERRORS_KEPT: usize = 5;

/// Counts of the queries of one kind under one setting.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    latencies: Latencies,
    requests: u64,
    /// The number of requests of rounds for several keys or partitions.
    fan_out_requests: u64,
    fan_outs: u64,
    /// The number of allowed groups, summed over fan-outs.
    groups_allowed: u64,
    /// The number of distinct groups that took part, summed over queries.
    groups: u64,
    ended_early: u64,
    terminable: u64,
    pub errors: BTreeMap<String, u64>,
    pub wrong: u64,
}

/// A report in the printed form. Field names are a contract (`docs/benchmarks.md`).
#[derive(Clone, Debug, Serialize)]
pub struct KindReport {
    pub kind: &'static str,
    pub queries: u64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
    /// The median time between when a query was due and when it was sent. The latencies include this.
    pub lag_p50_us: u64,
    pub requests_per_query: f64,
    /// The number of requests per fan-out for several keys or partitions, without the first-degree look-up.
    pub requests_per_fan_out: f64,
    /// The number of groups that took part per query.
    pub groups: f64,
    /// The number of groups that the controller allowed per fan-out.
    pub groups_allowed: f64,
    /// The number of requests per second.
    pub rps: f64,
    /// The share of those fan-outs that may end early that did so.
    pub ended_early: Option<f64>,
    pub errors: u64,
    pub wrong: u64,
}

impl Tally {
    /// Counts an answer.
    pub fn on_answer(&mut self, latency: Duration, lag: Duration, profile: Option<&v1::Profile>) {
        self.latencies.record(latency, lag);
        let Some(profile) = profile else { return };
        self.requests += u64::from(profile.requests);
        self.groups += u64::from(profile.groups);
        for round in profile.rounds.iter().filter(|round| round.kind != "single-key") {
            self.fan_outs += 1;
            let planned = round.requests.iter().filter(|request| request.cause != "hedge");
            self.fan_out_requests += planned.count() as u64;
            self.groups_allowed += u64::from(round.groups_allowed);
            if round.kind == "early-terminable" {
                self.terminable += 1;
                self.ended_early += u64::from(round.ended_early);
            }
        }
    }

    /// Counts a failure.
    pub fn on_error(&mut self, error: String) {
        keep(&mut self.errors, error);
    }

    /// Adds the counts of another one.
    pub fn add(&mut self, other: &Self) {
        self.latencies.add(&other.latencies);
        self.requests += other.requests;
        self.fan_out_requests += other.fan_out_requests;
        self.fan_outs += other.fan_outs;
        self.groups_allowed += other.groups_allowed;
        self.groups += other.groups;
        self.ended_early += other.ended_early;
        self.terminable += other.terminable;
        self.wrong += other.wrong;
        for (error, count) in &other.errors {
            *self.errors.entry(error.clone()).or_default() += count;
        }
    }

    /// The latency that a share of the answers did not exceed, in microseconds.
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.latencies.quantile_us(share) as f64
    }

    /// The number of requests per query.
    pub fn requests_per_query(&self) -> f64 {
        per(self.requests, self.latencies.count())
    }

    /// The report on all counts, over the time `wall`.
    pub fn report(&self, kind: Option<Kind>, wall: Duration) -> KindReport {
        KindReport {
            kind: kind.map_or("all", Kind::name),
            queries: self.latencies.count(),
            p50_us: self.latencies.quantile_us(0.5),
            p90_us: self.latencies.quantile_us(0.9),
            p99_us: self.latencies.quantile_us(0.99),
            max_us: self.latencies.max_us(),
            lag_p50_us: self.latencies.lag_p50_us(),
            requests_per_query: self.requests_per_query(),
            requests_per_fan_out: per(self.fan_out_requests, self.fan_outs),
            groups: per(self.groups, self.latencies.count()),
            groups_allowed: per(self.groups_allowed, self.fan_outs),
            rps: self.requests as f64 / wall.as_secs_f64().max(1e-9),
            ended_early: (0 < self.terminable).then(|| per(self.ended_early, self.terminable)),
            errors: self.errors.values().sum(),
            wrong: self.wrong,
        }
    }
}

fn per(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

/// Counts a message. Further different messages beyond the first few are counted together.
pub fn keep(errors: &mut BTreeMap<String, u64>, error: String) {
    if errors.contains_key(&error) || errors.len() < ERRORS_KEPT {
        *errors.entry(error).or_default() += 1;
    } else {
        *errors.entry("others".to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(kind: &str, requests: usize, ended_early: bool) -> v1::Profile {
        let round = |kind: &str, requests, ended_early| v1::RoundProfile {
            kind: kind.to_owned(),
            requests: vec![v1::RequestProfile::default(); requests],
            groups_allowed: 2,
            ended_early,
            ..Default::default()
        };
        let rounds = vec![round("single-key", 1, false), round(kind, requests, ended_early)];
        v1::Profile { requests: 1 + requests as u32, groups: 2, rounds, ..Default::default() }
    }

    #[test]
    fn the_first_degree_look_up_is_counted_apart() {
        let mut tally = Tally::default();
        let ms = Duration::from_millis;
        tally.on_answer(ms(2), ms(0), Some(&profile("sync-union", 5, false)));
        tally.on_answer(ms(4), ms(0), Some(&profile("sync-union", 7, false)));
        let report = tally.report(Some(Kind::MultiKey), Duration::from_secs(2));
        assert_eq!((report.requests_per_query, report.requests_per_fan_out, report.rps), (7.0, 6.0, 7.0));
        assert_eq!((report.queries, report.groups, report.ended_early), (2, 2.0, None));
        assert!((3_990..=4_010).contains(&report.max_us), "{report:?}");
    }

    #[test]
    fn early_ends_are_a_share_of_those_that_may() {
        let mut tally = Tally::default();
        for ended in [true, true, false, true] {
            tally.on_answer(
                Duration::from_micros(10),
                Duration::ZERO,
                Some(&profile("early-terminable", 3, ended)),
            );
        }
        let mut sum = Tally::default();
        sum.add(&tally);
        assert_eq!(sum.report(None, Duration::from_secs(1)).ended_early, Some(0.75));
    }
}
