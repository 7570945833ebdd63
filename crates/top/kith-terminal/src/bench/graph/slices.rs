//! Lets settings take turns, a slice of time each, with the same queries at the same moments of their slices.

use super::GraphBenchFlags;
use crate::bench::{
    open_loop::{OpenLoopResult, Schedule, drive},
    setting::Setting,
    tally::Tally,
    twin::fingerprint,
    workload::{Kind, PlannedQuery, Workload},
};
use kith_client::{QueryAnswer, QueryError, QueryOptions, Service};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The time for which each setting is queried before the first slice, to open connections and load files into memory.
const WARM_UP: Duration = Duration::from_millis(500);

/// A benchmark under way.
pub struct Slices<'a> {
    pub flags: &'a GraphBenchFlags,
    pub settings: &'a [Setting],
    /// The service for each setting, by its index.
    pub services: Vec<Arc<dyn Service>>,
    pub workload: Arc<Workload>,
    pub answers: Answers,
}

/// The results of one setting in one turn.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    pub kinds: BTreeMap<Kind, Tally>,
    pub wall: Duration,
}

/// All turns at one rate.
#[derive(Clone, Debug)]
pub struct AtRate {
    pub rate: f64,
    /// The turns of each setting, by its index.
    pub slices: Vec<Vec<Slice>>,
}

impl Slices<'_> {
    /// Runs every rate, every round and every setting.
    pub async fn run(&mut self) -> Vec<AtRate> {
        let rates = self.flags.rates.clone();
        for setting in 0..self.settings.len() {
            self.slice(setting, rates[0], WARM_UP, u64::MAX).await;
        }
        let length = Duration::from_secs_f64(self.flags.seconds / f64::from(self.flags.rounds));
        let mut all = Vec::new();
        for (index, rate) in rates.into_iter().enumerate() {
            let mut slices = vec![Vec::new(); self.settings.len()];
            for round in 0..self.flags.rounds {
                let seed = self.flags.seed ^ ((index as u64) << 32) ^ u64::from(round);
                let mut order: Vec<usize> = (0..self.settings.len()).collect();
                // The order alternates, so that drift favours no setting.
                if round % 2 == 1 {
                    order.reverse();
                }
                for setting in order {
                    slices[setting].push(self.slice(setting, rate, length, seed).await);
                }
            }
            all.push(AtRate { rate, slices });
        }
        all
    }

    async fn slice(&mut self, setting: usize, rate: f64, length: Duration, seed: u64) -> Slice {
        let schedule = Schedule::new(rate, length, seed);
        let indexes = Arc::new(self.workload.sequence(schedule.due.len(), seed));
        let driven = {
            let (service, workload) = (Arc::clone(&self.services[setting]), Arc::clone(&self.workload));
            let (setting, cache) = (self.settings[setting].clone(), self.flags.cache());
            let indexes = Arc::clone(&indexes);
            let ask = move |index: usize| {
                let ask = &workload.pool[indexes[index]];
                let options = QueryOptions {
                    profile: true,
                    cache: cache.unwrap_or(ask.options.cache),
                    ..setting.apply(&ask.options)
                };
                answer(Arc::clone(&service), ask.clone(), options)
            };
            drive(schedule, ask).await
        };
        self.count(driven, &indexes)
    }

    fn count(&mut self, driven: OpenLoopResult<Result<QueryAnswer, QueryError>>, indexes: &[usize]) -> Slice {
        let mut slice = Slice { wall: driven.wall, ..Slice::default() };
        for observation in driven.observations {
            let index = indexes[observation.index];
            let tally = slice.kinds.entry(self.workload.pool[index].kind).or_default();
            match observation.outcome {
                Some(Ok(answered)) => {
                    tally.on_answer(observation.latency, observation.lag, answered.profile.as_ref());
                    if !answered.complete || !self.answers.note(index, fingerprint(&answered.answer)) {
                        tally.wrong += 1;
                    }
                }
                Some(Err(error)) => tally.on_error(format!("{}: {error}", error.code())),
                None => tally.on_error("not sent: too many queries in flight".to_owned()),
            }
        }
        slice
    }
}

async fn answer(
    service: Arc<dyn Service>,
    ask: PlannedQuery,
    options: QueryOptions,
) -> Result<QueryAnswer, QueryError> {
    service.query(&ask.graph, &ask.query, &options).await
}

/// The first answer to each query. All later answers must be equal to it, and those that can be computed must be correct.
#[derive(Debug)]
pub struct Answers {
    first: Vec<Option<u64>>,
    pub checked: u64,
    /// The number of distinct queries whose answers were also computed from the lists.
    pub computed: u64,
    /// The number of first answers that differ from the computed ones, and of answers that differ from the first.
    pub wrong: u64,
}

impl Answers {
    pub fn new(queries: usize) -> Self {
        Self { first: vec![None; queries], checked: 0, computed: 0, wrong: 0 }
    }

    /// Whether an answer is equal to the first one to this query.
    pub fn note(&mut self, index: usize, answer: u64) -> bool {
        self.checked += 1;
        let same = *self.first[index].get_or_insert(answer) == answer;
        self.wrong += u64::from(!same);
        same
    }

    /// Whether this query was answered.
    pub fn is_known(&self, connected: usize) -> bool {
        self.first[connected].is_some()
    }

    /// Compares the first answer with the correct one.
    pub fn expect(&mut self, index: usize, right: u64) {
        self.computed += 1;
        self.wrong += u64::from(self.first[index] != Some(right));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_compared_with_the_first_and_that_with_the_right_one() {
        let mut answers = Answers::new(3);
        assert!(answers.note(0, 7) && answers.note(0, 7) && !answers.note(0, 8));
        assert!(answers.note(2, 1));
        answers.expect(0, 7);
        answers.expect(2, 2);
        assert_eq!((answers.checked, answers.computed, answers.wrong), (4, 2, 2));
        assert!(!answers.is_known(1));
    }
}
