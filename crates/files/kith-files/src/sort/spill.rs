//! Sorts full buffers and writes them as runs, on the caller's thread or on a separate one.

use super::scratch::{Run, Scratch};
use super::{SortError, SortOptions};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// A buffer of records that can be written as a run.
pub(crate) trait Spill: Default + Send + 'static {
    /// The payload of a block of its runs, in bytes.
    fn block_bytes(options: &SortOptions) -> usize;

    /// Sorts the buffer, writes it as a run and empties it; `None` if it is empty.
    fn spill(&mut self, scratch: &mut Scratch) -> Result<Option<Run>, SortError>;
}

/// The treatment of full buffers.
pub(crate) enum Spiller<B> {
    /// The caller sorts and writes them.
    Here { scratch: Scratch, runs: Vec<Run> },
    /// A thread sorts and writes them, and returns the emptied buffers.
    Thread(Worker<B>),
}

type Written = Result<(Scratch, Vec<Run>), SortError>;

pub(crate) struct Worker<B> {
    full: SyncSender<B>,
    emptied: Receiver<B>,
    /// `None` after it has failed.
    thread: Option<JoinHandle<Written>>,
    /// The number of buffers that the thread has. The caller has the other one of two.
    owed: usize,
}

impl<B: Spill> Spiller<B> {
    pub(crate) fn start(options: &SortOptions) -> Result<Self, SortError> {
        let scratch = Scratch::create(options, B::block_bytes(options))?;
        if options.threads < 2 {
            return Ok(Spiller::Here { scratch, runs: Vec::new() });
        }
        let (full, work) = sync_channel(0);
        let (back, emptied) = channel();
        let thread = thread::Builder::new()
            .name("kith-sort".to_owned())
            .spawn(move || sort_and_write(scratch, &work, &back))
            .map_err(|source| SortError::Io { dir: options.scratch_dir.clone(), source })?;
        Ok(Spiller::Thread(Worker { full, emptied, thread: Some(thread), owed: 0 }))
    }

    /// Takes a full buffer and returns an empty one, possibly without any capacity.
    pub(crate) fn spill(&mut self, mut buffer: B) -> Result<B, SortError> {
        match self {
            Spiller::Here { scratch, runs } => {
                runs.extend(buffer.spill(scratch)?);
                Ok(buffer)
            }
            Spiller::Thread(worker) => worker.spill(buffer),
        }
    }

    /// Waits until all runs are written.
    pub(crate) fn finish(self) -> Written {
        match self {
            Spiller::Here { scratch, runs } => Ok((scratch, runs)),
            Spiller::Thread(Worker { full, thread, .. }) => {
                drop(full);
                join(thread)
            }
        }
    }
}

impl<B: Spill> Worker<B> {
    fn spill(&mut self, buffer: B) -> Result<B, SortError> {
        let sent = self.full.send(buffer).is_ok();
        self.owed += 1;
        if sent && self.owed < 2 {
            return Ok(B::default());
        }
        self.owed -= 1;
        match self.emptied.recv() {
            Ok(buffer) if sent => Ok(buffer),
            // The thread has ended, and it ends before the channel closes only after an error.
            _ => Err(join(self.thread.take()).err().expect("the sorting thread ends early only in error")),
        }
    }
}

fn join<T>(thread: Option<JoinHandle<T>>) -> T {
    let thread = thread.expect("a sort that has failed is not continued");
    thread.join().expect("the sorting thread does not panic")
}

fn sort_and_write<B: Spill>(mut scratch: Scratch, work: &Receiver<B>, back: &Sender<B>) -> Written {
    let mut runs = Vec::new();
    for mut buffer in work {
        runs.extend(buffer.spill(&mut scratch)?);
        // The last buffers are not needed any more.
        let _ = back.send(buffer);
    }
    Ok((scratch, runs))
}
