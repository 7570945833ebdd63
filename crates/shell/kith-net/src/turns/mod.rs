//! Long computations that give way: turns, so that they keep neither other requests nor one another waiting.

mod queue;

pub use queue::Share;

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

static DROPS: Semaphore = Semaphore::const_new(DROPPED_AT_ONCE);

tokio::task_local! {
    static SHARE: Share;
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

/// The turns of this process. Half of the processors at most are busy with them.
fn turns() -> MutexGuard<'static, Queue<Waker>> {
    static TURNS: OnceLock<Mutex<Queue<Waker>>> = OnceLock::new();
    let turns = || (available_parallelism().map_or(1, usize::from) / 2).max(1);
    TURNS.get_or_init(|| Mutex::new(Queue::new(turns()))).lock()
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
    share: Share,
    /// The position in the queue while the work waits for a turn.
    position: Option<QueuePosition>,
    /// The time for which the work computes without turns at first.
    free: Duration,
    /// The time for which the work has computed so far.
    spent: Duration,
}

/// A turn, which ends when this is dropped.
struct Turn<'a> {
    share: &'a Share,
    began: Instant,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let next = turns().end(self.share, self.began.elapsed());
        next.into_iter().for_each(Waker::wake);
    }
}

impl<'a, T> InTurns<'a, T> {
    fn new(free: Duration, work: impl Future<Output = T> + Send + 'a) -> Self {
        let work = Some(Box::pin(work) as _);
        Self { work, share: Share::here(), position: None, free, spent: Duration::ZERO }
    }

    /// Waits for a turn. Returns whether it may be long.
    fn poll_turn(&mut self, context: &Context<'_>) -> Poll<bool> {
        let waker = || context.waker().clone();
        let mut turns = turns();
        match self.position {
            None => self.position = turns.take(&self.share, waker),
            Some(waiting) if turns.is_called(waiting, waker) => self.position = None,
            Some(_) => {}
        }
        match self.position {
            None => Poll::Ready(LONG <= self.spent || turns.is_wary()),
            Some(_) => Poll::Pending,
        }
    }
}

impl<T> Future for InTurns<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let needs_turn = self.free <= self.spent;
        let is_long = needs_turn && ready!(self.poll_turn(context));
        let Self { work, share, spent, .. } = &mut *self;
        let began = Instant::now();
        let _turn = needs_turn.then(|| Turn { share, began });
        let unfinished = work.as_mut().expect("a future is not polled after its end");
        let polled = elsewhere_if(is_long, || unfinished.as_mut().poll(context));
        *spent += began.elapsed();
        if polled.is_ready() {
            *work = None;
        }
        polled
    }
}

impl<T> Drop for InTurns<'_, T> {
    fn drop(&mut self) {
        if let Some(waiting) = self.position {
            let next = turns().leave(waiting);
            next.into_iter().for_each(Waker::wake);
        }
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
    use tokio::task::JoinSet;

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
}
