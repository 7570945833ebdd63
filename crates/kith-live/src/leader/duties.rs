//! What a node leads according to the metadata, and for which partitions it needs new terms.

use super::Event;
use kith_types::{PartitionId, Term};
use std::collections::BTreeMap;

/// The partitions that a node leads according to the metadata. Empty until it is told.
#[derive(Clone, Debug, Default)]
pub struct Duties {
    is_told: bool,
    leads: BTreeMap<PartitionId, Term>,
    /// Partitions that the leader does not lead although the metadata say that it does, with the terms that it cannot use.
    refused: BTreeMap<PartitionId, Term>,
}

/// What follows from news of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// What the [`super::Leader`] must be told.
    pub events: Vec<Event>,
    /// Whether the metadata are to be asked soon for new terms for [`Duties::take_refused`].
    pub renews: bool,
}

impl Duties {
    /// What the metadata said last, with the terms.
    pub fn leads(&self) -> &BTreeMap<PartitionId, Term> {
        &self.leads
    }

    /// Takes in what the metadata say now.
    ///
    /// Terms that it is told of first may have been assigned to an earlier process of the node, which may have used them in a
    /// history that the database has lost since. So it asks for new ones.
    pub fn told(&mut self, leads: BTreeMap<PartitionId, Term>) -> Told {
        if !self.is_told {
            self.is_told = true;
            self.refused = leads.clone();
            self.leads = leads;
            return Told { events: Vec::new(), renews: !self.refused.is_empty() };
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
        Told { events, renews: false }
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

    /// A process that leads nothing when it starts.
    fn begun() -> Duties {
        let mut duties = Duties::default();
        assert_eq!(duties.told(BTreeMap::new()), Told { events: vec![], renews: false });
        duties
    }

    fn leads(term: u64) -> BTreeMap<PartitionId, Term> {
        BTreeMap::from([(ONE, Term(term))])
    }

    #[test]
    fn news_become_events_and_old_news_do_not() {
        let mut duties = begun();
        assert_eq!(duties.told(leads(3)).events, [Event::Lead { partition: ONE, term: Term(3) }]);
        assert_eq!(duties.told(leads(3)).events, []);
        assert_eq!(duties.told(BTreeMap::new()).events, [Event::HandOver { partition: ONE }]);
    }

    #[test]
    fn terms_of_an_earlier_process_are_not_used() {
        let mut duties = Duties::default();
        assert_eq!(duties.told(leads(3)), Told { events: vec![], renews: true });
        assert_eq!(duties.take_refused(), leads(3));
        let begins = Event::Lead { partition: ONE, term: Term(4) };
        assert_eq!(duties.told(leads(4)), Told { events: vec![begins], renews: false });
        assert!(!begun().told(BTreeMap::new()).renews);
    }

    #[test]
    fn only_a_term_that_the_metadata_still_name_is_asked_for_again_and_once() {
        let mut duties = begun();
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
