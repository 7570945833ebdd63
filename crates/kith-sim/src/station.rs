//! A queue with workers: the processor of a node, or of a client.
//!
//! First come, first served, and a job is never interrupted: Kith's nodes and clients
//! run a request's computation to its end on one of a few threads. (Sharing the processor
//! would help short requests behind long ones, and flatter policies that make long ones.)

use std::collections::VecDeque;
use std::time::Duration;

/// Jobs that wait for one of a few workers.
#[derive(Debug)]
pub struct Station<J> {
    workers: usize,
    busy: usize,
    waiting: VecDeque<(J, Duration)>,
    worked: Duration,
}

impl<J> Station<J> {
    /// An idle station.
    ///
    /// # Panics
    /// If it has no worker.
    pub fn new(workers: usize) -> Self {
        assert!(0 < workers, "a station needs a worker");
        Self { workers, busy: 0, waiting: VecDeque::new(), worked: Duration::ZERO }
    }

    /// A job comes. It is given back, with its length, if it starts at once.
    pub fn arrive(&mut self, job: J, length: Duration) -> Option<(J, Duration)> {
        if self.busy == self.workers {
            self.waiting.push_back((job, length));
            return None;
        }
        self.busy += 1;
        self.worked += length;
        Some((job, length))
    }

    /// A job ends. The next one that is still wanted starts.
    pub fn end(&mut self, mut is_wanted: impl FnMut(&J) -> bool) -> Option<(J, Duration)> {
        while let Some((job, length)) = self.waiting.pop_front() {
            if is_wanted(&job) {
                self.worked += length;
                return Some((job, length));
            }
        }
        self.busy -= 1;
        None
    }

    /// Everything is lost.
    pub fn reset(&mut self) {
        self.busy = 0;
        self.waiting.clear();
    }

    /// Whether nothing runs and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.busy == 0 && self.waiting.is_empty()
    }

    /// The lengths of all jobs started, summed.
    pub fn worked(&self) -> Duration {
        self.worked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_millis(1);

    #[test]
    fn as_many_run_as_there_are_workers_and_the_rest_wait_their_turn() {
        let mut station = Station::new(2);
        let started: Vec<_> = (0..5).filter_map(|job| station.arrive(job, LENGTH)).collect();
        assert_eq!(started, [(0, LENGTH), (1, LENGTH)]);
        assert_eq!(station.end(|_| true), Some((2, LENGTH)));
        assert_eq!(station.end(|job| *job != 3), Some((4, LENGTH)), "a job that nobody wants is skipped");
        assert_eq!((station.end(|_| true), station.end(|_| true)), (None, None));
        assert!(station.is_idle());
        assert_eq!(station.worked(), 4 * LENGTH);
    }
}
