//! The memory of one evaluation: how much it may take, and its part of the memory that all evaluations of a process share.

use crate::error::{GremlinError, Result};
use kith_types::ErrorCode;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The part of the shared memory that an evaluation holds grows and shrinks in steps of this size, so that evaluations seldom
/// touch what they share.
const STEP: u64 = 64 << 10;
/// An evaluation keeps at most this much more of the shared memory than it takes.
const SPARE_MAX: u64 = 16 << 20;

/// The memory that all evaluations of a process share, as one of them sees it. It is given back when this is dropped.
pub trait SharedMemory: Send + Sync {
    /// The most that one evaluation can hold, even if no other one holds anything.
    fn most(&self) -> u64;

    /// Makes this evaluation hold `bytes` in all, whether that is more or less than before. Returns `false` if there is not
    /// enough memory; the evaluation then holds what it held before.
    fn hold(&self, bytes: u64) -> bool;
}

/// Counts the bytes that an evaluation takes. Everything that can grow is charged here before it grows.
///
/// Values that steps make are charged until the evaluation ends, with all that they contain. Traversers, and the values that
/// they remember, are charged while they exist. What the graph returns is charged until the step that asked for it has returned.
pub struct Meter {
    most: u64,
    shared: Option<Box<dyn SharedMemory>>,
    taken: AtomicU64,
    /// The part of `taken` that the graph has returned to steps that have not returned yet.
    lent: AtomicU64,
    /// The part of the shared memory that is held.
    held: AtomicU64,
    holding: Mutex<()>,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("most", &self.most).field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Meter {
    /// A meter for an evaluation that may take `most` bytes.
    pub fn new(most: u64) -> Arc<Self> {
        Self::with(most, None)
    }

    /// The same, for an evaluation that also takes its bytes from a shared memory.
    pub fn within(most: u64, shared: Box<dyn SharedMemory>) -> Arc<Self> {
        Self::with(most, Some(shared))
    }

    fn with(most: u64, shared: Option<Box<dyn SharedMemory>>) -> Arc<Self> {
        let (taken, lent, held) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { most, shared, taken, lent, held, holding: Mutex::new(()) })
    }

    /// Takes `bytes`.
    ///
    /// # Errors
    /// `too_large` if the evaluation would take more than it may; `overloaded` if the shared memory is used up. Nothing is
    /// taken then.
    pub fn charge(&self, bytes: u64) -> Result<()> {
        if self.left() < bytes {
            return Err(self.too_large());
        }
        self.add(bytes);
        self.check().inspect_err(|_| self.give_back(bytes))
    }

    /// Takes bytes for what the graph returns, or what a step makes, until the step has returned and what it made is counted.
    ///
    /// # Errors
    /// As [`Meter::charge`].
    pub fn lend(&self, bytes: u64) -> Result<()> {
        self.charge(bytes)?;
        self.lent.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Checks that [`Meter::charge`] would succeed, and takes nothing.
    ///
    /// # Errors
    /// As [`Meter::charge`].
    pub fn room(&self, bytes: u64) -> Result<()> {
        self.charge(bytes)?;
        self.give_back(bytes);
        Ok(())
    }

    /// Takes bytes until the evaluation ends: first those that were lent after [`Meter::lent`] was asked.
    ///
    /// # Errors
    /// As [`Meter::charge`].
    pub(super) fn keep(&self, bytes: u64, lent_before: u64) -> Result<()> {
        let lent = self.lent().saturating_sub(lent_before).min(bytes);
        self.charge(bytes - lent)?;
        self.lent.fetch_sub(lent, Ordering::Relaxed);
        Ok(())
    }

    /// Takes bytes for something that is being made, until what is returned is dropped.
    ///
    /// # Errors
    /// As [`Meter::charge`].
    pub(super) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<HeldBytes> {
        self.charge(bytes)?;
        Ok(HeldBytes { meter: Arc::clone(self), bytes })
    }

    /// The bytes that are taken now.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The bytes that the evaluation may still take.
    pub fn left(&self) -> u64 {
        self.most().saturating_sub(self.taken())
    }

    fn most(&self) -> u64 {
        self.shared.as_ref().map_or(self.most, |shared| self.most.min(shared.most()))
    }

    /// Takes bytes for something small. [`Meter::check`] must follow soon.
    pub(super) fn add(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The bytes lent now, for [`Meter::take_back`].
    pub(super) fn lent(&self) -> u64 {
        self.lent.load(Ordering::Relaxed)
    }

    /// Gives back what was lent after [`Meter::lent`] was asked.
    pub(super) fn take_back(&self, lent_before: u64) {
        let lent = self.lent.swap(lent_before, Ordering::Relaxed);
        self.give_back(lent.saturating_sub(lent_before));
    }

    /// Checks that no more is taken than is allowed.
    ///
    /// # Errors
    /// As [`Meter::charge`].
    pub(super) fn check(&self) -> Result<()> {
        let taken = self.taken();
        if self.most() < taken {
            return Err(self.too_large());
        }
        let held = self.held.load(Ordering::Relaxed);
        let is_held = taken <= held && held - taken <= SPARE_MAX;
        match &self.shared {
            Some(shared) if !is_held => self.hold(shared.as_ref()),
            _ => Ok(()),
        }
    }

    fn hold(&self, shared: &dyn SharedMemory) -> Result<()> {
        let _holding = self.holding.lock();
        let taken = self.taken();
        let wanted = taken.next_multiple_of(STEP).min(shared.most());
        if !shared.hold(wanted) {
            return Err(GremlinError::new(
                ErrorCode::Overloaded,
                "the memory that all traversals of this process share is used up; try again in a moment, ask for less, or \
                 raise `memory` in [session.traversals]",
            ));
        }
        self.held.store(wanted, Ordering::Relaxed);
        Ok(())
    }

    fn too_large(&self) -> GremlinError {
        let most = self.most();
        let advice = match most < self.most {
            true => "one traversal may take no more of the memory that all share (`memory` in [session.traversals])".to_owned(),
            false => format!("or allow more with kith.budget: {}", super::work::example("bytes", most)),
        };
        GremlinError::new(
            ErrorCode::TooLarge,
            format!("the traversal needs more than {most} bytes; ask for less, {advice}"),
        )
    }
}

/// Bytes that something small takes while it exists. Its clones take as many.
#[derive(Debug)]
pub(super) struct HeldBytes {
    meter: Arc<Meter>,
    bytes: u64,
}

impl HeldBytes {
    pub fn new(meter: &Arc<Meter>, bytes: u64) -> Self {
        meter.add(bytes);
        Self { meter: Arc::clone(meter), bytes }
    }

    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Takes more.
    pub fn grow(&mut self, bytes: u64) {
        self.meter.add(bytes);
        self.bytes += bytes;
    }
}

impl Clone for HeldBytes {
    fn clone(&self) -> Self {
        Self::new(&self.meter, self.bytes)
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.meter.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shared memory of `most` bytes, of which all evaluations hold `all` and this one `own`.
    struct Pool {
        most: u64,
        all: Arc<AtomicU64>,
        own: AtomicU64,
    }

    impl SharedMemory for Pool {
        fn most(&self) -> u64 {
            self.most
        }

        fn hold(&self, bytes: u64) -> bool {
            let others = self.all.load(Ordering::Relaxed) - self.own.load(Ordering::Relaxed);
            if self.most < others + bytes {
                return false;
            }
            self.all.store(others + bytes, Ordering::Relaxed);
            self.own.store(bytes, Ordering::Relaxed);
            true
        }
    }

    fn sharing(most: u64, all: &Arc<AtomicU64>) -> Arc<Meter> {
        Meter::within(u64::MAX, Box::new(Pool { most, all: Arc::clone(all), own: AtomicU64::new(0) }))
    }

    #[test]
    fn what_is_refused_is_not_taken() {
        let meter = Meter::new(100);
        assert!(meter.charge(60).is_ok() && meter.charge(41).is_err() && meter.charge(u64::MAX).is_err());
        assert_eq!((meter.taken(), meter.left()), (60, 40));
        assert!(meter.room(40).is_ok() && meter.room(41).is_err());
        let before = meter.lent();
        meter.lend(30).expect("there is room");
        let held = HeldBytes::new(&meter, 10);
        assert_eq!(meter.left(), 0);
        meter.take_back(before);
        let clone = held.clone();
        assert_eq!(meter.taken(), 80);
        drop((held, clone));
        assert_eq!(meter.taken(), 60);
    }

    /// What was lent for values pays for them, so that there is no moment at which others could take it.
    #[test]
    fn what_is_kept_is_first_taken_from_what_was_lent() {
        let all = Arc::new(AtomicU64::new(0));
        let meter = sharing(64 << 20, &all);
        meter.lend(1 << 20).expect("it is free");
        let before = meter.lent();
        meter.lend(40 << 20).expect("it is free");
        for _ in 0..4 {
            meter.keep(10 << 20, before).expect("it was lent");
            assert_eq!((meter.taken(), all.load(Ordering::Relaxed)), (41 << 20, 41 << 20));
        }
        meter.keep(2 << 20, before).expect("it is free");
        meter.take_back(before);
        assert_eq!((meter.lent(), meter.taken()), (1 << 20, 43 << 20));
        assert_eq!(meter.keep(22 << 20, before).expect_err("there is no room").code, ErrorCode::TooLarge);
    }

    #[test]
    fn evaluations_take_from_what_they_share() {
        let all = Arc::new(AtomicU64::new(0));
        let (one, other) = (sharing(1 << 20, &all), sharing(1 << 20, &all));
        one.charge(600_000).expect("it is free");
        let error = other.charge(600_000).expect_err("the other one has it");
        assert_eq!((error.code, other.taken()), (ErrorCode::Overloaded, 0));
        let error = other.charge(2 << 20).expect_err("it never fits");
        assert_eq!(error.code, ErrorCode::TooLarge);
    }

    #[test]
    fn evaluations_give_back_what_they_have_to_spare() {
        let all = Arc::new(AtomicU64::new(0));
        let meter = sharing(64 << 20, &all);
        meter.charge(40 << 20).expect("it is free");
        meter.give_back(SPARE_MAX);
        meter.charge(1).expect("it is free");
        assert_eq!(all.load(Ordering::Relaxed), 40 << 20, "a little to spare is kept");
        meter.give_back((40 << 20) - SPARE_MAX);
        meter.charge(1).expect("it is free");
        assert_eq!(all.load(Ordering::Relaxed), STEP);
    }
}
