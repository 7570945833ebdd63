//! Timers for requests that may become late. Nearly all of them are cancelled before they fire.
//!
//! A timer of the runtime that becomes the next one due wakes the thread that waits for sockets, so that it waits less
//! long. That costs a system call and a turn of that thread, once or twice per query. Here a separate thread waits. It
//! checks the clock every millisecond while alarms are being set, so that setting an alarm costs a lock and an entry in a
//! map. It waits exactly for alarms that are due sooner. Netty's hashed wheel timer is the same idea; it drives the retries
//! of the systems that Venice's readers are built on.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};
use tokio::time::Sleep;

/// The longest sleep of the thread while alarms are being set. An alarm that is due later than this never rings late
/// because of the sleep.
const TICK: Duration = Duration::from_millis(1);
/// The thread goes idle this long after the last alarm, and then sleeps until the next alarm is set.
const LINGER: Duration = Duration::from_millis(20);

/// The alarms of this process.
static BOARD: Board = Board {
    state: Mutex::new(State { alarms: BTreeMap::new(), last: 0, is_idle: false }),
    set: Condvar::new(),
};

/// Whether the thread of the board runs. It lives as long as the process. If it cannot be started, alarms use timers of the
/// runtime.
static IS_KEPT: LazyLock<bool> = LazyLock::new(|| {
    let spawned = thread::Builder::new().name("kith-alarms".to_owned()).spawn(|| BOARD.keep());
    spawned
        .inspect_err(|error| tracing::warn!(%error, "no thread for alarms can be started: using timers of the runtime"))
        .is_ok()
});

struct Board {
    state: Mutex<State>,
    /// The condition that is notified when an alarm is set while the thread is idle.
    set: Condvar,
}

struct State {
    /// The wakers of alarms, ordered by due time and then by number.
    alarms: BTreeMap<(Instant, u64), Waker>,
    last: u64,
    /// Whether the thread sleeps until it is notified.
    is_idle: bool,
}

impl Board {
    /// The loop of the thread.
    fn keep(&self) {
        let mut state = self.lock();
        let mut busy = Instant::now();
        loop {
            let now = Instant::now();
            if let Some(first) = state.alarms.first_entry()
                && first.key().0 <= now
            {
                let waker = first.remove();
                drop(state);
                waker.wake();
                state = self.lock();
                continue;
            }
            let next = state.alarms.first_key_value().map(|((at, _), _)| at.saturating_duration_since(now));
            if next.is_some() {
                busy = now;
            }
            if next.is_none() && LINGER <= now.saturating_duration_since(busy) {
                state.is_idle = true;
                self.set.wait(&mut state);
                state.is_idle = false;
                busy = Instant::now();
                continue;
            }
            let nap = next.unwrap_or(TICK).min(TICK);
            self.set.wait_for(&mut state, nap);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// One alarm, which may be set repeatedly. Dropping it cancels it.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    at: Option<Instant>,
    /// The key of its entry on the board.
    key: Option<(Instant, u64)>,
    /// The timer that is used if the board has no thread.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Sets the alarm to an instant, or cancels it with `None`. Replaces the earlier setting.
    pub fn set(&mut self, at: Option<Instant>) {
        if self.at != at {
            self.take_back();
            self.at = at;
        }
    }

    /// Waits until the alarm rings, which happens once. Waits forever if it is not set.
    pub async fn rings(&mut self) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        if at <= Instant::now() {
            self.set(None);
            return Poll::Ready(());
        }
        if !*IS_KEPT {
            return self.poll_timer(at, cx);
        }
        // Dropping a waker may end its task, which may cancel alarms of its own. So it is never dropped under the lock.
        let mut waker = cx.waker().clone();
        let mut state = BOARD.lock();
        match self.key.and_then(|key| state.alarms.get_mut(&key)) {
            Some(before) => std::mem::swap(before, &mut waker),
            None => {
                state.last += 1;
                let key = (at, state.last);
                state.alarms.insert(key, waker);
                self.key = Some(key);
                if state.is_idle {
                    BOARD.set.notify_one();
                }
                return Poll::Pending;
            }
        }
        drop(state);
        Poll::Pending
    }

    fn poll_timer(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at.into())));
        let rung = timer.as_mut().poll(cx);
        if rung.is_ready() {
            self.set(None);
        }
        rung
    }

    fn take_back(&mut self) {
        self.timer = None;
        if let Some(key) = self.key.take() {
            let waker = BOARD.lock().alarms.remove(&key);
            drop(waker);
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.take_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, task::Wake};

    const SOON: Duration = Duration::from_millis(5);
    const FAR: Duration = Duration::from_secs(3_600);

    fn rung_of(alarm: &mut Alarm) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(alarm.rings());
    }

    #[test]
    fn an_alarm_rings_and_not_before_its_time() {
        for wait in [Duration::ZERO, Duration::from_micros(300), SOON, 8 * LINGER] {
            let at = Instant::now() + wait;
            let mut alarm = Alarm::default();
            alarm.set(Some(at));
            rung_of(&mut alarm);
            assert!(at <= Instant::now(), "{wait:?}");
        }
    }

    #[test]
    fn one_that_is_set_anew_rings_at_the_new_time_alone() {
        let mut alarm = Alarm::default();
        alarm.set(Some(Instant::now() + FAR));
        let waker = Waker::noop();
        assert!(alarm.poll(&mut Context::from_waker(waker)).is_pending());
        let at = Instant::now() + SOON;
        alarm.set(Some(at));
        rung_of(&mut alarm);
        assert!(at <= Instant::now());
        assert!(alarm.poll(&mut Context::from_waker(waker)).is_pending(), "it rings once");
    }

    #[test]
    fn what_is_taken_back_leaves_nothing() {
        let mut alarm = Alarm::default();
        alarm.set(Some(Instant::now() + FAR));
        assert!(alarm.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let key = alarm.key.expect("it is on the board");
        assert!(BOARD.lock().alarms.contains_key(&key));
        drop(alarm);
        assert!(!BOARD.lock().alarms.contains_key(&key));
    }

    #[test]
    fn without_the_thread_a_timer_of_the_runtime_rings() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let at = Instant::now() + SOON;
        let mut alarm = Alarm::default();
        alarm.set(Some(at));
        runtime.block_on(std::future::poll_fn(|cx| alarm.poll_timer(at, cx)));
        assert!(at <= Instant::now());
        assert!(alarm.at.is_none() && alarm.timer.is_none(), "it rings once");
    }

    #[test]
    fn a_waker_that_takes_back_another_alarm_when_it_is_dropped_holds_up_nobody() {
        struct Owner(#[expect(dead_code, reason = "it is dropped")] Mutex<Alarm>);
        impl Wake for Owner {
            fn wake(self: Arc<Self>) {}
        }
        let set = |waker: Waker| {
            let mut alarm = Alarm::default();
            alarm.set(Some(Instant::now() + FAR));
            assert!(alarm.poll(&mut Context::from_waker(&waker)).is_pending());
            alarm
        };
        let owner = || Waker::from(Arc::new(Owner(Mutex::new(set(Waker::noop().clone())))));
        drop(set(owner()));
        let mut alarm = set(owner());
        assert!(alarm.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }

    #[test]
    fn many_ring_each_in_its_time() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
        let started = Instant::now();
        runtime.block_on(async {
            let waits = (0..200u32).map(|index| Duration::from_micros(u64::from(index * 7_919 % 20_000)));
            let ringing = waits.map(|wait| {
                tokio::spawn(async move {
                    let mut alarm = Alarm::default();
                    alarm.set(Some(started + wait));
                    alarm.rings().await;
                    assert!(started + wait <= Instant::now());
                })
            });
            for rung in ringing.collect::<Vec<_>>() {
                rung.await.expect("it rings");
            }
        });
    }
}
