//! Undo information: the recent changes of a partition, from which its lists can be read as of earlier points.

use kith_live::TypeId;
use kith_types::{LogPoint, Position, Term, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The most terms that are remembered.
const TERMS_MAX: usize = 16;

/// The memory of a note: an entry in the order of all notes, and an entry at its place.
const NOTE_BYTES: u64 = 190;

/// A part of a partition that is read, and therefore undone, on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UndoPart {
    /// Whether an object exists. Its own id is the only one that is added or removed at this place.
    Object(u64),
    /// The list of an id1.
    List(TypeId, u64),
    /// The ids whose lists contain an id2.
    Inverted(TypeId, u64),
    /// Whether an id has an association with itself.
    WithItself(TypeId, u64),
}

impl UndoPart {
    pub(super) fn objects() -> RangeInclusive<Self> {
        Self::Object(0)..=Self::Object(u64::MAX)
    }

    pub(super) fn lists(kind: TypeId) -> RangeInclusive<Self> {
        Self::List(kind, 0)..=Self::List(kind, u64::MAX)
    }

    pub(super) fn with_themselves(kind: TypeId) -> RangeInclusive<Self> {
        Self::WithItself(kind, 0)..=Self::WithItself(kind, u64::MAX)
    }

    /// Returns the id of the object or list.
    pub(super) fn id(self) -> u64 {
        match self {
            Self::Object(id) | Self::List(_, id) | Self::Inverted(_, id) | Self::WithItself(_, id) => id,
        }
    }
}

/// The addition or removal of an id.
#[derive(Clone, Copy, Debug)]
struct Note {
    at: LogPoint,
    id: u64,
    /// Whether the id was there before. It alternates between consecutive notes of one id.
    was: bool,
}

/// The recent changes of one partition.
#[derive(Debug)]
pub(super) struct Undo {
    keep: Duration,
    most: usize,
    /// All changes after this point are known.
    from: LogPoint,
    /// The notes of each place, oldest first. Places without notes are not listed.
    notes: BTreeMap<UndoPart, VecDeque<Note>>,
    /// The places of all notes, oldest first.
    order: VecDeque<(Timestamp, LogPoint, UndoPart)>,
    /// The terms that began after `from`, with the position at which each began.
    terms: VecDeque<(Term, Position)>,
}

impl Undo {
    /// Returns undo information that knows nothing before `from`. It keeps notes for the duration `keep`, and at most
    /// `most` of them.
    pub(super) fn new(from: LogPoint, keep: Duration, most: usize) -> Self {
        let (notes, order, terms) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { keep, most, from, notes, order, terms }
    }

    /// Returns the oldest point that can be read.
    pub(super) fn from(&self) -> LogPoint {
        self.from
    }

    pub(super) fn bytes(&self) -> u64 {
        self.order.len() as u64 * NOTE_BYTES
    }

    /// Records that `id` was added to `part` or removed from it.
    pub(super) fn note(&mut self, part: UndoPart, id: u64, was: bool, at: LogPoint, now: Timestamp) {
        self.notes.entry(part).or_default().push_back(Note { at, id, was });
        self.order.push_back((now, at, part));
        while self.most < self.order.len() {
            self.forget_oldest();
        }
    }

    /// Records that `term` began at `position`.
    pub(super) fn note_term(&mut self, term: Term, position: Position) {
        self.terms.push_back((term, position));
        while TERMS_MAX < self.terms.len()
            && let Some((term, position)) = self.terms.pop_front()
        {
            self.from = self.from.max(LogPoint { term, position });
        }
    }

    /// Drops notes that are too old.
    pub(super) fn forget(&mut self, now: Timestamp) {
        while self.order.front().is_some_and(|(noted, ..)| self.keep < now.since(*noted)) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, at, part)) = self.order.pop_front() else { return };
        self.from = self.from.max(at);
        while self.terms.front().is_some_and(|(term, _)| *term <= self.from.term) {
            self.terms.pop_front();
        }
        if let Some(notes) = self.notes.get_mut(&part) {
            notes.pop_front();
            if notes.is_empty() {
                self.notes.remove(&part);
            }
        }
    }

    /// Whether the state at `point` is known, provided that all changes after `point` were noted. A point beyond the
    /// end of its term is from a history that the database has lost.
    pub(super) fn reaches(&self, point: LogPoint) -> bool {
        if point < self.from {
            return false;
        }
        let began = self.terms.iter().find(|(term, _)| *term == point.term).map(|(_, began)| *began);
        let began = began.or((point.term == self.from.term).then_some(self.from.position));
        let ended = self.terms.iter().find(|(term, _)| point.term < *term).map(|(_, began)| *began);
        match (began, ended) {
            (Some(began), ended) => {
                began <= point.position && ended.is_none_or(|ended| point.position <= ended)
            }
            // The term had no changes.
            (None, ended) => ended == Some(point.position),
        }
    }

    /// Returns the ids of a place that were added or removed after `point`, and whether each was there at `point`.
    /// `O(changes since)`.
    pub(super) fn at(&self, part: UndoPart, point: LogPoint) -> BTreeMap<u64, bool> {
        self.after(part, point).map(|note| (note.id, note.was)).collect()
    }

    /// Returns the number of ids that a place had at `point`, if it has `now` of them now. `O(changes since)`.
    pub(super) fn len_at(&self, part: UndoPart, point: LogPoint, now: usize) -> usize {
        self.after(part, point).fold(now, |len, note| if note.was { len + 1 } else { len.saturating_sub(1) })
    }

    /// Returns the places of a range that have changed after `point`.
    pub(super) fn changed(
        &self,
        range: RangeInclusive<UndoPart>,
        point: LogPoint,
    ) -> impl Iterator<Item = UndoPart> {
        let newest = move |notes: &VecDeque<Note>| notes.back().is_some_and(|note| point < note.at);
        self.notes.range(range).filter(move |(_, notes)| newest(notes)).map(|(part, _)| *part)
    }

    /// Iterates over the notes after `point`, newest first. The last note of an id is therefore its oldest, which holds
    /// the state before all of them.
    fn after(&self, part: UndoPart, point: LogPoint) -> impl Iterator<Item = &Note> {
        let notes = self.notes.get(&part).into_iter().flatten();
        notes.rev().take_while(move |note| point < note.at)
    }
}

/// Appends ids to `out`, with the ids of `others` added or left out as their flags say. `parts` are ascending, as are
/// the ids in each.
pub(super) fn amend<'a>(
    parts: impl Iterator<Item = &'a [u64]>,
    others: BTreeMap<u64, bool>,
    out: &mut Vec<u64>,
) {
    let mut others = others.into_iter().peekable();
    for mut rest in parts {
        while let Some((id, was)) = others.next_if(|(id, _)| rest.last().is_some_and(|last| id <= last)) {
            let (before, after) = rest.split_at(rest.partition_point(|other| *other < id));
            out.extend_from_slice(before);
            out.extend(was.then_some(id));
            rest = if after.first() == Some(&id) { &after[1..] } else { after };
        }
        out.extend_from_slice(rest);
    }
    out.extend(others.filter_map(|(id, was)| was.then_some(id)));
}
