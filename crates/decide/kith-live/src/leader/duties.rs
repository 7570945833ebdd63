//! The partitions that a node leads according to the metadata, and those for which it needs new terms.

use super::Event;
use kith_types::{PartitionId, Term};
use std::collections::BTreeMap;

/// The partitions that a node leads according to the metadata. There are none before the first call of [`Self::update`].
#[derive(Clone, Debug, Default)]
pub struct Duties {
    is_updated: bool,
    leads: BTreeMap<PartitionId, Term>,
    /// The partitions that the node cannot lead although the metadata say that it does, with the terms that it cannot use.
    refused: BTreeMap<PartitionId, Term>,
}

/// The consequences of a change of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct DutyChange {
    /// The events for the [`super::Leader`].
    pub events: Vec<Event>,
    /// Whether the caller must soon get new terms for the partitions of [`Duties::take_refused`].
    pub renews: bool,
}

impl Duties {
    /// Returns the partitions that the node leads according to the latest metadata, with the terms.
    pub fn leads(&self) -> &BTreeMap<PartitionId, Term> {
        &self.leads
    }

    /// Records which partitions the node leads according to the metadata, and in which terms.
    ///
    /// The terms of the first call may have been assigned to an earlier process of the node, which may have used them in a
    /// history that the database has lost since. So they are not used: the node needs new ones.
    pub fn update(&mut self, leads: BTreeMap<PartitionId, Term>) -> DutyChange {
        if !self.is_updated {
            self.is_updated = true;
            self.refused = leads.clone();
            self.leads = leads;
            return DutyChange { events: Vec::new(), renews: !self.refused.is_empty() };
        }
        let before = std::mem::replace(&mut self.leads, leads);
        let mut events = Vec::new();
        for (&partition, &term) in &self.leads {
            if before.get(&partition) != Some(&term) {
                self.refused.remove(&partition);
                events.push(Event::Lead { partition, term });
            }
        }
        let lost = before.into_keys().filter(|partition| !self.leads.contains_key(partition));
        events.extend(lost.map(|partition| Event::HandOver { partition }));
        DutyChange { events, renews: false }
    }

    /// Records that the leader has stepped down from a term. If the metadata still say that this node leads the partition in
    /// this term, the node needs a new term. This happens if its process started again, or if the database was replaced by a
    /// copy of itself.
    ///
    /// Returns `true` if the partition is the first in [`Self::take_refused`], so that the caller must soon get new
    /// terms.
    pub fn stepped_down(&mut self, partition: PartitionId, term: Term) -> bool {
        if self.leads.get(&partition) != Some(&term) {
            return false;
        }
        let is_first = self.refused.is_empty();
        self.refused.insert(partition, term);
        is_first
    }

    /// Returns the partitions that need new terms, with the terms that the node cannot use, and forgets them. If the caller
    /// gets no new terms, it must report each partition to [`Self::stepped_down`] again after a while.
    pub fn take_refused(&mut self) -> BTreeMap<PartitionId, Term> {
        std::mem::take(&mut self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: PartitionId = PartitionId(1);

    /// Returns the duties of a process that leads nothing when it starts.
    fn begun() -> Duties {
        let mut duties = Duties::default();
        assert_eq!(duties.update(BTreeMap::new()), DutyChange { events: vec![], renews: false });
        duties
    }

    fn leads(term: u64) -> BTreeMap<PartitionId, Term> {
        BTreeMap::from([(ONE, Term(term))])
    }

    #[test]
    fn news_become_events_and_old_news_do_not() {
        let mut duties = begun();
        assert_eq!(duties.update(leads(3)).events, [Event::Lead { partition: ONE, term: Term(3) }]);
        assert_eq!(duties.update(leads(3)).events, []);
        assert_eq!(duties.update(BTreeMap::new()).events, [Event::HandOver { partition: ONE }]);
    }

    #[test]
    fn terms_of_an_earlier_process_are_not_used() {
        let mut duties = Duties::default();
        assert_eq!(duties.update(leads(3)), DutyChange { events: vec![], renews: true });
        assert_eq!(duties.take_refused(), leads(3));
        let begins = Event::Lead { partition: ONE, term: Term(4) };
        assert_eq!(duties.update(leads(4)), DutyChange { events: vec![begins], renews: false });
        assert!(!begun().update(BTreeMap::new()).renews);
    }

    #[test]
    fn only_a_term_that_the_metadata_still_name_is_asked_for_again_and_once() {
        let mut duties = begun();
        duties.update(leads(3));
        assert!(!duties.stepped_down(ONE, Term(2)), "the report is about an earlier term");
        assert!(duties.stepped_down(ONE, Term(3)));
        assert!(!duties.stepped_down(ONE, Term(3)), "new terms have been requested already");
        assert_eq!(duties.take_refused(), leads(3));
        assert!(duties.stepped_down(ONE, Term(3)));
        duties.update(leads(4));
        assert_eq!(duties.take_refused(), BTreeMap::new(), "there is a new term");
    }
}
