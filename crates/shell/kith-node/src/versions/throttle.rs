//! A blocking throttle around [`RateLimiter`]. All fetches, copies and repairs of a node share one.

use kith_engine::{MANIFEST_NAME, ObjectError, PATCH_NAME, Source};
use kith_routing::RateLimiter;
use kith_types::Timestamp;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    num::NonZeroU64,
    ops::ControlFlow,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// The interval at which a waiting thread checks whether the node stops.
const NAP: Duration = Duration::from_millis(50);

/// A limit in bytes per second for all threads together. It can be changed while they wait.
#[derive(Debug)]
pub struct Throttle {
    started: Instant,
    state: Mutex<State>,
    /// The condition that is notified when the rate changes.
    changed: Condvar,
    stop: CancellationToken,
}

#[derive(Debug)]
struct State {
    limiter: RateLimiter,
    /// The configured limit.
    rate: Option<NonZeroU64>,
    /// The limit that protects reads.
    held_back: Option<NonZeroU64>,
    moving: u32,
    waiting: u32,
    bytes: u64,
}

/// The current state of a throttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleState {
    /// The configured limit; `None` if there is none.
    pub bytes_per_second: Option<NonZeroU64>,
    /// The limit that protects reads, if it is below the configured one; `None` if fetches are not slowed down.
    pub held_back: Option<NonZeroU64>,
    /// The number of transfers in progress: sources that are being fetched from, or peers that read.
    pub moving: u32,
    /// The number of bytes that have passed since the throttle was created.
    pub bytes: u64,
    /// The number of threads that wait for their turn.
    pub waiting: u32,
}

impl Throttle {
    /// Returns a throttle; `None` does not limit the rate. Waiting threads return once `stop` is cancelled.
    pub fn new(bytes_per_second: Option<NonZeroU64>, stop: CancellationToken) -> Self {
        let (limiter, rate) = (RateLimiter::new(bytes_per_second), bytes_per_second);
        let state = State { limiter, rate, held_back: None, moving: 0, waiting: 0, bytes: 0 };
        Self { started: Instant::now(), state: Mutex::new(state), changed: Condvar::new(), stop }
    }

    /// Returns a separate throttle for a part of the work. It stops with the same token.
    pub fn beside(&self, bytes_per_second: Option<NonZeroU64>) -> Self {
        Self::new(bytes_per_second, self.stop.clone())
    }

    /// Changes the configured limit, also for threads that are waiting.
    pub fn set(&self, bytes_per_second: Option<NonZeroU64>) {
        let mut state = self.lock();
        state.rate = bytes_per_second;
        self.apply(state);
    }

    /// Changes the limit that protects reads, also for threads that are waiting.
    pub fn hold_back(&self, bytes_per_second: Option<NonZeroU64>) {
        let mut state = self.lock();
        state.held_back = bytes_per_second;
        self.apply(state);
    }

    fn apply(&self, mut state: MutexGuard<'_, State>) {
        let rate = [state.rate, state.held_back].into_iter().flatten().min();
        state.limiter.set(rate, self.now());
        self.changed.notify_all();
    }

    /// Returns the current state.
    pub fn state(&self) -> ThrottleState {
        let state = self.lock();
        let held_back = state.held_back.filter(|held| state.rate.is_none_or(|rate| *held < rate));
        let State { rate: bytes_per_second, moving, waiting, bytes, .. } = *state;
        ThrottleState { bytes_per_second, held_back, moving, bytes, waiting }
    }

    /// Whether nothing passes any more because the node stops.
    pub fn ends(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Counts a transfer as in progress until the returned value is dropped.
    pub fn moving(&self) -> MoveGuard<'_> {
        self.lock().moving += 1;
        MoveGuard(self)
    }

    /// Waits until `bytes` bytes may pass. Returns `Break` if the node stops. Blocks.
    pub fn pass(&self, bytes: u64) -> ControlFlow<()> {
        self.pass_unless(bytes, &self.stop)
    }

    /// Like [`Throttle::pass`], but also returns `Break` if the caller has given up.
    fn pass_unless(&self, bytes: u64, given_up: &CancellationToken) -> ControlFlow<()> {
        let mut state = self.lock();
        let turn = state.limiter.take(bytes, self.now());
        state.waiting += 1;
        let passed = loop {
            if self.stop.is_cancelled() || given_up.is_cancelled() {
                state.limiter.give_back(turn, bytes, self.now());
                break ControlFlow::Break(());
            }
            match state.limiter.wait(turn, self.now()) {
                Duration::ZERO => break ControlFlow::Continue(()),
                left => drop(self.changed.wait_for(&mut state, left.min(NAP))),
            }
        };
        state.waiting -= 1;
        if passed.is_continue() {
            state.bytes += bytes;
        }
        passed
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.started.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A transfer in progress.
#[derive(Debug)]
pub struct MoveGuard<'a>(&'a Throttle);

impl MoveGuard<'_> {
    /// See [`Throttle::pass`].
    pub fn pass(&self, bytes: u64) -> ControlFlow<()> {
        self.0.pass(bytes)
    }
}

impl Drop for MoveGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().moving -= 1;
    }
}

/// A source whose requests each wait for their turn in the throttle, unless the caller has given up.
pub(crate) struct ThrottledSource<'a> {
    source: &'a dyn Source,
    moving: MoveGuard<'a>,
    given_up: CancellationToken,
}

impl<'a> ThrottledSource<'a> {
    pub(crate) fn new(source: &'a dyn Source, throttle: &'a Throttle) -> Self {
        Self { source, moving: throttle.moving(), given_up: throttle.stop.clone() }
    }

    /// Stops reading once `given_up` is cancelled.
    pub(crate) fn until(self, given_up: &CancellationToken) -> Self {
        Self { given_up: given_up.clone(), ..self }
    }

    fn pass(&self, object: &str, bytes: usize) -> Result<(), ObjectError> {
        match self.moving.0.pass_unless(bytes as u64, &self.given_up) {
            ControlFlow::Continue(()) => {
                metrics::counter!("kith_node_fetched_bytes_total").increment(bytes as u64);
                Ok(())
            }
            ControlFlow::Break(()) => {
                let source = "the node is stopping, or the fetch was cancelled".into();
                Err(ObjectError::Failed { object: object.to_owned(), source })
            }
        }
    }
}

impl Source for ThrottledSource<'_> {
    /// The length of a manifest or patch is unknown before it is read. It is requested in larger pieces, and charged for
    /// what arrives.
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        if [MANIFEST_NAME, PATCH_NAME].contains(&object) {
            let got = self.source.read(object, offset, into)?;
            self.pass(object, got)?;
            return Ok(got);
        }
        self.pass(object, into.len())?;
        self.source.read(object, offset, into)
    }

    fn object_bytes(&self, object: &str) -> Result<Option<u64>, ObjectError> {
        self.source.object_bytes(object)
    }

    fn piece_bytes(&self) -> usize {
        self.source.piece_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    struct Zeros;

    impl Source for Zeros {
        fn read(&self, _: &str, _: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
            into.fill(0);
            Ok(into.len())
        }
    }

    fn wait_until(mut holds: impl FnMut() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < Duration::from_secs(60), "waited too long");
            thread::yield_now();
        }
    }

    #[test]
    fn those_who_wait_hear_of_a_new_rate() {
        let throttle = Throttle::new(NonZeroU64::new(1), CancellationToken::new());
        let source = ThrottledSource::new(&Zeros, &throttle);
        let read = || source.read("pack-0", 0, &mut [1; 1 << 20]);
        thread::scope(|scope| {
            let readers = [scope.spawn(read), scope.spawn(read)];
            wait_until(|| throttle.state().waiting == 2);
            let state = throttle.state();
            assert_eq!((state.bytes, state.moving), (0, 1), "nothing passes before its turn");
            throttle.set(None);
            for reader in readers {
                assert_eq!(reader.join().expect("it does not panic").expect("it reads"), 1 << 20);
            }
        });
        drop(source);
        let bytes = 2 << 20;
        let state = ThrottleState { bytes_per_second: None, held_back: None, moving: 0, bytes, waiting: 0 };
        assert_eq!(throttle.state(), state);
    }

    #[test]
    fn the_lower_of_what_is_set_and_what_reads_bear_holds() {
        let rate = NonZeroU64::new;
        let throttle = Throttle::new(rate(100), CancellationToken::new());
        let holds = || {
            (
                throttle.state().bytes_per_second,
                throttle.state().held_back,
                throttle.lock().limiter.bytes_per_second(),
            )
        };
        throttle.hold_back(rate(40));
        assert_eq!(holds(), (rate(100), rate(40), rate(40)));
        throttle.set(rate(30));
        assert_eq!(holds(), (rate(30), None, rate(30)), "it limits nothing");
        throttle.set(None);
        assert_eq!(holds(), (None, rate(40), rate(40)));
        throttle.hold_back(None);
        assert_eq!(holds(), (None, None, None));
    }

    #[test]
    fn a_fetch_that_is_given_up_waits_no_longer_and_delays_nobody() {
        let throttle = Throttle::new(NonZeroU64::new(1), CancellationToken::new());
        let given_up = CancellationToken::new();
        let source = ThrottledSource::new(&Zeros, &throttle).until(&given_up);
        thread::scope(|scope| {
            let reader = scope.spawn(|| source.read("pack-0", 0, &mut [1; 1 << 20]));
            wait_until(|| throttle.state().waiting == 1);
            given_up.cancel();
            assert!(reader.join().expect("it does not panic").is_err());
        });
        assert_eq!(throttle.lock().limiter.backlog(throttle.now()), Duration::ZERO);
        assert!(throttle.pass(0).is_continue(), "others go on");
    }

    #[test]
    fn a_throttle_ends_with_the_node() {
        let stop = CancellationToken::new();
        let throttle = Throttle::new(NonZeroU64::new(u64::MAX), stop.clone());
        assert!(throttle.pass(1 << 20).is_continue());
        throttle.set(NonZeroU64::new(1));
        stop.cancel();
        assert!(throttle.pass(1 << 40).is_break(), "it does not wait for what will not come");
    }
}
