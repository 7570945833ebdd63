//! Runs one rate after another, and records the results.

use super::{
    KvBenchFlags,
    draw::Draw,
    keys::{DrawnRequests, KnownKeys},
};
use crate::bench::{
    cpu,
    latency::Latencies,
    open_loop::{OpenLoopResult, Schedule, drive},
    tally::keep,
};
use kith_client::{BatchAnswer, QueryError, QueryOptions, Service};
use kith_operators::RecordCounts;
use std::{
    collections::{BTreeMap, BTreeSet},
    process,
    sync::Arc,
    time::Duration,
};

/// The time for which requests are sent before the first rate, to open connections and load files into memory.
const WARM_UP: Duration = Duration::from_millis(500);

/// A benchmark under way.
pub struct Run<'a> {
    pub flags: &'a KvBenchFlags,
    pub service: Arc<dyn Service>,
    pub known: Arc<KnownKeys>,
    pub draw: Draw,
    /// The processes of the cluster; empty if they are not on this machine.
    pub servers: Vec<u32>,
}

/// The results at one rate.
#[derive(Clone, Debug, Default)]
pub struct AtRate {
    /// The number of requests per second that were due.
    pub rate: f64,
    /// The time from the start to the last answer.
    pub wall: Duration,
    /// The latencies of answered requests, whatever the outcome of their keys.
    pub latencies: Latencies,
    /// The outcomes of their keys.
    pub keys: RecordCounts,
    /// The CPU time of this process.
    pub client: Duration,
    /// The CPU time of the cluster's processes, if they are known.
    pub servers: Option<Duration>,
    /// The versions that answered.
    pub versions: BTreeSet<u64>,
    /// The errors of requests that were not answered.
    pub errors: BTreeMap<String, u64>,
}

impl Run<'_> {
    /// Runs every rate in turn.
    pub async fn every_rate(&self) -> Vec<AtRate> {
        self.at(self.flags.rate[0], WARM_UP, u64::MAX).await;
        let length = Duration::from_secs_f64(self.flags.seconds);
        let mut all = Vec::new();
        for (index, rate) in (0u64..).zip(&self.flags.rate) {
            all.push(self.at(*rate, length, self.flags.seed ^ (index << 32)).await);
        }
        all
    }

    async fn at(&self, rate: f64, length: Duration, seed: u64) -> AtRate {
        let schedule = Schedule::new(rate, length, seed);
        let requests = schedule.due.len();
        let drawn = DrawnRequests::new(&self.known, &self.draw, requests, self.flags.keys as usize, seed);
        let (service, store) = (Arc::clone(&self.service), Arc::<str>::from(self.flags.store.as_str()));
        let ask = move |index: usize| {
            let (service, store, keys) = (Arc::clone(&service), Arc::clone(&store), drawn.request(index));
            // Each key is counted, whatever the outcome of the others.
            let options = QueryOptions { partial: true, ..QueryOptions::default() };
            async move { service.multi_get(&store, &keys, &options).await.map(|answer| Seen::of(&answer)) }
        };
        let parts = vec![("client", vec![process::id()]), ("servers", self.servers.clone())];
        let before = cpu::now(&parts);
        let driven = drive(schedule, ask).await;
        let after = cpu::now(&parts);
        let used = |part: usize| after[part].saturating_sub(before[part]);
        AtRate {
            rate,
            client: used(0),
            servers: (!self.servers.is_empty()).then(|| used(1)),
            ..count(driven)
        }
    }
}

/// The data that are kept of an answer.
#[derive(Debug)]
struct Seen {
    keys: RecordCounts,
    version: Option<u64>,
}

impl Seen {
    fn of(answer: &BatchAnswer) -> Self {
        Self { keys: answer.counts(), version: answer.served.first().map(|(_, version)| *version) }
    }
}

fn count(driven: OpenLoopResult<Result<Seen, QueryError>>) -> AtRate {
    let mut at = AtRate { wall: driven.wall, ..AtRate::default() };
    for observation in driven.observations {
        match observation.outcome {
            Some(Ok(Seen { keys, version })) => {
                at.latencies.record(observation.latency, observation.lag);
                at.keys.found += keys.found;
                at.keys.absent += keys.absent;
                at.keys.error += keys.error;
                at.keys.unanswered += keys.unanswered;
                at.versions.extend(version);
            }
            Some(Err(error)) => keep(&mut at.errors, format!("{}: {error}", error.code())),
            None => keep(&mut at.errors, "not sent: too many requests in flight".to_owned()),
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::open_loop::Observation;

    #[test]
    fn only_answers_have_latencies_and_every_key_is_counted() {
        let ms = Duration::from_millis;
        let seen = |found, absent, version| Seen {
            keys: RecordCounts { found, absent, ..RecordCounts::default() },
            version: Some(version),
        };
        let outcomes = [
            Some(Ok(seen(3, 0, 7))),
            Some(Ok(seen(2, 1, 8))),
            Some(Err(QueryError::BatchTooLarge { what: "the number of keys", got: 2, max: 1 })),
            None,
        ];
        let observations = outcomes.into_iter().enumerate().map(|(index, outcome)| Observation {
            index,
            latency: ms(2),
            lag: ms(1),
            outcome,
        });
        let at = count(OpenLoopResult { observations: observations.collect(), wall: ms(9) });
        assert_eq!((at.latencies.count(), at.keys.found, at.keys.absent), (2, 5, 1));
        assert_eq!(at.versions, BTreeSet::from([7, 8]));
        assert_eq!(at.errors.values().sum::<u64>(), 2, "{:?}", at.errors);
    }
}
