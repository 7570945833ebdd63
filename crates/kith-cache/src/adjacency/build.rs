//! Building the adjacency of a partition from pages of the database while its log goes on.
//!
//! Each page is a snapshot of its own, so the rows of two pages may be of different points. The builder remembers which keys
//! each page covers and the point at which it was read. A change then has an effect on a key only if the page of that key was
//! read before the change: effects up to the point of the page are in the page, and keys that no page covers yet will be read
//! later. Once the changes up to the latest point of all pages are applied, all rows are of one point.

use super::Progress;
use super::state::{Fact, State};
use kith_live::{AssociationKey, Change, TypeId};
use kith_types::{LogPoint, PartitionId};
use std::collections::BTreeSet;
use thiserror::Error;

/// The adjacency of one partition, being built. [`super::Adjacency::open`] begins one, and [`Build::next`] says how it goes on.
#[derive(Debug)]
pub struct Build {
    partition: PartitionId,
    /// Which of the builds of this partition it is.
    pub(super) number: u64,
    skipped: BTreeSet<TypeId>,
    state: State,
    objects: Coverage<u64>,
    associations: Coverage<AssociationKey>,
    applied: Option<LogPoint>,
}

/// What a build needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A page of objects with ids above this one: [`Build::objects`].
    Objects {
        /// The last id that was read.
        after: Option<u64>,
    },
    /// A page of associations with keys above this one: [`Build::associations`].
    Associations {
        /// The last key that was read.
        after: Option<AssociationKey>,
    },
    /// The changes of the log after `after`: [`Build::apply`], and [`Build::begin_term`] where the log ends in a later term.
    Changes {
        /// What was applied.
        after: LogPoint,
        /// What must be applied.
        until: LogPoint,
    },
    /// Nothing: [`super::Adjacency::install`].
    Nothing,
}

/// What cannot become part of a build.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// Changes after the page were applied already, and did not have an effect on its keys. Read the page again.
    #[error("the page was read at {at}, and the build has applied {applied}")]
    OldPage {
        /// Where the page was read.
        at: LogPoint,
        /// What the build has applied.
        applied: LogPoint,
    },
    /// Keys do not ascend, were read before, or follow the last page.
    #[error("the rows of the page do not follow those of the page before")]
    Disordered,
    /// A page was read from a history that the database has lost since: it was replaced by an older copy of itself. Open a new
    /// build.
    #[error("the database has lost changes that are in a page of the build")]
    HistoryLost,
}

/// Which keys were read, and when.
#[derive(Debug)]
struct Coverage<K> {
    /// The last key of each page, and when the page was read. Ascending. Neighbours whose points are applied are one entry.
    pages: Vec<(K, LogPoint)>,
    /// When the last page was read, which covers all greater keys.
    rest: Option<LogPoint>,
}

impl Build {
    pub(super) fn new(partition: PartitionId, number: u64, skipped: BTreeSet<TypeId>) -> Self {
        let (objects, associations) = (Coverage::default(), Coverage::default());
        Self { partition, number, skipped, state: State::default(), objects, associations, applied: None }
    }

    /// The partition that is built.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    /// Memory in use, estimated from what is held.
    pub fn bytes(&self) -> u64 {
        self.state.bytes()
    }

    /// What was applied: the point of the first page at first, and `None` before it.
    pub fn applied(&self) -> Option<LogPoint> {
        self.applied
    }

    /// What to read next. Changes come first, so that the build never needs more of the log than was written since its last page.
    pub fn next(&self) -> Next {
        let until = self.objects.latest().max(self.associations.latest());
        match (self.applied, until) {
            (Some(after), Some(until)) if after < until => Next::Changes { after, until },
            _ => self.next_page(),
        }
    }

    /// The page to read next, or nothing. Pages may be read before the changes that [`Build::next`] asks for, as long as the log
    /// keeps the changes.
    pub fn next_page(&self) -> Next {
        if self.objects.rest.is_none() {
            Next::Objects { after: self.objects.last() }
        } else if self.associations.rest.is_none() {
            Next::Associations { after: self.associations.last() }
        } else {
            Next::Nothing
        }
    }

    /// Takes the ids of a page of objects, which ascend, and the point at which it was read. `last` says that no objects follow.
    ///
    /// # Errors
    /// The page is not taken; see [`BuildError`].
    pub fn objects(&mut self, at: LogPoint, ids: &[u64], last: bool) -> Result<(), BuildError> {
        let applied = self.begin(at)?;
        self.objects.cover(at, ids, last, applied)?;
        for &id in ids {
            self.state.set(Fact::Object(id), true);
        }
        Ok(())
    }

    /// Takes the keys of a page of associations, which ascend, and the point at which it was read. `last` says that none follow.
    ///
    /// # Errors
    /// As [`Build::objects`].
    pub fn associations(
        &mut self,
        at: LogPoint,
        keys: &[AssociationKey],
        last: bool,
    ) -> Result<(), BuildError> {
        let applied = self.begin(at)?;
        self.associations.cover(at, keys, last, applied)?;
        for key in keys.iter().filter(|key| !self.skipped.contains(&key.list.kind)) {
            self.state.set(Fact::Association(*key), true);
        }
        Ok(())
    }

    /// Applies what one position of the log changed, to what was read before it. The change comes from a log that contains what
    /// was applied. Before the first page, all changes are [`Progress::Known`].
    ///
    /// # Errors
    /// [`BuildError::HistoryLost`].
    pub fn apply(&mut self, point: LogPoint, change: &Change) -> Result<Progress, BuildError> {
        let Some(applied) = self.applied.filter(|applied| *applied < point) else {
            return Ok(Progress::Known);
        };
        if point.position != applied.position.next() {
            return Ok(Progress::Gap { after: applied });
        }
        self.move_to(applied, point)?;
        for (fact, present) in change.effects.iter().map(Fact::of) {
            let read_at = match fact {
                Fact::Object(id) => self.objects.read_at(id),
                Fact::Association(key) if self.skipped.contains(&key.list.kind) => None,
                Fact::Association(key) => self.associations.read_at(key),
            };
            if read_at.is_some_and(|read_at| read_at < point) {
                self.state.set(fact, present);
            }
        }
        Ok(Progress::Applied)
    }

    /// A later term began at the position that was applied: the log ends at `point`.
    ///
    /// # Errors
    /// [`BuildError::HistoryLost`].
    pub fn begin_term(&mut self, point: LogPoint) -> Result<Progress, BuildError> {
        let Some(applied) = self.applied.filter(|applied| *applied < point) else {
            return Ok(Progress::Known);
        };
        if point.position != applied.position {
            return Ok(Progress::Gap { after: applied });
        }
        self.move_to(applied, point)?;
        Ok(Progress::Applied)
    }

    /// What was built and the point of which it is, if nothing is missing.
    pub(super) fn finish(self) -> Option<(State, BTreeSet<TypeId>, LogPoint)> {
        match self.next() {
            Next::Nothing => self.applied.map(|applied| (self.state, self.skipped, applied)),
            _ => None,
        }
    }

    /// What was applied: the point of the first page, if this is the first one.
    fn begin(&mut self, at: LogPoint) -> Result<LogPoint, BuildError> {
        let applied = *self.applied.get_or_insert(at);
        if at < applied { Err(BuildError::OldPage { at, applied }) } else { Ok(applied) }
    }

    fn move_to(&mut self, applied: LogPoint, point: LogPoint) -> Result<(), BuildError> {
        let ends = |at: LogPoint| at.term < point.term && applied.position < at.position;
        if applied.term != point.term && (self.objects.any_at(ends) || self.associations.any_at(ends)) {
            return Err(BuildError::HistoryLost);
        }
        self.applied = Some(point);
        Ok(())
    }
}

impl<K> Default for Coverage<K> {
    fn default() -> Self {
        Self { pages: Vec::new(), rest: None }
    }
}

impl<K: Copy + Ord> Coverage<K> {
    fn last(&self) -> Option<K> {
        self.pages.last().map(|(last, _)| *last)
    }

    fn latest(&self) -> Option<LogPoint> {
        self.pages.iter().map(|(_, at)| *at).chain(self.rest).max()
    }

    fn any_at(&self, is: impl Fn(LogPoint) -> bool) -> bool {
        self.pages.iter().map(|(_, at)| *at).chain(self.rest).any(is)
    }

    /// When a key was read; `None` if it was not.
    fn read_at(&self, key: K) -> Option<LogPoint> {
        let place = self.pages.partition_point(|(last, _)| *last < key);
        self.pages.get(place).map(|(_, at)| *at).or(self.rest)
    }

    /// Takes a page. One without keys is the last.
    fn cover(&mut self, at: LogPoint, keys: &[K], last: bool, applied: LogPoint) -> Result<(), BuildError> {
        let follows = keys.first().is_none_or(|first| self.last().is_none_or(|last| last < *first));
        if self.rest.is_some() || !follows || !keys.is_sorted_by(|a, b| a < b) {
            return Err(BuildError::Disordered);
        }
        while let [.., (_, before), (_, at)] = *self.pages.as_slice()
            && before.max(at) <= applied
        {
            self.pages.remove(self.pages.len() - 2);
        }
        self.pages.extend(keys.last().map(|last| (*last, at)));
        if last || keys.is_empty() {
            self.rest = Some(at);
        }
        Ok(())
    }
}
