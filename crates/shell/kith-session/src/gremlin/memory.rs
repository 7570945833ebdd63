//! The memory that all traversals of a process share.

use kith_net::{Budget, Charge};
use kith_traversal::evaluate::{Limits, Meter, SharedMemory};
use parking_lot::Mutex;
use std::sync::Arc;

/// The part of the memory of all traversals that one traversal holds.
struct Share {
    charge: Mutex<Charge>,
    most: u64,
}

impl SharedMemory for Share {
    fn most(&self) -> u64 {
        self.most
    }

    fn hold(&self, bytes: u64) -> bool {
        let Ok(bytes) = usize::try_from(bytes) else { return false };
        let mut charge = self.charge.lock();
        charge.shrink_to(bytes);
        charge.grow_to(bytes)
    }
}

/// The meter of the memory of one traversal. The traversal may take what its limits allow, out of the `memory` bytes of
/// all traversals, of which the last quarter is for small traversals, as in every budget.
pub(super) fn meter(limits: &Limits, all: &Arc<Budget>, memory: u64) -> Arc<Meter> {
    let share = Share { charge: Mutex::new(all.charge()), most: memory - memory / 4 };
    Meter::within(limits.bytes, Box::new(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    #[test]
    fn many_traversals_take_no_more_than_the_memory_of_all() {
        let memory = 64 << 20;
        let all = Budget::new(memory);
        let limits = Limits { bytes: 100 << 30, ..Limits::default() };
        let meters: Vec<_> = (0..40).map(|_| meter(&limits, &all, memory as u64)).collect();
        let refused: Vec<_> = meters.iter().filter_map(|meter| meter.charge(10 << 20).err()).collect();
        assert_eq!(refused.len(), 36, "four of them fit in three quarters");
        assert!(refused.iter().all(|error| error.code == ErrorCode::Overloaded), "{refused:?}");
        assert!(meters.iter().all(|meter| meter.left() <= 48 << 20), "whatever the limits of one allow");
        assert_eq!(meters[5].charge(1 << 30).expect_err("too much").code, ErrorCode::TooLarge);
        assert!(meters[5].charge(100_000).is_ok(), "small ones still fit");
        assert!(all.taken() <= memory);
        drop(meters);
        assert_eq!(all.taken(), 0);
    }
}
