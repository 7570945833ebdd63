//! Tasks in virtual time. They are polled in the order in which they were woken, so a run depends only on its seed.

use super::Shared;
use crate::Agenda;
use kith_types::Timestamp;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskId(u64);

/// The process in which a task runs. The tasks of a node end when the node crashes, and make no progress while it is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// A client or a router. These never fail.
    Outside,
    Node {
        index: usize,
        incarnation: u32,
    },
}

/// The running task, and the tasks that are to be polled next. Clones share the same state.
#[derive(Clone, Default)]
pub(super) struct WakeQueue(Rc<(Cell<TaskId>, RefCell<Vec<TaskId>>)>);

impl WakeQueue {
    pub(super) fn wake(&self, task: TaskId) {
        self.0.1.borrow_mut().push(task);
    }

    pub(super) fn current(&self) -> TaskId {
        self.0.0.get()
    }
}

/// An event of the agenda.
enum AgendaItem {
    Poll(TaskId),
    Do(Box<dyn FnOnce(&Shared)>),
}

struct Task {
    process: Process,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

/// The virtual time of a run, and its tasks.
#[derive(Default)]
pub(super) struct Executor {
    agenda: RefCell<Agenda<AgendaItem>>,
    pub(super) wakes: WakeQueue,
    last: Cell<u64>,
    tasks: RefCell<BTreeMap<TaskId, Task>>,
}

impl Executor {
    /// Starts a task.
    pub(super) fn spawn(&self, process: Process, future: impl Future<Output = ()> + 'static) {
        let id = TaskId(self.last.get() + 1);
        self.last.set(id.0);
        self.tasks.borrow_mut().insert(id, Task { process, future: Box::pin(future) });
        self.wakes.wake(id);
    }

    /// Carries out `work` after a delay, even if the process that asked for it has ended by then.
    pub(super) fn after(&self, delay: Duration, work: impl FnOnce(&Shared) + 'static) {
        let at = self.now() + delay;
        self.agenda.borrow_mut().at(at, AgendaItem::Do(Box::new(work)));
    }

    pub(super) fn now(&self) -> Timestamp {
        self.agenda.borrow().now()
    }

    /// Runs the simulation until the time `until`.
    pub(super) fn run_until(&self, world: &Shared, until: Timestamp) {
        loop {
            self.poll_woken(world);
            let happening = self.agenda.borrow_mut().take();
            match happening {
                None => return,
                Some(AgendaItem::Poll(task)) => self.poll(world, task),
                Some(AgendaItem::Do(work)) => work(world),
            }
            if until <= self.now() {
                return;
            }
        }
    }

    fn poll_woken(&self, world: &Shared) {
        loop {
            let woken = std::mem::take(&mut *self.wakes.0.1.borrow_mut());
            if woken.is_empty() {
                return;
            }
            woken.into_iter().for_each(|task| self.poll(world, task));
        }
    }

    fn poll(&self, world: &Shared, id: TaskId) {
        let Some(process) = self.tasks.borrow().get(&id).map(|task| task.process) else { return };
        if let Process::Node { index, .. } = process
            && let Some(until) = world.frozen_until(index)
        {
            self.agenda.borrow_mut().at(until, AgendaItem::Poll(id));
            return;
        }
        let task = self.tasks.borrow_mut().remove(&id);
        let Some(mut task) = task else { return };
        self.wakes.0.0.set(id);
        if task.future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.tasks.borrow_mut().insert(id, task);
        }
    }

    /// Ends all tasks of a process.
    pub(super) fn kill(&self, process: Process) {
        let mut tasks = self.tasks.borrow_mut();
        let dead: Vec<TaskId> =
            tasks.iter().filter(|(_, task)| task.process == process).map(|(id, _)| *id).collect();
        let dead: Vec<Task> = dead.iter().filter_map(|id| tasks.remove(id)).collect();
        drop(tasks);
        drop(dead);
    }

    /// Drops all tasks and all future events.
    pub(super) fn end(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        drop(tasks);
        let agenda = std::mem::take(&mut *self.agenda.borrow_mut());
        drop(agenda);
    }

    pub(super) fn sleep(&self, time: Duration) -> Sleep<'_> {
        Sleep { executor: self, until: self.now() + time, is_set: false }
    }

    /// Waits for a future, but not for longer than `timeout`. Returns `None` if the time is over.
    pub(super) fn within<F: Future + Unpin>(&self, timeout: Duration, future: F) -> TimedFuture<'_, F> {
        TimedFuture { sleep: self.sleep(timeout), future }
    }
}

pub(super) struct Sleep<'a> {
    executor: &'a Executor,
    until: Timestamp,
    is_set: bool,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.until <= self.executor.now() {
            return Poll::Ready(());
        }
        if !self.is_set {
            self.is_set = true;
            let task = self.executor.wakes.current();
            self.executor.agenda.borrow_mut().at(self.until, AgendaItem::Poll(task));
        }
        Poll::Pending
    }
}

/// A future and the time that it may take: `None` if it takes longer.
pub(super) struct TimedFuture<'a, F> {
    sleep: Sleep<'a>,
    future: F,
}

impl<F: Future + Unpin> Future for TimedFuture<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if let Poll::Ready(value) = Pin::new(&mut self.future).poll(context) {
            return Poll::Ready(Some(value));
        }
        Pin::new(&mut self.sleep).poll(context).map(|()| None)
    }
}
