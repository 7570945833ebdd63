//! Pulls files from the source into the staged packs, with several threads.

use super::plan::{WantedFile, works};
use super::space::Space;
use super::staging::Staging;
use super::worker::{Worker, WorkerReport};
use super::{FetchError, FetchProgress, OnFetch};
use crate::source::Source;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

/// A fetch under way.
pub(super) struct Pull<'a, 'p> {
    pub(super) source: &'a dyn Source,
    pub(super) progress: &'a mut OnFetch<'p>,
    pub(super) state: FetchProgress,
    pub(super) threads: usize,
    /// Whether an earlier attempt left files to reuse.
    pub(super) resumes: bool,
}

impl Pull<'_, '_> {
    pub(super) fn report(&mut self) -> Result<(), FetchError> {
        if (self.progress)(&self.state).is_break() { Err(FetchError::Cancelled) } else { Ok(()) }
    }

    /// Counts a file that is in place without a request to the source.
    pub(super) fn done(&mut self, bytes: u64, reused: u64) -> Result<(), FetchError> {
        self.state.files_done += 1;
        self.state.bytes_done += bytes;
        self.state.bytes_reused += reused;
        self.report()
    }

    /// Pulls all files, with one thread per concurrent request. Progress is reported on the caller's thread, and no thread
    /// gets ahead of it by more than one piece, so that throttling it throttles all.
    pub(super) fn run(
        &mut self,
        staging: &Staging<'_>,
        space: &Space,
        files: &[WantedFile<'_>],
    ) -> Result<(), FetchError> {
        let queue = Mutex::new(VecDeque::from(works(files)));
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (send, receive) = sync_channel::<WorkerReport>(0);
            let workers: Vec<_> = (0..self.threads.max(1))
                .map(|_| {
                    let steps = send.clone();
                    let (queue, stop, source, resumes) = (&queue, &stop, self.source, self.resumes);
                    scope.spawn(move || {
                        let buffer = Vec::new();
                        let mut worker = Worker { source, staging, space, steps, stop, resumes, buffer };
                        let outcome = worker.work_off(queue);
                        stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                        outcome
                    })
                })
                .collect();
            drop(send);
            let mut reported = Ok(());
            for step in receive {
                self.state.bytes_done += step.bytes;
                self.state.bytes_copied += step.copied;
                self.state.files_done += step.files;
                if reported.is_ok() {
                    reported = self.report();
                    stop.fetch_or(reported.is_err(), Ordering::Relaxed);
                }
            }
            let ended = workers.into_iter().map(|worker| worker.join().expect("a fetch does not panic"));
            let outcomes = ended.filter_map(Result::err).collect();
            reported?;
            first_cause(outcomes).map_or(Ok(()), Err)
        })
    }
}

/// The error that broke a fetch, not one of a thread that only stopped because of it.
fn first_cause(errors: Vec<FetchError>) -> Option<FetchError> {
    errors.into_iter().find(|error| !matches!(error, FetchError::Cancelled))
}
