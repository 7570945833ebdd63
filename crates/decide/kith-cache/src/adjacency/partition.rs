//! The adjacency of one partition, which follows the log and can be read as of any recent point.

use super::state::{AdjacencyState, Fact};
use super::types::Lists;
use super::undo::{Undo, UndoPart, amend};
use super::{AdjacencyOptions, Progress, Window};
use kith_live::{AssociationKey, Change, ListKey, TypeId};
use kith_types::{LogPoint, Timestamp};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// All lists of one partition.
#[derive(Debug)]
pub(super) struct PartitionAdjacency {
    state: AdjacencyState,
    /// Types whose associations are not kept.
    skipped: BTreeSet<TypeId>,
    applied: LogPoint,
    undo: Undo,
}

/// The reason why a partition cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadableReason {
    /// The point is outside of the window.
    Point(Window),
    /// The associations of the type are not kept.
    Skipped,
}

/// The parameters of a read: lists of these types as of a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadParameters<'a> {
    pub(super) at: LogPoint,
    pub(super) lists: Lists,
    /// The types whose associations make their id1 a member.
    pub(super) joining: &'a BTreeSet<TypeId>,
}

impl PartitionAdjacency {
    /// Returns a partition in its state at `at`. No earlier point can be read.
    pub(super) fn new(
        state: AdjacencyState,
        skipped: BTreeSet<TypeId>,
        at: LogPoint,
        options: AdjacencyOptions,
    ) -> Self {
        let undo = Undo::new(at, options.undo_for, options.undo_max);
        Self { state, skipped, applied: at, undo }
    }

    pub(super) fn window(&self) -> Window {
        Window { from: self.undo.from(), to: self.applied }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.state.bytes() + self.undo.bytes()
    }

    pub(super) fn skipped(&self) -> &BTreeSet<TypeId> {
        &self.skipped
    }

    /// As [`super::Adjacency::apply`].
    pub(super) fn apply(&mut self, point: LogPoint, change: &Change, now: Timestamp) -> Progress {
        let applied = self.applied;
        if point <= applied {
            return Progress::Known;
        }
        if point.position != applied.position.next() {
            return Progress::Gap { after: applied };
        }
        self.move_to(point);
        for effect in &change.effects {
            let (fact, present) = Fact::of(effect);
            self.set(fact, present, now);
        }
        self.undo.forget(now);
        Progress::Applied
    }

    /// As [`super::Adjacency::apply_after`].
    pub(super) fn apply_after(
        &mut self,
        after: LogPoint,
        point: LogPoint,
        change: &Change,
        now: Timestamp,
    ) -> Progress {
        let applied = self.applied;
        if applied < point && point.term != applied.term && after != applied {
            return Progress::Gap { after: applied };
        }
        self.apply(point, change, now)
    }

    /// As [`super::Adjacency::begin_term`].
    pub(super) fn begin_term(&mut self, point: LogPoint) -> Progress {
        let applied = self.applied;
        if point <= applied {
            return Progress::Known;
        }
        if point.position != applied.position {
            return Progress::Gap { after: applied };
        }
        self.move_to(point);
        Progress::Applied
    }

    /// As [`super::Adjacency::forget`].
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.undo.forget(now);
    }

    fn move_to(&mut self, point: LogPoint) {
        if point.term != self.applied.term {
            self.undo.note_term(point.term, self.applied.position);
        }
        self.applied = point;
    }

    fn set(&mut self, fact: Fact, present: bool, now: Timestamp) {
        if let Fact::Association(key) = fact
            && self.skipped.contains(&key.list.kind)
        {
            return;
        }
        if !self.state.set(fact, present) {
            return;
        }
        let mut note = |part, id| self.undo.note(part, id, !present, self.applied, now);
        match fact {
            Fact::Object(id) => note(UndoPart::Object(id), id),
            Fact::Association(AssociationKey { list: ListKey { id1, kind }, id2 }) if id1 == id2 => {
                note(UndoPart::WithItself(kind, id1), id1);
            }
            Fact::Association(AssociationKey { list: ListKey { id1, kind }, id2 }) => {
                note(UndoPart::List(kind, id1), id2);
                note(UndoPart::Inverted(kind, id2), id1);
            }
        }
    }

    /// Whether lists can be read as of a point.
    pub(super) fn check(&self, at: LogPoint) -> Result<(), UnreadableReason> {
        let readable = at <= self.applied && self.undo.reaches(at);
        if readable { Ok(()) } else { Err(UnreadableReason::Point(self.window())) }
    }

    fn check_reading(&self, reading: &ReadParameters<'_>) -> Result<(), UnreadableReason> {
        self.check(reading.at)?;
        if reading.lists.iter().any(|kind| self.skipped.contains(&kind)) {
            return Err(UnreadableReason::Skipped);
        }
        Ok(())
    }

    /// Appends the list of an id to `out`; if two lists are read, one after the other. Returns `false` if the id is not
    /// in the graph.
    pub(super) fn list(
        &self,
        reading: &ReadParameters<'_>,
        id: u64,
        out: &mut Vec<u64>,
    ) -> Result<bool, UnreadableReason> {
        self.check_reading(reading)?;
        let before = out.len();
        for kind in reading.lists.iter() {
            let parts = self.state.list(ListKey { id1: id, kind }).into_iter().flat_map(|list| list.parts());
            amend(parts, self.undo_at(UndoPart::List(kind, id), reading.at), out);
        }
        Ok(before < out.len() || self.is_member(reading, id))
    }

    /// Whether an id has an association with itself, which is in none of its lists.
    pub(super) fn is_with_itself(
        &self,
        reading: &ReadParameters<'_>,
        id: u64,
    ) -> Result<bool, UnreadableReason> {
        self.check_reading(reading)?;
        Ok(reading.lists.iter().any(|kind| self.was_with_itself(kind, id, reading.at)))
    }

    /// Returns the length of the list of an id; if two lists are read, the sum of both lengths. `None` if the id is not
    /// in the graph.
    pub(super) fn length(
        &self,
        reading: &ReadParameters<'_>,
        id: u64,
    ) -> Result<Option<usize>, UnreadableReason> {
        self.check_reading(reading)?;
        let length = reading.lists.iter().map(|kind| self.len_at(kind, id, reading.at)).sum();
        Ok((0 < length || self.is_member(reading, id)).then_some(length))
    }

    /// Appends every id1 whose list contains `id2` to `out`; if two lists are read, one result after the other.
    pub(super) fn postings(
        &self,
        reading: &ReadParameters<'_>,
        id2: u64,
        out: &mut Vec<u64>,
    ) -> Result<(), UnreadableReason> {
        self.check_reading(reading)?;
        for kind in reading.lists.iter() {
            let now = self.state.lists(kind).into_iter().flat_map(|lists| lists.leading_to(id2));
            let others = self.undo_at(UndoPart::Inverted(kind, id2), reading.at);
            if others.is_empty() {
                out.extend(now);
            } else {
                let now: Vec<u64> = now.collect();
                amend(std::iter::once(now.as_slice()), others, out);
            }
        }
        Ok(())
    }

    /// Appends all members to `out` as several ascending runs. An id may be in more than one of them.
    pub(super) fn members(
        &self,
        at: LogPoint,
        joining: &BTreeSet<TypeId>,
        out: &mut Vec<u64>,
    ) -> Result<(), UnreadableReason> {
        self.check(at)?;
        let was = |range, was: &dyn Fn(UndoPart) -> bool| {
            self.changed(range, at).map(|part| (part.id(), was(part))).collect()
        };
        let was_there = |part: UndoPart| self.undo.at(part, at).into_values().any(|was| was);
        amend(self.state.objects.parts(), was(UndoPart::objects(), &was_there), out);
        for &kind in joining {
            let lists = self.state.lists(kind);
            let now: Vec<u64> = lists.into_iter().flat_map(|lists| lists.by_id1.keys().copied()).collect();
            let others = was(UndoPart::lists(kind), &|part| 0 < self.len_at(kind, part.id(), at));
            amend(std::iter::once(now.as_slice()), others, out);
            let now: Vec<u64> =
                lists.into_iter().flat_map(|lists| lists.with_themselves.iter().copied()).collect();
            amend(std::iter::once(now.as_slice()), was(UndoPart::with_themselves(kind), &was_there), out);
        }
        Ok(())
    }

    fn is_member(&self, reading: &ReadParameters<'_>, id: u64) -> bool {
        let at = reading.at;
        self.was(UndoPart::Object(id), id, at, self.state.objects.contains(id))
            || reading
                .joining
                .iter()
                .any(|&kind| 0 < self.len_at(kind, id, at) || self.was_with_itself(kind, id, at))
    }

    fn was_with_itself(&self, kind: TypeId, id: u64, at: LogPoint) -> bool {
        let now = self.state.lists(kind).is_some_and(|lists| lists.with_themselves.contains(&id));
        self.was(UndoPart::WithItself(kind, id), id, at, now)
    }

    /// Whether a part contained an id at a point. `now` says whether it contains it now.
    fn was(&self, part: UndoPart, id: u64, at: LogPoint, now: bool) -> bool {
        self.undo_at(part, at).get(&id).copied().unwrap_or(now)
    }

    fn len_at(&self, kind: TypeId, id1: u64, at: LogPoint) -> usize {
        let now = self.state.list(ListKey { id1, kind }).map_or(0, |list| list.len());
        if at == self.applied { now } else { self.undo.len_at(UndoPart::List(kind, id1), at, now) }
    }

    /// Returns the ids whose presence differed at a point, with their presence then. Empty for the current point.
    fn undo_at(&self, part: UndoPart, at: LogPoint) -> std::collections::BTreeMap<u64, bool> {
        if at == self.applied { Default::default() } else { self.undo.at(part, at) }
    }

    fn changed(&self, range: RangeInclusive<UndoPart>, at: LogPoint) -> impl Iterator<Item = UndoPart> {
        self.undo.changed(range, at)
    }
}
