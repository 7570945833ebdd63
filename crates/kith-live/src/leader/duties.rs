//! What a node leads according to the metadata, and for which partitions it needs new terms.

use super::Event;
use kith_types::{PartitionId, Term};
use std::collections::BTreeMap;

/// The partitions that a node leads according to the metadata. Empty until it is told.
#[derive(Clone, Debug, Default)]
pub struct Duties {
    leads: BTreeMap<PartitionId, Term>,
    /// Partitions that the leader stepped down from although the metadata said that it leads them, with the terms.
    refused: BTreeMap<PartitionId, Term>,
}

impl Duties {
    /// What the metadata said last, with the terms.
    pub fn leads(&self) -> &BTreeMap<PartitionId, Term> {
        &self.leads
    }

    /// Takes in what the metadata say now, and returns what the [`super::Leader`] must be told.
    pub fn told(&mut self, leads: BTreeMap<PartitionId, Term>) -> Vec<Event> {
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
        events
    }

    /// The leader has stepped down: the database has a later term, or another leader has this one. If the metadata still say
    /// that this node leads, it needs a new term, because its process started again or the database was replaced by a copy.
    ///
    /// Returns `true` if the metadata are to be asked soon for new terms for [`Self::take_refused`].
    pub fn stepped_down(&mut self, partition: PartitionId, term: Term) -> bool {
        if self.leads.get(&partition) != Some(&term) {
            return false;
        }
        let is_first = self.refused.is_empty();
        self.refused.insert(partition, term);
        is_first
    }

    /// The partitions that need new terms, with the terms that were refused. If new terms cannot be had, each of them must be
    /// reported to [`Self::stepped_down`] again after a while.
    pub fn take_refused(&mut self) -> BTreeMap<PartitionId, Term> {
        std::mem::take(&mut self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: PartitionId = PartitionId(1);

    fn leads(term: u64) -> BTreeMap<PartitionId, Term> {
        BTreeMap::from([(ONE, Term(term))])
    }

    #[test]
    fn news_become_events_and_old_news_do_not() {
        let mut duties = Duties::default();
        assert_eq!(duties.told(leads(3)), [Event::Lead { partition: ONE, term: Term(3) }]);
        assert_eq!(duties.told(leads(3)), []);
        assert_eq!(duties.told(BTreeMap::new()), [Event::HandOver { partition: ONE }]);
    }

    #[test]
    fn only_a_term_that_the_metadata_still_name_is_asked_for_again_and_once() {
        let mut duties = Duties::default();
        duties.told(leads(3));
        assert!(!duties.stepped_down(ONE, Term(2)), "it was of an earlier term");
        assert!(duties.stepped_down(ONE, Term(3)));
        assert!(!duties.stepped_down(ONE, Term(3)), "somebody asks already");
        assert_eq!(duties.take_refused(), leads(3));
        assert!(duties.stepped_down(ONE, Term(3)));
        duties.told(leads(4));
        assert_eq!(duties.take_refused(), BTreeMap::new(), "there is a new term");
    }
}
