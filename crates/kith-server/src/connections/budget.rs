//! Bytes of requests that may be in memory: of one connection, and of all of them together.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Requests up to this size are not charged: a connection's receive buffer has room for them.
pub(crate) const UNCHARGED_BYTES: usize = 16 << 10;

/// A number of bytes, some of which are taken. What is taken of it is taken of its parent too.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    taken: AtomicUsize,
    parent: Option<Arc<Budget>>,
}

impl Budget {
    /// Of `bytes_max` bytes, all of them free.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, taken: AtomicUsize::new(0), parent: None })
    }

    /// A part of this one.
    pub fn child(self: &Arc<Self>, bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, taken: AtomicUsize::new(0), parent: Some(Arc::clone(self)) })
    }

    /// Takes so many bytes, if they are free.
    #[must_use]
    fn take(&self, bytes: usize) -> bool {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if taken <= self.bytes_max && self.parent.as_ref().is_none_or(|parent| parent.take(bytes)) {
            return true;
        }
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
        false
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.give_back(bytes);
        }
    }

    #[cfg(test)]
    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

/// Bytes taken of a budget; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    /// Nothing yet.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Makes it at least so many bytes; `false` and as it was if the budget does not have them.
    #[must_use]
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let is_taken = more == 0 || self.budget.take(more);
        if is_taken {
            self.bytes += more;
        }
        is_taken
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if 0 < self.bytes {
            self.budget.give_back(self.bytes);
        }
    }
}

/// The room that a message of `total` bytes gets once `came` bytes of it are here: all of it once a quarter has come, until then
/// twice what has come. A header alone, whatever it claims, gets the uncharged room.
pub(crate) fn room(total: usize, came: usize) -> usize {
    let earned = if total / 4 <= came { total } else { came.saturating_mul(2) };
    total.min(earned.max(UNCHARGED_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_claim_gets_no_room_before_its_bytes_come() {
        assert_eq!(room(80 << 20, 16), UNCHARGED_BYTES);
        assert_eq!(room(80 << 20, 1 << 20), 2 << 20);
        assert_eq!(room(80 << 20, 20 << 20), 80 << 20);
        assert_eq!(room(100, 3), 100);
    }

    #[test]
    fn what_a_child_takes_is_taken_of_its_parent_and_comes_back() {
        let process = Budget::new(100);
        let (one, other) = (process.child(70), process.child(70));
        let mut first = Charge::new(&one);
        assert!(first.grow_to(60) && !first.grow_to(71) && first.grow_to(70) && first.grow_to(10));
        let mut second = Charge::new(&other);
        assert!(!second.grow_to(31), "the process has 30 left");
        assert!(second.grow_to(30));
        assert_eq!((one.taken(), other.taken(), process.taken()), (70, 30, 100));
        drop(first);
        assert!(second.grow_to(70));
        drop(second);
        assert_eq!((one.taken(), other.taken(), process.taken()), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn room_is_enough_to_go_on_and_at_most_four_times_what_came(total in 1usize..1 << 28, share in 0.0f64..1.0) {
            let came = ((total as f64 * share) as usize).min(total - 1);
            let room = room(total, came);
            prop_assert!(came < room && room <= total);
            prop_assert!(room <= (4 * came + 4).max(UNCHARGED_BYTES));
        }

        #[test]
        fn no_program_of_charges_takes_more_than_there_is(steps in prop::collection::vec((0usize..4, 0usize..200), 1..60)) {
            let process = Budget::new(300);
            let children: Vec<_> = (0..4).map(|_| process.child(150)).collect();
            let mut charges: Vec<Option<Charge>> = (0..4).map(|_| None).collect();
            for (at, bytes) in steps {
                if bytes < 20 {
                    charges[at] = None;
                } else {
                    let charge = charges[at].get_or_insert_with(|| Charge::new(&children[at]));
                    let _ = charge.grow_to(bytes);
                }
                prop_assert!(process.taken() <= 300);
                prop_assert_eq!(process.taken(), charges.iter().flatten().map(|charge| charge.bytes).sum::<usize>());
            }
        }
    }
}
