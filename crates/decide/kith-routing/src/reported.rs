//! Waiting times that routers report to a node. They are accepted as far as they can be true.

use crate::Latencies;

/// The number of answered reads that may be reported later. It is more than a node answers in the seconds until routers
/// report.
const ROOM_MAX: u64 = 1 << 20;

/// The reads that routers reported. A report of more reads than the node has answered is not believed. So a stranger on an
/// unencrypted connection would have to read as much as it claims. O(buckets), bounded.
#[derive(Clone, Debug, Default)]
pub struct ReportedReads {
    /// The number of reads that this node has answered and that nobody has reported.
    room: u64,
    reads: Latencies,
}

impl ReportedReads {
    /// Records that the node has answered a read.
    pub fn answered(&mut self) {
        self.room = (self.room + 1).min(ROOM_MAX);
    }

    /// Takes in the waiting times that a router reports as [`Latencies::counts`]. Returns whether they are believed; if not,
    /// nothing is taken in.
    pub fn tell(&mut self, counts: &[u64]) -> bool {
        let sum = counts.iter().try_fold(0_u64, |sum, reads| sum.checked_add(*reads));
        let Some(reported) = sum.filter(|sum| *sum <= self.room && counts.len() <= Latencies::<32>::BUCKETS)
        else {
            return false;
        };
        self.room -= reported;
        self.reads.add(&Latencies::of_counts(counts));
        true
    }

    /// Returns the reads that were reported since the last call.
    pub fn take(&mut self) -> Latencies {
        std::mem::take(&mut self.reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn waited(reads: u64, millis: u64) -> Latencies {
        let mut latencies = Latencies::default();
        (0..reads).for_each(|_| latencies.record(Duration::from_millis(millis)));
        latencies
    }

    #[test]
    fn routers_are_believed_as_far_as_the_node_has_answered() {
        let mut reported = ReportedReads::default();
        assert!(!reported.tell(waited(1, 10).counts()), "nothing was answered");
        (0..100).for_each(|_| reported.answered());
        assert!(reported.tell(waited(60, 10).counts()));
        assert!(!reported.tell(waited(41, 1_000).counts()), "more than are left");
        assert!(reported.tell(waited(40, 20).counts()));
        let taken = reported.take();
        assert_eq!((taken.count(), taken.above(Duration::from_millis(15))), (100, 40));
        assert_eq!(reported.take().count(), 0);
        assert!(!reported.tell(&[1]), "each read is reported once");
    }

    #[test]
    fn numbers_that_cannot_be_do_no_harm() {
        let mut reported = ReportedReads::default();
        (0..10).for_each(|_| reported.answered());
        assert!(!reported.tell(&[u64::MAX, u64::MAX, 3]), "a sum that wraps around");
        assert!(!reported.tell(&vec![0; 1 << 20]), "more buckets than there are");
        assert!(reported.tell(&[]));
        assert!(reported.tell(&[0, 0, 10]));
        assert_eq!(reported.take().count(), 10);
    }
}
