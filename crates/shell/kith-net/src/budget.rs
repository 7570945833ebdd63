//! Budgets for the bytes of messages that may be in memory at a time, per connection and for the whole process.

use bytes::Bytes;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The last quarter of a budget is reserved for charges of at most this many bytes, so that a few large messages cannot
/// keep small ones out.
const SMALL_BYTES_MAX: usize = 1 << 20;

/// A number of bytes that charges take from and give back to. Bytes taken from a child are also taken from its parent.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    taken: AtomicUsize,
    parent: Option<Arc<Budget>>,
}

impl Budget {
    /// Returns a budget of `bytes_max` bytes, all of them free.
    #[must_use]
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Self::within(bytes_max, None)
    }

    /// Returns a budget of at most `bytes_max` bytes whose bytes are also taken from this one.
    #[must_use]
    pub fn child(self: &Arc<Self>, bytes_max: usize) -> Arc<Self> {
        Self::within(bytes_max, Some(Arc::clone(self)))
    }

    fn within(bytes_max: usize, parent: Option<Arc<Budget>>) -> Arc<Self> {
        Arc::new(Self { bytes_max, taken: AtomicUsize::new(0), parent })
    }

    /// Returns a charge that has taken nothing yet.
    #[must_use]
    pub fn charge(self: &Arc<Self>) -> Charge {
        Charge { budget: Arc::clone(self), bytes: 0 }
    }

    /// The bytes that are taken now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether more than half of the bytes are taken.
    #[must_use]
    pub fn is_pressed(&self) -> bool {
        self.bytes_max / 2 < self.taken()
    }

    /// Takes `bytes` bytes if they are free, here and in the parent. Returns whether they were.
    fn take(&self, bytes: usize, is_small: bool) -> bool {
        // Only the root budget has the reserve for small charges. A child may use all of its bytes.
        let reserve = if is_small || self.parent.is_some() { 0 } else { self.bytes_max / 4 };
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let is_free = taken <= self.bytes_max - reserve;
        if is_free && self.parent.as_ref().is_none_or(|parent| parent.take(bytes, is_small)) {
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
}

/// Budgets are equal if they are the same object; two budgets of equal size are not equal.
impl PartialEq for Budget {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// Bytes taken from a budget. Dropping the charge gives them back.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    /// Grows the charge to at least `bytes` bytes. Returns `false`, and changes nothing, if the budget has too few free
    /// bytes.
    #[must_use]
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let is_taken = more == 0 || self.budget.take(more, bytes <= SMALL_BYTES_MAX);
        if is_taken {
            self.bytes += more;
        }
        is_taken
    }

    /// Gives back what the charge has taken beyond `bytes` bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.give_back(self.bytes - bytes);
            self.bytes = bytes;
        }
    }

    /// Adds the bytes of another charge of the same budget to this one.
    pub fn absorb(&mut self, mut other: Charge) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Moves all bytes of this charge to a new charge. This one is empty afterwards.
    #[must_use]
    pub fn take(&mut self) -> Charge {
        let rest = self.budget.charge();
        std::mem::replace(self, rest)
    }

    /// The bytes that the charge has taken.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the charge has taken no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Ties the charge to `bytes`: it is given back when the last clone or slice of the returned bytes is dropped.
    #[must_use]
    pub fn pay_for(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Paid(bytes, self))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// Bytes together with the charge that was taken for them.
struct Paid(Bytes, #[expect(dead_code, reason = "held only to be dropped together with the bytes")] Charge);

impl AsRef<[u8]> for Paid {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_child_takes_is_taken_of_its_parent_and_comes_back() {
        let process = Budget::new(100);
        let (one, other) = (process.child(70), process.child(70));
        let mut first = one.charge();
        assert!(first.grow_to(60) && !first.grow_to(71) && first.grow_to(70) && first.grow_to(10));
        let mut second = other.charge();
        assert!(!second.grow_to(31), "the process has 30 left");
        assert!(second.grow_to(30));
        assert_eq!((one.taken(), other.taken(), process.taken()), (70, 30, 100));
        drop(first);
        assert!(second.grow_to(70));
        second.absorb(other.charge());
        second.shrink_to(90);
        second.shrink_to(50);
        assert_eq!((other.taken(), process.taken()), (50, 50));
        drop(second);
        assert_eq!((one.taken(), other.taken(), process.taken()), (0, 0, 0));
    }

    #[test]
    fn large_charges_leave_a_quarter_to_small_ones() {
        let budget = Budget::new(16 * SMALL_BYTES_MAX);
        let mut large = budget.charge();
        assert!(!large.grow_to(13 * SMALL_BYTES_MAX) && large.grow_to(12 * SMALL_BYTES_MAX));
        let small = std::iter::repeat_with(|| budget.charge());
        let small = small.map_while(|mut charge| charge.grow_to(SMALL_BYTES_MAX).then_some(charge));
        assert_eq!(small.collect::<Vec<_>>().len(), 4);
        assert!(budget.is_pressed());
    }

    #[test]
    fn bytes_that_are_paid_for_give_back_what_they_took_with_their_last_slice() {
        let budget = Budget::new(100);
        let mut charge = budget.charge();
        assert!(charge.grow_to(6));
        let bytes = charge.pay_for(Bytes::from_static(b"values"));
        let slice = bytes.slice(2..4);
        drop(bytes);
        assert_eq!((&slice[..], budget.taken()), (&b"lu"[..], 6));
        drop(slice);
        assert_eq!(budget.taken(), 0);
    }

    proptest! {
        #[test]
        fn no_program_of_charges_takes_more_than_there_is(steps in prop::collection::vec((0usize..4, 0usize..200), 1..60)) {
            let process = Budget::new(300);
            let children: Vec<_> = (0..4).map(|_| process.child(150)).collect();
            let mut charges: Vec<Option<Charge>> = (0..4).map(|_| None).collect();
            for (at, bytes) in steps {
                if bytes < 20 {
                    charges[at] = None;
                } else {
                    let charge = charges[at].get_or_insert_with(|| children[at].charge());
                    let _ = charge.grow_to(bytes);
                }
                prop_assert!(process.taken() <= 300);
                prop_assert_eq!(process.taken(), charges.iter().flatten().map(|charge| charge.bytes).sum::<usize>());
            }
        }
    }
}
