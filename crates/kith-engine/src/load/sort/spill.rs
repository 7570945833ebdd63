//! Sorts full buffers and writes them as runs: in place, or on a thread of its own.

use super::scratch::{Run, Scratch};
use super::{SortError, SortOptions, SortRecord};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// What becomes of full buffers.
pub(super) enum Spiller<R> {
    /// Sorted and written by the caller.
    Here { scratch: Scratch, runs: Vec<Run> },
    /// Handed to a thread, which hands the emptied buffer back.
    Thread(Worker<R>),
}

type Written = Result<(Scratch, Vec<Run>), SortError>;

pub(super) struct Worker<R> {
    full: SyncSender<Vec<R>>,
    emptied: Receiver<Vec<R>>,
    /// `None` once it has failed.
    thread: Option<JoinHandle<Written>>,
    /// Buffers that the thread owes; the caller has the other one of two.
    owed: usize,
}

impl<R: SortRecord> Spiller<R> {
    pub(super) fn start(options: &SortOptions) -> Result<Self, SortError> {
        let scratch = Scratch::create::<R>(options)?;
        if options.threads < 2 {
            return Ok(Spiller::Here { scratch, runs: Vec::new() });
        }
        let (full, work) = sync_channel(0);
        let (back, emptied) = channel();
        let thread = thread::Builder::new()
            .name("kith-load-sort".to_owned())
            .spawn(move || sort_and_write(scratch, &work, &back))
            .map_err(|source| SortError::Io { dir: options.scratch_dir.clone(), source })?;
        Ok(Spiller::Thread(Worker { full, emptied, thread: Some(thread), owed: 0 }))
    }

    /// Takes a full buffer and gives an empty one, possibly without any capacity.
    pub(super) fn spill(&mut self, mut buffer: Vec<R>) -> Result<Vec<R>, SortError> {
        match self {
            Spiller::Here { scratch, runs } => {
                runs.extend(write_sorted(scratch, &mut buffer)?);
                Ok(buffer)
            }
            Spiller::Thread(worker) => worker.spill(buffer),
        }
    }

    /// Waits for the runs that are being written.
    pub(super) fn finish(self) -> Written {
        match self {
            Spiller::Here { scratch, runs } => Ok((scratch, runs)),
            Spiller::Thread(Worker { full, thread, .. }) => {
                drop(full);
                join(thread)
            }
        }
    }
}

impl<R: SortRecord> Worker<R> {
    fn spill(&mut self, buffer: Vec<R>) -> Result<Vec<R>, SortError> {
        let sent = self.full.send(buffer).is_ok();
        self.owed += 1;
        if sent && self.owed < 2 {
            return Ok(Vec::new());
        }
        self.owed -= 1;
        match self.emptied.recv() {
            Ok(buffer) if sent => Ok(buffer),
            // The thread is gone, and only an error makes it go before the channel closes.
            _ => Err(join(self.thread.take()).err().expect("the sorting thread ends early only in error")),
        }
    }
}

fn join<T>(thread: Option<JoinHandle<T>>) -> T {
    let thread = thread.expect("a sort that has failed is not continued");
    thread.join().expect("the sorting thread does not panic")
}

fn sort_and_write<R: SortRecord>(
    mut scratch: Scratch,
    work: &Receiver<Vec<R>>,
    back: &Sender<Vec<R>>,
) -> Written {
    let mut runs = Vec::new();
    for mut buffer in work {
        runs.extend(write_sorted(&mut scratch, &mut buffer)?);
        // Nobody waits for the last buffers.
        let _ = back.send(buffer);
    }
    Ok((scratch, runs))
}

fn write_sorted<R: SortRecord>(scratch: &mut Scratch, buffer: &mut Vec<R>) -> Result<Option<Run>, SortError> {
    if buffer.is_empty() {
        return Ok(None);
    }
    buffer.sort_unstable();
    let mut records = buffer.drain(..);
    scratch.write_run(|| Ok(records.next())).map(Some)
}
