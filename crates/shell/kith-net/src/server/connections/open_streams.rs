//! How many HTTP/2 streams of a connection are open, and how many of them wait for their tasks: whether the connection may be
//! read.

use futures::task::AtomicWaker;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll},
};

/// How many requests of one connection may be under way; the peer holds back further ones.
pub(crate) const STREAMS_MAX: u32 = 512;
/// While this many streams of a connection wait for their first turn, it is not read.
pub(super) const STARTING_MAX: usize = 32;
/// While this many streams of a connection have a task, it is not read: more than may be under way, so some were cancelled
/// and their tasks have not noticed yet.
pub(super) const TASKS_MAX: usize = STREAMS_MAX as usize + STARTING_MAX;

/// The number of open streams of one connection.
#[derive(Debug, Default)]
pub(super) struct OpenStreams {
    /// Those whose tasks have not had their first turn.
    starting: AtomicUsize,
    /// Those that have a task.
    open: AtomicUsize,
    reader: AtomicWaker,
}

impl OpenStreams {
    /// Ready unless too many streams wait for their tasks; the waker is called once they do not any more.
    pub fn poll_few(&self, cx: &Context<'_>) -> Poll<()> {
        if self.are_few() {
            return Poll::Ready(());
        }
        self.reader.register(cx.waker());
        // One may have ended in between.
        if self.are_few() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn are_few(&self) -> bool {
        self.starting.load(Ordering::Acquire) < STARTING_MAX && self.open.load(Ordering::Acquire) < TASKS_MAX
    }

    /// Counts a stream that gets a task.
    pub fn opened(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.starting.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that the task of a stream has its first turn.
    pub fn started(&self) {
        if self.starting.fetch_sub(1, Ordering::AcqRel) == STARTING_MAX {
            self.reader.wake();
        }
    }

    /// Notes that a stream has ended, which [`started`](Self::started) before.
    pub fn ended(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == TASKS_MAX {
            self.reader.wake();
        }
    }
}
