//! Waiting for a [`RateLimiter`], and the one that all fetches, copies and repairs of a node share.

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

/// Whoever waits notices so fast that the node ends.
const NAP: Duration = Duration::from_millis(50);

/// No more than so many bytes a second, for all threads together; changeable while they wait.
#[derive(Debug)]
pub struct Throttle {
    started: Instant,
    state: Mutex<State>,
    /// Told of each new rate.
    changed: Condvar,
    stop: CancellationToken,
}

#[derive(Debug)]
struct State {
    limiter: RateLimiter,
    /// What was asked for.
    rate: Option<NonZeroU64>,
    /// What reads bear.
    held_back: Option<NonZeroU64>,
    moving: u32,
    waiting: u32,
    bytes: u64,
}

/// What a throttle does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleState {
    /// `None`: no limit was set.
    pub bytes_per_second: Option<NonZeroU64>,
    /// What it is held back to for the sake of reads, below any limit that was set; `None`: it is not.
    pub held_back: Option<NonZeroU64>,
    /// How many move something: sources that are being pulled from, or peers that read.
    pub moving: u32,
    /// Bytes that it let pass since it was made.
    pub bytes: u64,
    /// Threads that wait for their turn.
    pub waiting: u32,
}

impl Throttle {
    /// `None`: as fast as it goes. Nobody waits any longer once `stop` is cancelled.
    pub fn new(bytes_per_second: Option<NonZeroU64>, stop: CancellationToken) -> Self {
        let (limiter, rate) = (RateLimiter::new(bytes_per_second), bytes_per_second);
        let state = State { limiter, rate, held_back: None, moving: 0, waiting: 0, bytes: 0 };
        Self { started: Instant::now(), state: Mutex::new(state), changed: Condvar::new(), stop }
    }

    /// One of its own for a part of the work, which ends with the same node.
    pub fn beside(&self, bytes_per_second: Option<NonZeroU64>) -> Self {
        Self::new(bytes_per_second, self.stop.clone())
    }

    /// From now on so fast, for those who wait already too.
    pub fn set(&self, bytes_per_second: Option<NonZeroU64>) {
        let mut state = self.lock();
        state.rate = bytes_per_second;
        self.apply(state);
    }

    /// From now on no faster than this either, for those who wait already too.
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

    /// What it does.
    pub fn state(&self) -> ThrottleState {
        let state = self.lock();
        let held_back = state.held_back.filter(|held| state.rate.is_none_or(|rate| *held < rate));
        let State { rate: bytes_per_second, moving, waiting, bytes, .. } = *state;
        ThrottleState { bytes_per_second, held_back, moving, bytes, waiting }
    }

    /// Whether nothing passes any more, because the node ends.
    pub fn ends(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Something is moved for as long as this is kept.
    pub fn moving(&self) -> Moving<'_> {
        self.lock().moving += 1;
        Moving(self)
    }

    /// Lets bytes pass, after a wait; `Break` when the node ends. Blocks.
    pub fn pass(&self, bytes: u64) -> ControlFlow<()> {
        self.pass_unless(bytes, &self.stop)
    }

    /// As [`Throttle::pass`]; `Break` also when whoever wants the bytes has given up.
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

/// Somebody who moves something through a throttle.
#[derive(Debug)]
pub struct Moving<'a>(&'a Throttle);

impl Moving<'_> {
    /// As [`Throttle::pass`].
    pub fn pass(&self, bytes: u64) -> ControlFlow<()> {
        self.0.pass(bytes)
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.lock().moving -= 1;
    }
}

/// A source whose every request waits for its turn first, unless whoever wants it has given up.
pub(super) struct Throttled<'a> {
    source: &'a dyn Source,
    moving: Moving<'a>,
    given_up: CancellationToken,
}

impl<'a> Throttled<'a> {
    pub(super) fn new(source: &'a dyn Source, throttle: &'a Throttle) -> Self {
        Self { source, moving: throttle.moving(), given_up: throttle.stop.clone() }
    }

    /// Nothing more is read once `given_up` is cancelled.
    pub(super) fn until(self, given_up: &CancellationToken) -> Self {
        Self { given_up: given_up.clone(), ..self }
    }

    fn pass(&self, object: &str, bytes: usize) -> Result<(), ObjectError> {
        match self.moving.0.pass_unless(bytes as u64, &self.given_up) {
            ControlFlow::Continue(()) => {
                metrics::counter!("kith_node_fetched_bytes_total").increment(bytes as u64);
                Ok(())
            }
            ControlFlow::Break(()) => {
                let source = "the node ends, or the fetch was given up".into();
                Err(ObjectError::Failed { object: object.to_owned(), source })
            }
        }
    }
}

impl Source for Throttled<'_> {
    /// The length of a manifest or a patch is not known before it is read: it is asked for in longer pieces, and pays for what came.
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
        let source = Throttled::new(&Zeros, &throttle);
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
        let source = Throttled::new(&Zeros, &throttle).until(&given_up);
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
