//! Results that are handed over while later ones are still computed.

use bytes::Bytes;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::mpsc;

/// The number of parts that may wait for a slow caller. The traversal keeps further results.
const WAITING_MAX: usize = 4;

/// Takes results of a traversal before it has ended. The answer then has only the results that were not handed over.
#[derive(Clone, Debug)]
pub struct EarlyResults {
    parts: mpsc::Sender<Bytes>,
    least: usize,
    is_used: Arc<AtomicBool>,
}

impl EarlyResults {
    /// Returns a taker of parts with at least `least` results, and where the parts arrive. Each part is coded like
    /// [`crate::GremlinAnswer::results`].
    pub fn channel(least: usize) -> (Self, mpsc::Receiver<Bytes>) {
        let (parts, receiver) = mpsc::channel(WAITING_MAX);
        (Self { parts, least, is_used: Arc::default() }, receiver)
    }

    /// Whether a part with this many results would be taken now.
    pub fn would_take(&self, count: usize) -> bool {
        self.least <= count && self.parts.capacity() != 0 && !self.parts.is_closed()
    }

    /// Passes a part on, which [`EarlyResults::would_take`] has allowed.
    pub fn give(&self, part: Bytes) {
        // If the receiver is gone, the caller has left, and nobody wants results.
        if self.parts.try_send(part).is_ok() {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until all parts have been taken, or the caller has left.
    pub async fn taken(&self) {
        // If the receiver is gone, nothing waits any more.
        let _ = self.parts.reserve_many(WAITING_MAX).await;
    }

    /// Whether a part was handed over. The traversal then cannot begin again.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}

/// Takers are equal if their parts arrive at the same place.
impl PartialEq for EarlyResults {
    fn eq(&self, other: &Self) -> bool {
        self.parts.same_channel(&other.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taker_takes_parts_of_some_size_until_too_many_wait() {
        let (early, mut parts) = EarlyResults::channel(3);
        assert!(!early.would_take(2) && early.would_take(3) && !early.is_used());
        for part in 0..WAITING_MAX {
            assert!(early.would_take(9), "part {part}");
            early.give(Bytes::from(vec![0; part]));
        }
        assert!(early.is_used() && !early.would_take(9));
        assert_eq!(parts.try_recv(), Ok(Bytes::new()));
        assert!(early.would_take(9));
        drop(parts);
        assert!(!early.would_take(9));
    }
}
