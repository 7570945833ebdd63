//! Work that waits for others, so that no request keeps many more waiting: turns for long computations that give way, and
//! slots for work that is bounded from its start to its end.

mod queue;

pub use queue::{Share, WorkKind};

use parking_lot::{Mutex, MutexGuard};
use queue::{LONG, Queue, QueuePosition};
use std::{
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll, Waker, ready},
    thread::available_parallelism,
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    task::block_in_place,
};

/// As many pieces of long work may be dropped at once while other threads serve the connections.
const DROPPED_AT_ONCE: usize = 4;
/// The number of evaluations that a node runs at a time: this many for each processor, and no fewer than the minimum.
const EVALUATIONS_PER_PROCESSOR: usize = 4;
const EVALUATIONS_MIN: usize = 16;
/// The number of long queries that a router works on at a time, for each processor. It is enough to keep nodes busy while the
/// router merges what they have answered.
const LONG_QUERIES_PER_PROCESSOR: usize = 16;
/// The number of networks that a session fetches at a time, for each processor. Short answers wait behind theirs.
const NETWORKS_PER_PROCESSOR: usize = 8;

static DROPS: Semaphore = Semaphore::const_new(DROPPED_AT_ONCE);

tokio::task_local! {
    static SHARE: Share;
    /// The time that the work has waited for its turns.
    static WAITED: Duration;
}

impl Share {
    /// The share that the turns of this task count for; a new one outside of [`Share::scope`].
    pub fn here() -> Self {
        SHARE.try_with(Self::clone).unwrap_or_default()
    }

    /// Does work whose turns count for this share.
    pub async fn scope<T>(&self, work: impl Future<Output = T>) -> T {
        SHARE.scope(self.clone(), work).await
    }
}

/// The queue of one kind of work of this process.
fn queue(kind: WorkKind) -> MutexGuard<'static, Queue<Waker>> {
    static QUEUES: OnceLock<[Mutex<Queue<Waker>>; 4]> = OnceLock::new();
    let processors = || available_parallelism().map_or(1, usize::from);
    let queues = QUEUES.get_or_init(|| {
        // In the order of `WorkKind`.
        [
            // Half of the processors at most are busy with turns.
            (WorkKind::Turns, (processors() / 2).max(1)),
            // Some of them wait for pages of files. Many more would keep the threads that serve connections from running.
            (WorkKind::Evaluations, (EVALUATIONS_PER_PROCESSOR * processors()).max(EVALUATIONS_MIN)),
            (WorkKind::LongQueries, LONG_QUERIES_PER_PROCESSOR * processors()),
            (WorkKind::Networks, NETWORKS_PER_PROCESSOR * processors()),
        ]
        .map(|(kind, slots)| Mutex::new(Queue::new(kind, slots)))
    });
    queues[kind as usize].lock()
}

/// A caller of one kind of work, which may wait for a turn or slot.
#[derive(Debug)]
struct Waiting {
    kind: WorkKind,
    share: Share,
    /// The position in the queue while it waits, and the time since which it waits.
    position: Option<(QueuePosition, Instant)>,
    /// The time that it has waited so far.
    waited: Duration,
}

impl Waiting {
    fn new(kind: WorkKind) -> Self {
        Self { kind, share: Share::here(), position: None, waited: Duration::ZERO }
    }

    /// Waits for a turn or slot. Once it is there, the caller has to end it in the queue.
    fn poll_slot(&mut self, context: &Context<'_>) -> Poll<()> {
        let waker = || context.waker().clone();
        let mut queue = queue(self.kind);
        match self.position {
            None => self.position = queue.take(&self.share, waker).map(|position| (position, Instant::now())),
            Some((waiting, since)) if queue.is_called(waiting, waker) => {
                self.position = None;
                self.waited += since.elapsed();
            }
            Some(_) => {}
        }
        if self.position.is_none() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn leave(&mut self) {
        if let Some((waiting, _)) = self.position.take() {
            let next = queue(self.kind).leave(waiting);
            next.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A slot, which is free again when this is dropped.
#[derive(Debug)]
pub struct Slot {
    kind: WorkKind,
    share: Share,
    began: Instant,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = queue(self.kind).end(&self.share, self.began.elapsed());
        next.into_iter().for_each(Waker::wake);
    }
}

/// Waits for one of the slots of a kind of work. Connections share them fairly ([`Share`]). Work that waits has not begun, so it
/// keeps no memory; dropping the future leaves the queue.
pub async fn slot(kind: WorkKind) -> Slot {
    let mut waiting = Waiting::new(kind);
    std::future::poll_fn(|context| waiting.poll_slot(context)).await;
    Slot { kind, share: waiting.share.clone(), began: Instant::now() }
}

/// Does work that computes for long, in turns. A turn lasts from one point at which the work yields or waits to the next.
/// Few turns of a process run at a time, and connections share them fairly ([`Share`]), so others wait for a few turns only,
/// however much work there is. While turns are long, another thread serves the connections during each, and the handover
/// costs some time itself.
///
/// The work must not contain another `in_turns`, which would wait for the turn that it holds.
pub async fn in_turns<T>(work: impl Future<Output = T> + Send) -> T {
    InTurns::new(Duration::ZERO, work).await
}

/// Does work that may compute for long: in turns, as [`in_turns`] does, once it has computed for longer than a turn should take.
/// Until then it costs hardly more than without turns, so this suits work that is mostly short.
pub async fn in_turns_once_long<T>(work: impl Future<Output = T> + Send) -> T {
    InTurns::new(LONG, work).await
}

/// The time that the work in turns that calls this has waited for its turns so far; zero outside of such work. A wait is part of
/// the time in which the work waited for others, such as nodes, without being theirs.
pub fn waited_for_turns() -> Duration {
    WAITED.try_with(|waited| *waited).unwrap_or_default()
}

/// Yields, so that others get their turn.
pub async fn give_way() {
    // `yield_now` of tokio would put the task behind all others twice: it waits for a turn after it.
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

struct InTurns<'a, T> {
    /// `None` once the work is done.
    work: Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>,
    waiting: Waiting,
    /// The time for which the work computes without turns at first.
    free: Duration,
    /// The time for which the work has computed so far.
    spent: Duration,
}

impl<'a, T> InTurns<'a, T> {
    fn new(free: Duration, work: impl Future<Output = T> + Send + 'a) -> Self {
        let work = Some(Box::pin(work) as _);
        Self { work, waiting: Waiting::new(WorkKind::Turns), free, spent: Duration::ZERO }
    }

    /// Waits for a turn. Returns whether it may be long.
    fn poll_turn(&mut self, context: &Context<'_>) -> Poll<bool> {
        ready!(self.waiting.poll_slot(context));
        Poll::Ready(LONG <= self.spent || queue(WorkKind::Turns).is_wary())
    }
}

impl<T> Future for InTurns<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let needs_turn = self.free <= self.spent;
        let is_long = needs_turn && ready!(self.poll_turn(context));
        let Self { work, waiting, spent, .. } = &mut *self;
        let began = Instant::now();
        let _turn = needs_turn.then(|| Slot { kind: WorkKind::Turns, share: waiting.share.clone(), began });
        let unfinished = work.as_mut().expect("a future is not polled after its end");
        let mut poll = || WAITED.sync_scope(waiting.waited, || unfinished.as_mut().poll(context));
        let polled = elsewhere_if(is_long, &mut poll);
        *spent += began.elapsed();
        if polled.is_ready() {
            *work = None;
        }
        polled
    }
}

impl<T> Drop for InTurns<'_, T> {
    fn drop(&mut self) {
        self.waiting.leave();
        if let Some(work) = self.work.take() {
            let permit = (LONG <= self.spent).then(|| DROPS.try_acquire().ok()).flatten();
            elsewhere_if(permit.is_some(), || drop(work));
        }
    }
}

/// Does long work while another thread does what else this one has to do, if the runtime can do that.
fn elsewhere_if<T>(is_long: bool, work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match is_long && flavor.is_ok_and(|flavor| flavor == RuntimeFlavor::MultiThread) {
        true => block_in_place(work),
        false => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::most_turns_beside;
    use futures::FutureExt;
    use std::{pin::pin, sync::mpsc, thread};
    use tokio::{runtime, task::JoinSet};

    /// Works for the time of one turn.
    fn work(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {}
    }

    /// Without turns, each of the 20 steps would wait for all 300 tasks.
    #[test]
    fn much_work_keeps_others_waiting_for_few_turns() {
        for turn in [Duration::from_millis(3), Duration::from_millis(200)] {
            let most = most_turns_beside(async move {
                let shares: Vec<Share> = (0..300).map(|_| Share::default()).collect();
                let mut tasks = JoinSet::new();
                for share in shares.clone() {
                    let endless = in_turns(async move {
                        loop {
                            work(turn);
                            give_way().await;
                        }
                    });
                    tasks.spawn(async move { share.scope(endless).await });
                }
                (shares, tasks)
            });
            assert!(most < 600, "turns of {turn:?}: {most}");
        }
    }

    #[test]
    fn work_that_turns_out_to_be_long_keeps_others_waiting_for_few_turns() {
        let most = most_turns_beside(async {
            let shares: Vec<Share> = (0..300).map(|_| Share::default()).collect();
            let mut tasks = JoinSet::new();
            for share in shares.clone() {
                let endless = in_turns_once_long(async {
                    loop {
                        work(Duration::from_millis(3));
                        give_way().await;
                    }
                });
                tasks.spawn(async move { share.scope(endless).await });
            }
            (shares, tasks)
        });
        assert!(most < 600, "{most}");
    }

    #[tokio::test]
    async fn short_work_takes_no_turn() {
        let share = Share::default();
        share.scope(in_turns_once_long(give_way())).await;
        assert_eq!(share.turns(), 0);
        let long = async {
            work(LONG);
            give_way().await;
        };
        share.scope(in_turns_once_long(long)).await;
        assert_eq!(share.turns(), 1);
    }

    #[tokio::test]
    async fn work_knows_how_long_it_has_waited_for_its_turns() {
        let (began, begins) = mpsc::channel();
        let (releases, threads): (Vec<_>, Vec<_>) = (0..available_parallelism().map_or(1, usize::from))
            .map(|_| {
                let ((release, released), began) = (mpsc::channel::<()>(), began.clone());
                let holding = in_turns(async move {
                    began.send(()).expect("the test waits for it");
                    let _ = released.recv();
                });
                let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
                (release, thread::spawn(move || runtime.block_on(holding)))
            })
            .unzip();
        let turns = (threads.len() / 2).max(1);
        begins.iter().take(turns).for_each(drop);
        let mut waiting = pin!(in_turns(async { waited_for_turns() }));
        assert_eq!(waiting.as_mut().now_or_never(), None, "all turns are taken");
        thread::sleep(LONG);
        drop(releases);
        let waited = waiting.await;
        assert!(LONG <= waited, "{waited:?}");
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        assert_eq!(waited_for_turns(), Duration::ZERO, "that was the wait of other work");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_is_dropped_or_panics_passes_its_turn_on() {
        for _ in 0..50 {
            let dropped = tokio::spawn(in_turns(async {
                loop {
                    work(2 * LONG);
                    give_way().await;
                }
            }));
            let panics = tokio::spawn(in_turns(async { panic!("it fails") }));
            tokio::time::sleep(LONG).await;
            dropped.abort();
            assert!(dropped.await.is_err_and(|error| error.is_cancelled()));
            assert!(panics.await.is_err_and(|error| error.is_panic()));
        }
        assert_eq!(in_turns(async { 7 }).await, 7);
    }

    #[tokio::test]
    async fn so_much_is_under_way_and_callers_share_the_slots() {
        let (busy, calm) = (Share::default(), Share::default());
        let mut held = Vec::new();
        let slots = LONG_QUERIES_PER_PROCESSOR * available_parallelism().map_or(1, usize::from);
        for _ in 0..slots {
            held.push(busy.scope(slot(WorkKind::LongQueries)).await);
        }
        let waiting = |share: &Share| {
            let share = share.clone();
            tokio::spawn(async move { share.scope(slot(WorkKind::LongQueries)).await })
        };
        let of_busy: Vec<_> = (0..100).map(|_| waiting(&busy)).collect();
        tokio::task::yield_now().await;
        let of_calm = waiting(&calm);
        let left = waiting(&calm);
        tokio::task::yield_now().await;
        assert!(of_busy.iter().chain([&of_calm]).all(|task| !task.is_finished()));
        left.abort();
        assert!(left.await.is_err());
        held.truncate(slots - 3);
        drop(of_calm.await.expect("a slot, before the many that have waited for longer"));
        drop(held);
        for task in of_busy {
            drop(task.await.expect("a slot"));
        }
    }
}
