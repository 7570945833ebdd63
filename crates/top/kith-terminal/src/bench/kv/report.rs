//! The results of `kith bench kv`. Field names are a contract: `docs/benchmarks.md`.

use super::{KvBenchFlags, draw::Popularity, run::AtRate};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

#[derive(Clone, Debug, Serialize)]
pub struct KvReport {
    pub store: String,
    pub distribution: Popularity,
    /// The exponent; `null` unless the distribution is zipfian.
    pub exponent: Option<f64>,
    /// The number of keys that are drawn from.
    pub keys: u64,
    pub keys_per_request: u32,
    pub seed: u64,
    /// Whether every key was known to exist.
    pub checked: bool,
    pub rates: Vec<RateReport>,
    /// The versions that answered, ascending.
    pub versions: Vec<u64>,
    /// The messages of failed requests, with the number of times each occurred.
    pub errors: BTreeMap<String, u64>,
    /// The files that were written.
    pub files: Vec<PathBuf>,
}

#[derive(Clone, Debug, Serialize)]
pub struct RateReport {
    /// The number of requests per second that were due.
    pub rate: f64,
    /// The number of requests per second that were answered, up to the last answer.
    pub answered_rate: f64,
    pub requests: u64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
    /// The median time between when a request was due and when it was sent. The latencies include this.
    pub lag_p50_us: u64,
    /// The CPU time of the client per answered request.
    pub client_cpu_us: f64,
    /// The CPU time of the cluster's processes per answered request; `null` if they are not on this machine.
    pub server_cpu_us: Option<f64>,
    /// The same per key.
    pub server_cpu_us_per_key: Option<f64>,
    pub found: u64,
    pub absent: u64,
    /// The number of keys whose record every replica failed to read.
    pub error: u64,
    pub unanswered: u64,
    /// The number of requests without any answer.
    pub failed: u64,
    /// The number of existing keys that were not found; `null` without `--check`.
    pub wrong: Option<u64>,
}

impl KvReport {
    /// Whether every request and every key was answered, and no answer is known to be wrong.
    pub fn is_clean(&self) -> bool {
        let is_clean = |rate: &RateReport| rate.error + rate.unanswered + rate.wrong.unwrap_or(0) == 0;
        self.errors.is_empty() && self.rates.iter().all(is_clean)
    }
}

/// Summarises all rates.
pub fn report(flags: &KvBenchFlags, exponent: f64, keys: u64, rates: &[AtRate]) -> KvReport {
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for (error, count) in rates.iter().flat_map(|at| &at.errors) {
        *errors.entry(error.clone()).or_default() += count;
    }
    let versions: BTreeSet<u64> = rates.iter().flat_map(|at| at.versions.iter().copied()).collect();
    KvReport {
        store: flags.store.clone(),
        distribution: flags.distribution,
        exponent: (flags.distribution == Popularity::Zipfian).then_some(exponent),
        keys,
        keys_per_request: flags.keys,
        seed: flags.seed,
        checked: flags.check,
        rates: rates.iter().map(|at| rate_report(at, flags.check)).collect(),
        versions: versions.into_iter().collect(),
        errors,
        files: Vec::new(),
    }
}

fn rate_report(at: &AtRate, checked: bool) -> RateReport {
    let requests = at.latencies.count();
    let keys = at.keys.found + at.keys.absent + at.keys.error + at.keys.unanswered;
    let each = |used: Duration, count: u64| used.as_secs_f64() * 1e6 / count.max(1) as f64;
    RateReport {
        rate: at.rate,
        answered_rate: requests as f64 / at.wall.as_secs_f64().max(1e-9),
        requests,
        p50_us: at.latencies.quantile_us(0.5),
        p90_us: at.latencies.quantile_us(0.9),
        p99_us: at.latencies.quantile_us(0.99),
        p999_us: at.latencies.quantile_us(0.999),
        max_us: at.latencies.max_us(),
        lag_p50_us: at.latencies.lag_p50_us(),
        client_cpu_us: each(at.client, requests),
        server_cpu_us: at.servers.map(|used| each(used, requests)),
        server_cpu_us_per_key: at.servers.map(|used| each(used, keys)),
        found: at.keys.found,
        absent: at.keys.absent,
        error: at.keys.error,
        unanswered: at.keys.unanswered,
        failed: at.errors.values().sum(),
        wrong: checked.then_some(at.keys.absent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use kith_operators::RecordCounts;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: KvBenchFlags,
    }

    fn of(line: &str, absent: u64, error: u64) -> KvReport {
        let flags = Line::parse_from(["kv"].into_iter().chain(line.split(' '))).flags;
        let mut at = AtRate { rate: 10.0, wall: Duration::from_secs(2), ..AtRate::default() };
        (0..4).for_each(|_| at.latencies.record(Duration::from_millis(3), Duration::ZERO));
        at.keys = RecordCounts { found: 40 - absent - error, absent, error, ..RecordCounts::default() };
        at.servers = Some(Duration::from_micros(80));
        report(&flags, flags.exponent().unwrap(), 100, &[at])
    }

    #[test]
    fn processor_time_is_reported_by_request_and_by_key() {
        let report = of("people --keys 10", 0, 0);
        let rate = &report.rates[0];
        assert_eq!((rate.server_cpu_us, rate.server_cpu_us_per_key), (Some(20.0), Some(2.0)));
        assert_eq!((rate.answered_rate, rate.requests, rate.wrong, report.exponent), (2.0, 4, None, None));
    }

    #[test]
    fn a_key_that_is_not_there_is_wrong_only_if_it_is_known_to_be_there() {
        assert!(of("people", 1, 0).is_clean());
        assert!(!of("people --check", 1, 0).is_clean());
        assert!(of("people --check", 0, 0).is_clean());
        assert!(!of("people", 0, 1).is_clean(), "a damaged record is never clean");
    }
}
