//! Locks on a node's files, one per store. Fetches, copies, repairs and clean-ups of different stores run concurrently, so
//! that a slow source of one store does not delay the others.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeSet;

/// The stores that are being worked on.
#[derive(Debug, Default)]
pub struct Turns {
    busy: Mutex<BTreeSet<String>>,
    /// The condition that is notified when a turn ends.
    ended: Condvar,
}

/// The exclusive right to work on one store's files, until it is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    turns: &'a Turns,
    store: String,
}

impl Turns {
    /// Waits until no other work runs on the store. A holder of a turn must not take another one.
    pub fn take(&self, store: &str) -> Turn<'_> {
        let mut busy = self.lock();
        self.ended.wait_while(&mut busy, |busy| busy.contains(store));
        busy.insert(store.to_owned());
        Turn { turns: self, store: store.to_owned() }
    }

    /// Returns `None` if other work runs on the store.
    pub fn try_take(&self, store: &str) -> Option<Turn<'_>> {
        let is_free = self.lock().insert(store.to_owned());
        is_free.then(|| Turn { turns: self, store: store.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.busy.lock()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.store);
        self.turns.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    #[test]
    fn stores_are_worked_on_side_by_side_and_each_by_one() {
        let turns = Turns::default();
        let slow = turns.take("a");
        let other = turns.take("b");
        assert!(turns.try_take("a").is_none() && turns.try_take("b").is_none());
        drop(other);
        assert!(turns.try_take("b").is_some());
        let ends = AtomicBool::new(false);
        let (turns, ended) = (&turns, &ends);
        thread::scope(|scope| {
            let waits = scope.spawn(move || {
                let turn = turns.take("a");
                assert!(ended.load(Ordering::SeqCst), "the turn before had ended");
                drop(turn);
            });
            ends.store(true, Ordering::SeqCst);
            drop(slow);
            waits.join().expect("its turn came");
        });
        assert!(turns.try_take("a").is_some());
    }
}
