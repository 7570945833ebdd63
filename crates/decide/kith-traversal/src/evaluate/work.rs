//! The work and the memory of one evaluation, counted against its limits.

use super::{meter::Meter, step::PART_EFFORT_MAX, weight};
use crate::{
    error::{GremlinError, Result},
    semantics,
    value::{Operator, Value},
};
use kith_types::ErrorCode;
use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

/// An evaluation gives way after this much work, in units of a traverser with a simple value: most steps do it in less than a
/// millisecond.
const GIVE_WAY_AFTER: u64 = 1024;

/// The most work that an evaluation may do, and the seed of its random choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Elements that the graph returns.
    pub elements: u64,
    /// Traversers that steps return.
    pub traversers: u64,
    /// Bytes of memory: of values that steps make, of properties that the graph returns, and of results, all together; and of
    /// elements, traversers and their paths as long as they exist.
    pub bytes: u64,
    /// Passes of one `repeat`.
    pub passes: u32,
    /// The seed of the steps that choose at random: the same seed gives the same choices. A SeedStrategy
    /// of the traversal goes before it.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { elements: 10_000_000, traversers: 100_000_000, bytes: 512 << 20, passes: 10_000, seed: 0 }
    }
}

/// The work of one evaluation so far.
pub(super) struct Work {
    limits: Limits,
    elements: AtomicU64,
    traversers: AtomicU64,
    pub meter: Arc<Meter>,
    /// The traversers that were returned since the evaluation has last given way.
    since_way: AtomicU64,
}

impl Work {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            elements: AtomicU64::new(0),
            traversers: AtomicU64::new(0),
            meter: Meter::new(limits.bytes),
            since_way: AtomicU64::new(0),
        }
    }

    /// Counts elements that the graph has returned.
    pub fn count_elements(&self, count: usize) -> Result<()> {
        count_up(&self.elements, count as u64, self.limits.elements, "elements")
    }

    /// Counts traversers that a step has returned.
    pub fn count_traversers(&self, count: usize) -> Result<()> {
        count_up(&self.traversers, count as u64, self.limits.traversers, "traversers")
    }

    /// Counts values that take this many bytes. They are counted until the end, so this comes before they are made.
    pub fn count_bytes(&self, bytes: u64) -> Result<()> {
        self.note_effort(bytes / weight::VALUE_BYTES);
        self.meter.charge(bytes)
    }

    /// Counts the bytes of values.
    pub fn count_values<'v>(&self, values: impl Iterator<Item = &'v Value>) -> Result<()> {
        for value in values {
            self.count_bytes(weight::up_to(value, self.meter.left()))?;
        }
        Ok(())
    }

    /// Counts the bytes of a value, of which those that were lent since `lent_before` are taken already.
    pub fn count_made(&self, value: &Value, lent_before: u64) -> Result<()> {
        let most = self.meter.left().saturating_add(self.meter.lent().saturating_sub(lent_before));
        let bytes = weight::up_to(value, most);
        self.note_effort(bytes / weight::VALUE_BYTES);
        self.meter.keep(bytes, lent_before)
    }

    /// Counts a copy of a value whose members stand by themselves, before it is made.
    pub fn count_copy(&self, value: &Value) -> Result<()> {
        self.count_bytes(weight::unrolled(value, self.meter.left()))
    }

    /// Checks that there is room for `traversers` more traversers, before they are made.
    pub fn room_for(&self, traversers: usize) -> Result<()> {
        self.meter.room((traversers as u64).saturating_mul(weight::TRAVERSER_BYTES))
    }

    /// The result of an operator for the value held and a further one. The result is counted. A collection that nobody else has
    /// grows where it is.
    pub fn applied(&self, operator: Operator, held: Value, value: &Value) -> Result<Value> {
        self.note_effort(weight::effort(value));
        match operator {
            Operator::AddAll => {
                if !is_own(&held) {
                    self.count_copy(&held)?;
                    self.note_effort(weight::effort(&held));
                }
                self.count_copy(value)?;
                semantics::apply(operator, held, value)
            }
            _ => {
                self.note_effort(weight::effort(&held));
                let result = semantics::apply(operator, held, value)?;
                if matches!(result, Value::BigInteger(_) | Value::BigDecimal(_)) {
                    self.count_values(std::iter::once(&result))?;
                }
                Ok(result)
            }
        }
    }

    /// Yields to the executor if steps have done more work than [`GIVE_WAY_AFTER`] since it last did; they have just looked at
    /// these values. Only while it yields can a deadline end the evaluation, and other tasks of the thread run.
    pub async fn give_way<'v>(&self, values: impl Iterator<Item = &'v Value>) {
        let mut done = self.since_way.load(Ordering::Relaxed) + 1;
        for value in values {
            if GIVE_WAY_AFTER < done {
                break;
            }
            done += weight::effort(value);
        }
        self.since_way.store(done, Ordering::Relaxed);
        if GIVE_WAY_AFTER < done {
            self.give_way_now().await;
        }
    }

    /// Counts work after which the evaluation has to give way soon.
    pub fn note_effort(&self, effort: u64) {
        self.since_way.fetch_add(effort, Ordering::Relaxed);
    }

    /// Counts the work of looking at a value as a whole, and yields to the executor if that has become much.
    pub async fn look_at(&self, value: &Value) {
        self.note_effort(weight::effort(value));
        self.pause().await;
    }

    /// Yields to the executor in the middle of a step that has done much work.
    pub async fn pause(&self) {
        if PART_EFFORT_MAX < self.since_way.load(Ordering::Relaxed) {
            self.give_way_now().await;
        }
    }

    /// Yields to the executor.
    pub async fn give_way_now(&self) {
        self.since_way.store(0, Ordering::Relaxed);
        let mut has_yielded = false;
        poll_fn(|polling| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            polling.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Counts what traversers with these bulks stand for, before each of it is treated by itself. A bulk may be beyond 2⁵⁰, so
    /// this comes before any memory is taken.
    pub fn count_each(&self, bulks: impl Iterator<Item = i64>) -> Result<()> {
        let each = bulks.map(|bulk| usize::try_from(bulk).unwrap_or(0));
        self.count_traversers(each.fold(0, usize::saturating_add))
    }

    pub fn check_pass(&self, pass: u32) -> Result<()> {
        if pass < self.limits.passes {
            return Ok(());
        }
        let most = self.limits.passes;
        Err(GremlinError::new(
            ErrorCode::TooLarge,
            format!(
                "repeat() took more than {most} passes; end it with times() or until(), or allow more passes with kith.budget: {}",
                example("passes", most.into())
            ),
        ))
    }

    /// Charges the places of members that are copied, and counts the work.
    pub fn charge_places(&self, count: usize) -> Result<u64> {
        let bytes = weight::of_places(count);
        self.count_bytes(bytes)?;
        self.note_effort(count as u64);
        Ok(bytes)
    }
}

/// Whether nobody else has the members of a collection, so that it can grow without a copy.
fn is_own(value: &Value) -> bool {
    match value {
        Value::List(members) => Arc::strong_count(members) == 1,
        Value::Set(members) => Arc::strong_count(members) == 1,
        Value::Map(entries) => Arc::strong_count(entries) == 1,
        _ => false,
    }
}

fn count_up(counter: &AtomicU64, count: u64, most: u64, what: &str) -> Result<()> {
    let before = counter.fetch_add(count, Ordering::Relaxed);
    if before.saturating_add(count) <= most {
        return Ok(());
    }
    let example = example(what, most);
    Err(GremlinError::new(
        ErrorCode::TooLarge,
        format!(
            "the traversal needs more than {most} {what}; ask for less, or allow more with kith.budget: {example}"
        ),
    ))
}

/// Returns the text with which a traversal asks for ten times as much.
pub(super) fn example(what: &str, most: u64) -> String {
    format!("with(\"kith.budget\", \"{what}={}\")", most.saturating_mul(10))
}
