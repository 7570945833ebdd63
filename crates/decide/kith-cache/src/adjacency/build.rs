//! Builds the adjacency of a partition from pages of the database while its log grows.
//!
//! Each page is a snapshot of its own, so the rows of two pages may be from different points. The build therefore
//! applies all changes from the point of its first page to the latest point of all pages. An effect states what exists
//! after it, not a difference. Therefore each row is right in the end, whatever it was before: its last change counts,
//! or, without a change, its page. If a page already contains a change, the build applies the change again, together
//! with all later changes of the same row.
//!
//! This is correct only if no page is older than the changes that the build has applied, and if no page is from a
//! history that the database has lost.

use super::Progress;
use super::state::{AdjacencyState, Fact};
use kith_live::{AssociationKey, Change, TypeId};
use kith_types::{LogPoint, PartitionId, Position, Term};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// A build of the adjacency of one partition. [`super::Adjacency::open`] starts it, and [`Build::next`] says what it
/// needs next.
#[derive(Debug)]
pub struct Build {
    partition: PartitionId,
    /// The number of this build among all builds. Only the newest build of a partition can be installed.
    pub(super) number: u64,
    skipped: BTreeSet<TypeId>,
    state: AdjacencyState,
    objects: Cursor<u64>,
    associations: Cursor<AssociationKey>,
    /// For each term, the greatest position at which a page was read.
    pages: BTreeMap<Term, Position>,
    applied: Option<LogPoint>,
}

/// The next need of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildNeed {
    /// A page of objects with ids above this one. Pass it to [`Build::objects`].
    Objects {
        /// The last id of the page before; `None` for the first page.
        after: Option<u64>,
    },
    /// A page of associations with keys above this one. Pass it to [`Build::associations`].
    Associations {
        /// The last key of the page before; `None` for the first page.
        after: Option<AssociationKey>,
    },
    /// The changes of the log after `after`. Pass them to [`Build::apply`], and call [`Build::begin_term`] if the log
    /// ends in a later term.
    Changes {
        /// The point up to which changes were applied.
        after: LogPoint,
        /// The point up to which changes must be applied.
        until: LogPoint,
    },
    /// Nothing. Pass the build to [`super::Adjacency::install`].
    Nothing,
}

/// The reason why a page or a change is not accepted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The page is older than the changes that were applied. Read it again.
    #[error("the page was read at {at}, and the build has applied {applied}")]
    OldPage {
        /// The point at which the page was read.
        at: LogPoint,
        /// The point up to which changes were applied.
        applied: LogPoint,
    },
    /// The keys do not ascend, were read before, or follow the last page.
    #[error("the rows of the page do not follow those of the page before")]
    Disordered,
    /// A page was read from a history that the database has lost since, because the database was replaced by an older
    /// copy of itself. Open a new build.
    #[error("the database has lost changes that are in a page of the build")]
    HistoryLost,
}

/// The position up to which the pages of objects, or those of associations, were read.
#[derive(Debug)]
struct Cursor<K> {
    last: Option<K>,
    done: bool,
}

impl Build {
    pub(super) fn new(partition: PartitionId, number: u64, skipped: BTreeSet<TypeId>) -> Self {
        let (objects, associations) =
            (Cursor { last: None, done: false }, Cursor { last: None, done: false });
        let (state, pages) = (AdjacencyState::default(), BTreeMap::new());
        Self { partition, number, skipped, state, objects, associations, pages, applied: None }
    }

    /// Returns the partition that is being built.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    /// Returns the memory in use in bytes, estimated from the contents.
    pub fn bytes(&self) -> u64 {
        self.state.bytes()
    }

    /// Returns the point up to which changes were applied. Starts at the point of the first page; `None` before that.
    pub fn applied(&self) -> Option<LogPoint> {
        self.applied
    }

    /// Returns what to read next. Changes come before pages, so that the build never needs more of the log than was
    /// written since its last page.
    pub fn next(&self) -> BuildNeed {
        let until = self.pages.iter().next_back().map(|(&term, &position)| LogPoint { term, position });
        match (self.applied, until) {
            (Some(after), Some(until)) if after < until => BuildNeed::Changes { after, until },
            _ => self.next_page(),
        }
    }

    /// Returns the page to read next, if any is left. The caller may read pages before the changes that [`Build::next`]
    /// asks for, as long as the log keeps those changes.
    pub fn next_page(&self) -> BuildNeed {
        if !self.objects.done {
            BuildNeed::Objects { after: self.objects.last }
        } else if !self.associations.done {
            BuildNeed::Associations { after: self.associations.last }
        } else {
            BuildNeed::Nothing
        }
    }

    /// Adds a page of objects: their ids, ascending, and the point at which the page was read. `last` says that no
    /// objects follow.
    ///
    /// # Errors
    /// [`BuildError`]; the page is then not added.
    pub fn objects(&mut self, at: LogPoint, ids: &[u64], last: bool) -> Result<(), BuildError> {
        self.check(at)?;
        self.objects.advance(ids, last)?;
        self.note(at);
        for &id in ids {
            self.state.set(Fact::Object(id), true);
        }
        Ok(())
    }

    /// Adds a page of associations: their keys, ascending, and the point at which the page was read. `last` says that
    /// none follow.
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

    /// Applies the change at one position of the log. The log that the change was read from must contain the point that
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

    /// Applies the beginning of a later term without changes: the log ends at `point`, at the position that was
    /// applied.
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

    /// Returns the built state and its point, if the build is complete.
    pub(super) fn finish(self) -> Option<(AdjacencyState, BTreeSet<TypeId>, LogPoint)> {
        match self.next() {
            BuildNeed::Nothing => self.applied.map(|applied| (self.state, self.skipped, applied)),
            _ => None,
        }
    }

    /// Refuses a page that is older than the changes that were applied, because later changes of its rows would be
    /// missing.
    fn check(&self, at: LogPoint) -> Result<(), BuildError> {
        match self.applied {
            Some(applied) if at < applied => Err(BuildError::OldPage { at, applied }),
            _ => Ok(()),
        }
    }

    /// Records the point at which a page was read. Changes are applied from the first page on.
    fn note(&mut self, at: LogPoint) {
        self.applied.get_or_insert(at);
        let position = self.pages.entry(at.term).or_default();
        *position = at.position.max(*position);
    }

    /// Moves to a point. If it is of a later term, a page that was read beyond the end of an earlier term is from a
    /// history that the database has lost.
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
    /// Adds a page. A page without keys is the last.
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
