//! Decides when to read the end of a log from the primary database. A critical read, and a proof of freshness, need a
//! read that began after they arrived. Requests that arrive during a read share the next one, so that only one read is
//! under way at a time.

use super::guards::{Guard, Guards};

/// The requests that wait for a read of the end of a log. `W` is one such request. The requests that the node admits
/// limit their number.
#[derive(Debug)]
pub struct Verifier<W> {
    pub(crate) guards: Guards,
    /// The requests that arrived before the read under way began.
    reading: Option<Vec<W>>,
    /// The requests that wait for the next read.
    next: Vec<W>,
}

/// The outcome of a read of the end of a log.
#[derive(Debug, PartialEq, Eq)]
pub struct VerifyOutcome<W> {
    /// The requests that may use the result. A critical read then asks the cache with [`super::Memory::Verified`], and
    /// requires the place that was read.
    pub waiters: Vec<W>,
    /// Whether the next read must begin now.
    pub again: bool,
}

impl<W> Default for Verifier<W> {
    fn default() -> Self {
        Self { guards: Guards::default(), reading: None, next: Vec::new() }
    }
}

impl<W> Verifier<W> {
    /// Returns a verifier without waiting requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a request. Returns whether a read must begin now.
    pub fn arrive(&mut self, waiter: W) -> bool {
        match &mut self.reading {
            Some(reading) if !self.guards.hold(Guard::VerifyAfterArrival) => {
                reading.push(waiter);
                false
            }
            Some(_) => {
                self.next.push(waiter);
                false
            }
            None => {
                self.reading = Some(vec![waiter]);
                true
            }
        }
    }

    /// Ends the read under way, whether or not it succeeded.
    pub fn ended(&mut self) -> VerifyOutcome<W> {
        let waiters = self.reading.take().unwrap_or_default();
        let next = std::mem::take(&mut self.next);
        let again = !next.is_empty();
        if again {
            self.reading = Some(next);
        }
        VerifyOutcome { waiters, again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_counts_only_for_requests_that_arrived_before_it_began() {
        let mut verifier = Verifier::new();
        assert!(verifier.arrive('a'));
        assert!(!verifier.arrive('b') && !verifier.arrive('c'));
        assert_eq!(verifier.ended(), VerifyOutcome { waiters: vec!['a'], again: true });
        assert_eq!(verifier.ended(), VerifyOutcome { waiters: vec!['b', 'c'], again: false });
        assert!(verifier.arrive('d'));
    }
}
