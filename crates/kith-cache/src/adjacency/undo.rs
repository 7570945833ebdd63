//! What changed lately, so that lists can be read as they were.

use kith_live::TypeId;
use kith_types::{LogPoint, Position, Term, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The most terms that are remembered.
const TERMS_MAX: usize = 16;

/// What a note takes: once in order, and once at its place.
const NOTE_BYTES: u64 = 190;

/// What can be read, and so what is undone together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Whether an object is there. The only id that changes here is its own.
    Object(u64),
    /// The list of an id1.
    List(TypeId, u64),
    /// Who leads to an id2.
    Inverted(TypeId, u64),
    /// Whether an id has an association with itself.
    WithItself(TypeId, u64),
}

impl Place {
    pub(super) fn objects() -> RangeInclusive<Self> {
        Self::Object(0)..=Self::Object(u64::MAX)
    }

    pub(super) fn lists(kind: TypeId) -> RangeInclusive<Self> {
        Self::List(kind, 0)..=Self::List(kind, u64::MAX)
    }

    pub(super) fn with_themselves(kind: TypeId) -> RangeInclusive<Self> {
        Self::WithItself(kind, 0)..=Self::WithItself(kind, u64::MAX)
    }

    /// The id whose object or list it is.
    pub(super) fn id(self) -> u64 {
        match self {
            Self::Object(id) | Self::List(_, id) | Self::Inverted(_, id) | Self::WithItself(_, id) => id,
        }
    }
}

/// An id that came or went.
#[derive(Clone, Copy, Debug)]
struct Note {
    at: LogPoint,
    id: u64,
    /// Whether it was there before. Of consecutive notes of one id, every other one is `true`.
    was: bool,
}

/// The changes of the recent past of one partition.
#[derive(Debug)]
pub(super) struct Undo {
    keep: Duration,
    most: usize,
    /// All changes after this point are known.
    from: LogPoint,
    /// Oldest first. No place is without notes.
    notes: BTreeMap<Place, VecDeque<Note>>,
    /// Which notes there are, oldest first.
    order: VecDeque<(Timestamp, LogPoint, Place)>,
    /// The terms that began after `from`, and the position at which each began.
    terms: VecDeque<(Term, Position)>,
}

impl Undo {
    /// Knows nothing before `from`. Keeps notes for `keep`, and at most `most` of them.
    pub(super) fn new(from: LogPoint, keep: Duration, most: usize) -> Self {
        let (notes, order, terms) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { keep, most, from, notes, order, terms }
    }

    /// The oldest point that can be read.
    pub(super) fn from(&self) -> LogPoint {
        self.from
    }

    pub(super) fn bytes(&self) -> u64 {
        self.order.len() as u64 * NOTE_BYTES
    }

    /// Remembers that `id` came to or left `place`.
    pub(super) fn note(&mut self, place: Place, id: u64, was: bool, at: LogPoint, now: Timestamp) {
        self.notes.entry(place).or_default().push_back(Note { at, id, was });
        self.order.push_back((now, at, place));
        while self.most < self.order.len() {
            self.forget_oldest();
        }
    }

    /// Remembers that `term` began at `position`.
    pub(super) fn note_term(&mut self, term: Term, position: Position) {
        self.terms.push_back((term, position));
        while TERMS_MAX < self.terms.len()
            && let Some((term, position)) = self.terms.pop_front()
        {
            self.from = self.from.max(LogPoint { term, position });
        }
    }

    /// Forgets what is too old.
    pub(super) fn forget(&mut self, now: Timestamp) {
        while self.order.front().is_some_and(|(noted, ..)| self.keep < now.since(*noted)) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, at, place)) = self.order.pop_front() else { return };
        self.from = self.from.max(at);
        while self.terms.front().is_some_and(|(term, _)| *term <= self.from.term) {
            self.terms.pop_front();
        }
        if let Some(notes) = self.notes.get_mut(&place) {
            notes.pop_front();
            if notes.is_empty() {
                self.notes.remove(&place);
            }
        }
    }

    /// Whether what was at `point` can be told, if nothing after `point` is missing. Points of a term that ended before them are
    /// of a history that the database has lost.
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
            // A term without changes.
            (None, ended) => ended == Some(point.position),
        }
    }

    /// The ids of a place that came or went after `point`, and whether each was there at `point`. `O(changes since)`.
    pub(super) fn at(&self, place: Place, point: LogPoint) -> BTreeMap<u64, bool> {
        self.after(place, point).map(|note| (note.id, note.was)).collect()
    }

    /// How many ids a place had at `point`, if it has `now` of them. `O(changes since)`.
    pub(super) fn len_at(&self, place: Place, point: LogPoint, now: usize) -> usize {
        self.after(place, point).fold(now, |len, note| if note.was { len + 1 } else { len.saturating_sub(1) })
    }

    /// The places of a range at which something changed after `point`.
    pub(super) fn changed(
        &self,
        range: RangeInclusive<Place>,
        point: LogPoint,
    ) -> impl Iterator<Item = Place> {
        let newest = move |notes: &VecDeque<Note>| notes.back().is_some_and(|note| point < note.at);
        self.notes.range(range).filter(move |(_, notes)| newest(notes)).map(|(place, _)| *place)
    }

    /// Newest first, so that the oldest note of an id, which comes last, tells what was before all of them.
    fn after(&self, place: Place, point: LogPoint) -> impl Iterator<Item = &Note> {
        let notes = self.notes.get(&place).into_iter().flatten();
        notes.rev().take_while(move |note| point < note.at)
    }
}

/// Appends ids to `out`, with `others` put in or left out as they say. `parts` are ascending, as are the ids of each.
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
