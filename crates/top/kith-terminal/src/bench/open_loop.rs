//! An open loop: queries are sent when they are due, whether or not earlier ones were answered, and latency counts from
//! that time. A closed loop would wait during every stall, and thus hardly measure it.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, sync::mpsc};

/// The most queries in flight. A system that is this far behind is overloaded, whatever happens next.
const IN_FLIGHT_MAX: usize = 4_096;

/// The time at which each query is due, from the start.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The times from the start, ascending.
    pub due: Vec<Duration>,
}

impl Schedule {
    /// Poisson arrivals at `rate` per second for the given time, as many independent users cause them. Equal seeds give
    /// equal schedules.
    pub fn new(rate: f64, length: Duration, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut due = Vec::new();
        let mut at = 0.0;
        loop {
            let share: f64 = rng.random();
            at += -(1.0 - share).ln() / rate;
            if length.as_secs_f64() <= at {
                return Self { due };
            }
            due.push(Duration::from_secs_f64(at));
        }
    }
}

/// The outcome of one query.
#[derive(Debug)]
pub struct Observation<T> {
    /// Its index in the schedule.
    pub index: usize,
    /// The latency, from when the query was due.
    pub latency: Duration,
    /// The time between when the request was due and when it was sent.
    pub lag: Duration,
    /// `None` if it was not sent, because too many were in flight.
    pub outcome: Option<T>,
}

/// The outcomes of all queries.
#[derive(Debug)]
pub struct OpenLoopResult<T> {
    /// One for each query, in no order.
    pub observations: Vec<Observation<T>>,
    /// The time from the start to the last answer.
    pub wall: Duration,
}

/// Calls `ask(index)` when each query is due, and waits for all answers.
pub async fn drive<T, F>(schedule: Schedule, ask: impl Fn(usize) -> F + Send + 'static) -> OpenLoopResult<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let started = Instant::now();
    let count = schedule.due.len();
    let runtime = Handle::current();
    // A separate thread is used because the runtime's timers have a resolution of a millisecond.
    let pacer = thread::spawn(move || pace(&schedule, started, &runtime, &sender, ask));
    let mut observations = Vec::with_capacity(count);
    while let Some(observation) = receiver.recv().await {
        observations.push(observation);
    }
    let wall = started.elapsed();
    // The thread ended before the channel did.
    let _ = pacer.join();
    OpenLoopResult { observations, wall }
}

fn pace<T, F>(
    schedule: &Schedule,
    started: Instant,
    runtime: &Handle,
    sender: &mpsc::UnboundedSender<Observation<T>>,
    ask: impl Fn(usize) -> F,
) where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let in_flight = Arc::new(AtomicUsize::new(0));
    for (index, due) in schedule.due.iter().enumerate() {
        let due = started + *due;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let lag = due.elapsed();
        if IN_FLIGHT_MAX <= in_flight.load(Ordering::Relaxed) {
            let _ = sender.send(Observation { index, latency: lag, lag, outcome: None });
            continue;
        }
        in_flight.fetch_add(1, Ordering::Relaxed);
        let (sender, in_flight, asked) = (sender.clone(), Arc::clone(&in_flight), ask(index));
        runtime.spawn(async move {
            let outcome = asked.await;
            let latency = due.elapsed();
            in_flight.fetch_sub(1, Ordering::Relaxed);
            let _ = sender.send(Observation { index, latency, lag, outcome: Some(outcome) });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_have_their_rate_and_repeat() {
        let schedule = Schedule::new(500.0, Duration::from_secs(20), 3);
        assert!((9_500..10_500).contains(&schedule.due.len()), "{}", schedule.due.len());
        assert!(schedule.due.is_sorted());
        assert_eq!(schedule.due, Schedule::new(500.0, Duration::from_secs(20), 3).due);
    }

    #[test]
    fn every_query_is_observed_once() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let schedule = Schedule::new(2_000.0, Duration::from_millis(50), 1);
        let count = schedule.due.len();
        let driven = runtime.block_on(drive(schedule, async |index| index));
        let mut seen: Vec<usize> = driven.observations.iter().filter_map(|seen| seen.outcome).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..count).collect::<Vec<_>>());
        assert!(driven.observations.iter().all(|seen| seen.lag <= seen.latency));
    }
}
