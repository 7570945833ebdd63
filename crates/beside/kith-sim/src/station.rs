//! A queue with workers: the processor of a node or of a client.
//!
//! Jobs are served in the order of their arrival and are never interrupted, because Kith's nodes and clients run the
//! computation of a request to its end on one of a few threads. (If jobs shared the processor, short requests behind long
//! ones would finish earlier, which would favour policies that make long requests.)

use std::collections::VecDeque;
use std::time::Duration;

/// A queue of jobs that wait for one of a few workers.
#[derive(Debug)]
pub struct Station<J> {
    workers: usize,
    busy: usize,
    waiting: VecDeque<(J, Duration)>,
    worked: Duration,
}

impl<J> Station<J> {
    /// Returns an idle station.
    ///
    /// # Panics
    /// If there are no workers.
    pub fn new(workers: usize) -> Self {
        assert!(0 < workers, "a station needs a worker");
        Self { workers, busy: 0, waiting: VecDeque::new(), worked: Duration::ZERO }
    }

    /// Adds a job. If a worker is idle, the job starts at once and is returned with its length; otherwise it waits.
    pub fn arrive(&mut self, job: J, length: Duration) -> Option<(J, Duration)> {
        if self.busy == self.workers {
            self.waiting.push_back((job, length));
            return None;
        }
        self.busy += 1;
        self.worked += length;
        Some((job, length))
    }

    /// Ends a job. Starts the next waiting job that is still wanted, and returns it with its length.
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

    /// Drops all jobs, running and waiting.
    pub fn reset(&mut self) {
        self.busy = 0;
        self.waiting.clear();
    }

    /// Whether no job runs and none waits.
    pub fn is_idle(&self) -> bool {
        self.busy == 0 && self.waiting.is_empty()
    }

    /// Returns the total length of all jobs that were started.
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
