//! Building the adjacency of a partition from pages of the database while its log goes on.
//!
//! Each page is a snapshot of its own, so the rows of two pages may be of different points. The build therefore applies all
//! changes from the point of its first page on, up to the latest point of all pages. Effects say what there is after them, not
//! what they add, so a row is right in the end whatever it was before: the last change of it counts, and without a change it is
//! as its page says. A change that was in the page already is undone by nothing but a later one, which is applied too.
//!
//! For this to hold, a page must not be older than what was applied, and no page may be of a history that the database has lost.

use super::Progress;
use super::state::{Fact, State};
use kith_live::{AssociationKey, Change, TypeId};
use kith_types::{LogPoint, PartitionId, Position, Term};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// The adjacency of one partition, being built. [`super::Adjacency::open`] begins one, and [`Build::next`] says how it goes on.
#[derive(Debug)]
pub struct Build {
    partition: PartitionId,
    /// Which of the builds of this partition it is.
    pub(super) number: u64,
    skipped: BTreeSet<TypeId>,
    state: State,
    objects: Cursor<u64>,
    associations: Cursor<AssociationKey>,
    /// By term, the greatest position at which a page was read.
    pages: BTreeMap<Term, Position>,
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
    /// The page is older than what was applied. Read it again.
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

/// How far pages of one sort have come.
#[derive(Debug)]
struct Cursor<K> {
    last: Option<K>,
    done: bool,
}

impl Build {
    pub(super) fn new(partition: PartitionId, number: u64, skipped: BTreeSet<TypeId>) -> Self {
        let (objects, associations) =
            (Cursor { last: None, done: false }, Cursor { last: None, done: false });
        let (state, pages) = (State::default(), BTreeMap::new());
        Self { partition, number, skipped, state, objects, associations, pages, applied: None }
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
        let until = self.pages.iter().next_back().map(|(&term, &position)| LogPoint { term, position });
        match (self.applied, until) {
            (Some(after), Some(until)) if after < until => Next::Changes { after, until },
            _ => self.next_page(),
        }
    }

    /// The page to read next, or nothing. Pages may be read before the changes that [`Build::next`] asks for, as long as the log
    /// keeps the changes.
    pub fn next_page(&self) -> Next {
        if !self.objects.done {
            Next::Objects { after: self.objects.last }
        } else if !self.associations.done {
            Next::Associations { after: self.associations.last }
        } else {
            Next::Nothing
        }
    }

    /// Takes the ids of a page of objects, which ascend, and the point at which it was read. `last` says that no objects follow.
    ///
    /// # Errors
    /// The page is not taken; see [`BuildError`].
    pub fn objects(&mut self, at: LogPoint, ids: &[u64], last: bool) -> Result<(), BuildError> {
        self.check(at)?;
        self.objects.advance(ids, last)?;
        self.note(at);
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
        self.check(at)?;
        self.associations.advance(keys, last)?;
        self.note(at);
        for key in keys.iter().filter(|key| !self.skipped.contains(&key.list.kind)) {
            self.state.set(Fact::Association(*key), true);
        }
        Ok(())
    }

    /// Applies what one position of the log changed. The change comes from a log that contains what
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
            match fact {
                Fact::Association(key) if self.skipped.contains(&key.list.kind) => {}
                fact => _ = self.state.set(fact, present),
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

    /// Refuses a page that is older than what was applied: later changes of its rows would be missing.
    fn check(&self, at: LogPoint) -> Result<(), BuildError> {
        match self.applied {
            Some(applied) if at < applied => Err(BuildError::OldPage { at, applied }),
            _ => Ok(()),
        }
    }

    /// Remembers when a page was read. Changes are applied from the first page on.
    fn note(&mut self, at: LogPoint) {
        self.applied.get_or_insert(at);
        let position = self.pages.entry(at.term).or_default();
        *position = at.position.max(*position);
    }

    /// A page that was read beyond the end of an earlier term is of a history that the database has lost.
    fn move_to(&mut self, applied: LogPoint, point: LogPoint) -> Result<(), BuildError> {
        let earlier = self.pages.range(..point.term);
        let mut ahead = earlier.filter(|(_, position)| applied.position < **position);
        if applied.term != point.term && ahead.next().is_some() {
            return Err(BuildError::HistoryLost);
        }
        self.applied = Some(point);
        Ok(())
    }
}

impl<K: Copy + Ord> Cursor<K> {
    /// Takes a page. One without keys is the last.
    fn advance(&mut self, keys: &[K], last: bool) -> Result<(), BuildError> {
        let follows = keys.first().is_none_or(|first| self.last < Some(*first));
        if self.done || !follows || !keys.is_sorted_by(|a, b| a < b) {
            return Err(BuildError::Disordered);
        }
        self.last = keys.last().copied().or(self.last);
        self.done = last || keys.is_empty();
        Ok(())
    }
}
