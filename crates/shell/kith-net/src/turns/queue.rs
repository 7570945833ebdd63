//! Who of those that wait gets the next turn or slot.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The expected time of a turn, in microseconds. It makes several waiting turns of one caller follow one another at a
/// distance.
const EXPECTED_US: u64 = 1_000;
/// A turn that takes this long is long.
pub(super) const LONG: Duration = Duration::from_millis(1);
/// After a long turn, as many further ones may be long, too: those who wait are often of a kind.
const WARY_FOR: u32 = 1_000;

/// The kinds of work that wait in a queue of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Computing that gives way.
    Turns,
    /// Evaluations of a node on threads of their own.
    Evaluations,
    /// Queries of a router that keep much in memory from their start to their end.
    LongQueries,
    /// Fetches of second-degree networks. A long query may wait for one, but a fetch never waits for a long query.
    Networks,
}

/// The time that one caller has taken, in microseconds, of each kind of work, on the clock of its queue. Clones are of the same
/// caller.
#[derive(Clone, Debug, Default)]
pub struct Share(Arc<[Taken; 4]>);

#[derive(Debug, Default)]
struct Taken {
    time: AtomicU64,
    turns: AtomicU64,
}

impl Share {
    /// The number of turns that have ended.
    pub fn turns(&self) -> u64 {
        self.of(WorkKind::Turns).turns.load(Ordering::Relaxed)
    }

    fn of(&self, kind: WorkKind) -> &Taken {
        &self.0[kind as usize]
    }
}

/// A place in the queue: lower ones come first.
pub(super) type QueuePosition = (u64, u64);

/// Those that wait, each with what wakes it. Each caller gets the same share of the time of all turns, however many turns it
/// waits for: a turn begins, on the clock of the queue, when the last one of its caller has ended, but not in the past.
#[derive(Debug)]
pub(super) struct Queue<W> {
    kind: WorkKind,
    /// How many turns may begin now.
    free: usize,
    /// The clock: when the latest turn began.
    now: u64,
    next: u64,
    /// How many of the next turns may be long.
    wary: u32,
    waiting: BTreeMap<QueuePosition, W>,
    /// Those whose turn it is, but who have not noticed yet.
    called: HashSet<QueuePosition>,
}

impl<W> Queue<W> {
    pub fn new(kind: WorkKind, turns: usize) -> Self {
        Self { kind, free: turns, now: 0, next: 0, wary: 0, waiting: BTreeMap::new(), called: HashSet::new() }
    }

    /// Takes a turn for a caller, or else a place in the queue.
    pub fn take(&mut self, share: &Share, waker: impl FnOnce() -> W) -> Option<QueuePosition> {
        let taken = share.of(self.kind);
        let begin = taken.time.load(Ordering::Relaxed).max(self.now);
        taken.time.store(begin.saturating_add(EXPECTED_US), Ordering::Relaxed);
        if 0 < self.free {
            self.free -= 1;
            self.now = begin;
            return None;
        }
        let position = (begin, self.next);
        self.next += 1;
        self.waiting.insert(position, waker());
        Some(position)
    }

    /// Whether it is the turn of the one at `position`; it must then take it. Otherwise `waker` is what wakes it.
    pub fn is_called(&mut self, position: QueuePosition, waker: impl FnOnce() -> W) -> bool {
        if self.called.remove(&position) {
            return true;
        }
        self.waiting.insert(position, waker());
        false
    }

    /// The one at `position` does not wait any more. Returns whom to wake.
    pub fn leave(&mut self, position: QueuePosition) -> Option<W> {
        match self.waiting.remove(&position) {
            Some(_) => None,
            None => self.called.remove(&position).then(|| self.call_next()).flatten(),
        }
    }

    /// Whether a turn that begins may be long.
    pub fn is_wary(&self) -> bool {
        0 < self.wary
    }

    /// Ends a turn. Returns whom to wake.
    pub fn end(&mut self, share: &Share, took: Duration) -> Option<W> {
        self.wary = if LONG <= took { WARY_FOR } else { self.wary.saturating_sub(1) };
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let taken = share.of(self.kind);
        taken.turns.fetch_add(1, Ordering::Relaxed);
        let ended = taken.time.load(Ordering::Relaxed).saturating_add(took).saturating_sub(EXPECTED_US);
        taken.time.store(ended, Ordering::Relaxed);
        self.call_next()
    }

    fn call_next(&mut self) -> Option<W> {
        let Some((position, waker)) = self.waiting.pop_first() else {
            self.free += 1;
            return None;
        };
        self.now = self.now.max(position.0);
        self.called.insert(position);
        Some(waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(1);

    /// Lets `counts[caller]` tasks of each caller wait, each of which needs a new turn after every turn. Returns the callers of
    /// the next `turns` turns.
    fn served(counts: &[usize], turns: usize, took: impl Fn(usize) -> Duration) -> Vec<usize> {
        let mut queue = Queue::new(WorkKind::Turns, 1);
        let shares: Vec<Share> = counts.iter().map(|_| Share::default()).collect();
        assert_eq!(queue.take(&Share::default(), || usize::MAX), None, "a turn is free");
        let mut places = std::collections::HashMap::new();
        for (caller, count) in counts.iter().enumerate() {
            for _ in 0..*count {
                places.insert(queue.take(&shares[caller], || caller).expect("none is free"), caller);
            }
        }
        let mut next = queue.end(&Share::default(), TURN).expect("they wait");
        let mut served = Vec::new();
        for _ in 0..turns {
            let position = *queue.called.iter().next().expect("one is called");
            assert_eq!(places.remove(&position), Some(next));
            assert!(queue.is_called(position, || next));
            served.push(next);
            // It waits again before its turn ends, as a task that gives way.
            places.insert(queue.take(&shares[next], || next).expect("none is free"), next);
            next = queue.end(&shares[next], took(next)).expect("they wait");
        }
        served
    }

    #[test]
    fn a_caller_with_many_tasks_gets_no_more_turns_than_one_with_few() {
        let served = served(&[500, 1, 3], 300, |_| TURN);
        for caller in 0..3 {
            let count = served.iter().filter(|of| **of == caller).count();
            assert!((95..=105).contains(&count), "{caller}: {count}");
        }
        assert!(served.iter().position(|of| *of == 1).is_some_and(|at| at < 4), "{:?}", &served[..9]);
    }

    #[test]
    fn a_caller_whose_turns_are_long_gets_fewer() {
        let served = served(&[20, 20], 220, |caller| if caller == 0 { 10 * TURN } else { TURN });
        let long = served.iter().filter(|of| **of == 0).count();
        assert!((10..=40).contains(&long), "{long}");
    }

    #[test]
    fn who_leaves_passes_its_turn_on() {
        let (mut queue, share) = (Queue::new(WorkKind::Turns, 1), Share::default());
        assert_eq!(queue.take(&share, || 0), None);
        let first = queue.take(&share, || 1).expect("none is free");
        let second = queue.take(&share, || 2).expect("none is free");
        let third = queue.take(&share, || 3).expect("none is free");
        assert_eq!(queue.leave(second), None);
        assert_eq!(queue.end(&share, TURN), Some(1));
        assert_eq!(queue.leave(first), Some(3), "it was called");
        assert!(queue.is_called(third, || 3));
        assert_eq!(queue.end(&share, TURN), None);
        assert_eq!((queue.free, queue.take(&share, || 4)), (1, None));
    }
}
