//! Random histories. Every answer is the state of the twin at the place that the answer names, although fills arrive
//! late and in any order, entries are evicted, logs are trimmed, terms begin, and databases are replaced by older
//! copies.

use super::dice::Dice;
use super::truth::{State, Truth, cache, list, open, options, parts_are_right, types};
use crate::live::guards::Guard;
use crate::live::query::{CacheReply, DatedAnswer, Memory, Need, Query, Start};
use crate::live::{FilledRows, LiveCacheOptions, LiveCaches, MissDecision, Progress};
use crate::{AfterFailure, CacheCounters, Failure, FlightId};
use kith_live::{RowAnswer, RowQuery};
use kith_types::{LogPoint, PartitionId, Timestamp};
use std::time::Duration;

/// Rows that were read from the database but have not arrived yet.
struct Fill {
    flight: Option<FlightId>,
    at: LogPoint,
    row: RowQuery,
    answer: RowAnswer,
    query: Query,
}

struct Run {
    dice: Dice,
    off: Option<Guard>,
    truth: Truth,
    caches: LiveCaches<u64>,
    bytes_max: u64,
    fills: Vec<Fill>,
    now: Timestamp,
    /// The log is trimmed up to this place.
    trimmed: u64,
    /// Rows that were read for earlier queries.
    kept: Vec<FilledRows>,
    /// The number of waiters that must still be woken.
    waiting: u64,
}

/// Runs one history, and returns the counters of the caches. An error says what was wrong.
fn run(seed: u64, off: Option<Guard>) -> Result<CacheCounters, String> {
    let mut dice = Dice(seed);
    let bytes_max = [3_000, 12_000, 1 << 20][dice.below(3) as usize];
    let recent_max = if dice.once_in(3) { 6 } else { 1_000 };
    let mut caches = LiveCaches::new(LiveCacheOptions { recent_max, fills_max: 6, ..options(bytes_max) });
    let truth = Truth::new();
    // Some nodes learn of a type only after objects of it, and some never do.
    caches.set_types(types(dice.below(2) as usize));
    open(&mut caches, truth.end, off);
    let (fills, now) = (Vec::new(), Timestamp::ZERO);
    let mut run =
        Run { dice, off, truth, caches, bytes_max, fills, now, trimmed: 0, kept: vec![], waiting: 0 };
    for _ in 0..120 {
        run.step()?;
        let bytes = run.caches.counters().bytes;
        if run.bytes_max < bytes {
            return Err(format!("{bytes} bytes of at most {}", run.bytes_max));
        }
    }
    run.settle()
}

impl Run {
    fn step(&mut self) -> Result<(), String> {
        match self.dice.below(24) {
            0..6 => {
                let op = self.dice.op();
                self.truth.write(op);
            }
            6..10 => self.follow()?,
            10..15 => {
                let query = self.dice.query();
                self.ask(&query)?;
            }
            15..19 => self.deliver()?,
            19 => self.read_early(),
            20 => self.now = self.now + Duration::from_secs(self.dice.below(100)),
            21 if self.dice.once_in(6) => self.caches.set_types(types(1)),
            21 => self.disturb(),
            22 => self.crowd(),
            _ => self.repeat()?,
        }
        Ok(())
    }

    /// Applies the next change of the log, or jumps if the log does not reach back or has another history.
    fn follow(&mut self) -> Result<(), String> {
        let applied = cache(&mut self.caches).applied();
        if self.dice.once_in(3) {
            self.push();
            return Ok(());
        }
        if !self.truth.contains(applied) || applied.position.0 < self.trimmed {
            let end = self.truth.end;
            cache(&mut self.caches).jump(end);
            return Ok(());
        }
        let now = self.now;
        // A term may have begun here. The follower may learn of it before the next change, or only with it.
        let begun = self.truth.points.iter().rev().find(|at| at.position == applied.position);
        if let Some(begun) = begun.copied().filter(|begun| applied < *begun && self.dice.once_in(2)) {
            return expect(cache(&mut self.caches).begin_term(begun), Progress::Applied);
        }
        let Some((point, change)) = self.truth.after(applied) else { return Ok(()) };
        let (point, change) = (*point, change.clone());
        let mut cache = cache(&mut self.caches);
        let progress = match self.dice.once_in(2) {
            true => cache.apply(point, &change, now),
            false => cache.apply_after(applied, point, &change, now),
        };
        expect(progress, Progress::Applied)
    }

    /// The leader sends its last change to every follower, unasked.
    fn push(&mut self) {
        let now = self.now;
        let Some((point, change)) = self.truth.log.last() else { return };
        // The last place of the log before the change. It is in the change's own term if that term had begun by then.
        let after = self.truth.points.iter().rev().find(|at| at.position.0 + 1 == point.position.0);
        let after = after.copied().unwrap_or_default();
        let _ = cache(&mut self.caches).apply_after(after, *point, change, now);
    }

    /// Changes that arrive a second time, or too early.
    fn repeat(&mut self) -> Result<(), String> {
        let applied = cache(&mut self.caches).applied();
        if self.truth.log.is_empty() || !self.truth.contains(applied) {
            return Ok(());
        }
        let index = self.dice.below(self.truth.log.len() as u64) as usize;
        let (point, change) = self.truth.log[index].clone();
        let now = self.now;
        let expected = match point.position.0 {
            position if position <= applied.position.0 => Progress::Known,
            position if position == applied.position.0 + 1 => return Ok(()),
            _ => Progress::Gap { after: applied },
        };
        expect(cache(&mut self.caches).apply(point, &change, now), expected)
    }

    /// New terms, older copies of the database, trimmed logs, emptied caches and restarts.
    fn disturb(&mut self) {
        let end = self.truth.end.position.0;
        match self.dice.below(6) {
            0 | 1 => {
                self.truth.begin_term();
            }
            2 => {
                let lost = self.dice.below(4);
                self.truth.restore(end.saturating_sub(lost));
            }
            3 => self.trimmed = end.saturating_sub(self.dice.below(3)),
            4 => cache(&mut self.caches).empty(),
            _ => {
                // A restarted node knows none of the flights.
                let at = self.truth.end;
                open(&mut self.caches, at, self.off);
                self.fills.retain_mut(|fill| {
                    fill.flight = None;
                    true
                });
                self.waiting = 0;
                self.kept.clear();
            }
        }
    }

    /// Another partition needs memory.
    fn crowd(&mut self) {
        let mut other = self.caches.open(PartitionId(8), self.truth.end);
        for _ in 0..20 {
            let id = self.dice.below(1_000);
            other.fill(self.truth.end, &RowQuery::Object(id), &RowAnswer::Object(None));
        }
    }

    /// Fills rows that nobody waits for, as a leader does after a commit.
    fn read_early(&mut self) {
        let query = self.dice.query();
        if self.dice.once_in(2) {
            let row = RowQuery::List { list: list(self.dice.below(2)), after: None, skip: 0, limit: 1 };
            return self.read(None, row, query);
        }
        let need = Need { memory: Memory::Bypass, ..Need::default() };
        if let CacheReply::Missing(rows) = cache(&mut self.caches).ask(&query, need, self.now) {
            for row in rows {
                let row = Self::paged(row, &query);
                self.read(None, row, query.clone());
            }
        }
    }

    /// Sometimes the page that a query asks for by its index, as it is read of lists that are too long to be kept, in the place of
    /// a prefix.
    fn paged(row: RowQuery, query: &Query) -> RowQuery {
        match (row, query) {
            (
                RowQuery::List { list, after: None, .. },
                &Query::Range { start: Start::Index(skip), limit, .. },
            ) if skip % 2 == 1 => RowQuery::List { list, after: None, skip, limit },
            (row, _) => row,
        }
    }

    /// Reads rows at a place near the end of the log, because databases replicate with a delay.
    fn read(&mut self, flight: Option<FlightId>, row: RowQuery, query: Query) {
        // With the requested limits, most lists of this test would be read as a whole.
        let short = self.dice.below(6) as u32;
        let row = match row {
            RowQuery::List { list, after: None, skip: 0, .. } if short != 0 => {
                RowQuery::List { list, after: None, skip: 0, limit: short }
            }
            other => other,
        };
        let back = self.dice.below(4) as usize;
        let points = &self.truth.points;
        let at = points[points.len().saturating_sub(1 + back)];
        let answer = self.truth.read(at, &row);
        self.fills.push(Fill { flight, at, row, answer, query });
    }

    fn ask(&mut self, query: &Query) -> Result<(), String> {
        let after = match self.dice.below(4) {
            0 => self.truth.end,
            _ => LogPoint::default(),
        };
        let filled = self.kept.clone();
        let need = Need { after, memory: Memory::Verified, filled: &filled };
        match cache(&mut self.caches).ask(query, need, self.now) {
            CacheReply::Answer(answered) => self.check(query, &answered, after),
            CacheReply::Missing(rows) => {
                for row in rows {
                    let row = Self::paged(row, query);
                    match cache(&mut self.caches).begin(&row) {
                        MissDecision::Fetch(flight) => self.read(Some(flight), row, query.clone()),
                        MissDecision::Join(flight) => {
                            cache(&mut self.caches).join(flight, 1).map_err(|_| "the flight is over")?;
                            self.waiting += 1;
                        }
                        MissDecision::Busy => {}
                        // Later pages of an index are not kept.
                        MissDecision::Uncached if matches!(row, RowQuery::Entries { after: Some(_), .. }) => {
                        }
                        MissDecision::Uncached => return Err(format!("{row:?} is not cached")),
                    }
                }
                Ok(())
            }
            CacheReply::Wait if cache(&mut self.caches).applied() < after => Ok(()),
            other => Err(format!("{query:?}: {other:?}")),
        }
    }

    /// One of the fills under way arrives or fails.
    fn deliver(&mut self) -> Result<(), String> {
        if self.fills.is_empty() {
            return Ok(());
        }
        let index = self.dice.below(self.fills.len() as u64) as usize;
        let Fill { flight, at, row, answer, query } = self.fills.swap_remove(index);
        if let Some(flight) = flight.filter(|_| self.dice.once_in(8)) {
            let failure = if self.dice.once_in(2) { Failure::Leader } else { Failure::Everyone };
            match cache(&mut self.caches).failed(flight, &row, failure) {
                AfterFailure::Promote(waiters) => {
                    self.waiting -= waiters;
                    self.read(Some(flight), row, query);
                }
                AfterFailure::Wake(waiters) => self.waiting -= waiters.len() as u64,
            }
            return Ok(());
        }
        let filled: Option<FilledRows> = match flight {
            Some(flight) => {
                let landed = cache(&mut self.caches).land(flight, at, &row, &answer);
                self.waiting -= landed.waiters.len() as u64;
                landed.filled
            }
            None => cache(&mut self.caches).fill(at, &row, &answer),
        };
        let Some(filled) = filled else { return Ok(()) };
        self.kept.truncate(2);
        self.kept.insert(0, filled.clone());
        self.kept.sort_by_key(|filled| filled.key);
        let filled = [filled];
        let after = if self.dice.once_in(4) { self.truth.end } else { LogPoint::default() };
        let memory = if self.dice.once_in(2) { Memory::Verified } else { Memory::Bypass };
        let need = Need { after, memory, filled: &filled };
        match cache(&mut self.caches).ask(&query, need, self.now) {
            CacheReply::Answer(answered) => self.check(&query, &answered, after),
            _ => Ok(()),
        }
    }

    /// Checks that the answer is the state at the place that it names, or, if it names a range, that each part is a
    /// state in that range.
    fn check(&mut self, query: &Query, answered: &DatedAnswer, after: LogPoint) -> Result<(), String> {
        let DatedAnswer { answer, from, until } = answered;
        let applied = cache(&mut self.caches).applied();
        if *from < applied.max(after) || until < from {
            return Err(format!("{query:?}: {from} to {until} after {after}, and {applied} is applied"));
        }
        let right = if from == until {
            *answer == self.truth.state(*from).answer(query)
        } else {
            let states: Vec<&State> = self.truth.between(*from, *until).collect();
            parts_are_right(&states, query, answer)
        };
        if right { Ok(()) } else { Err(format!("{query:?} at {from} to {until}: {answer:?}")) }
    }

    /// Finally checks that every query is answered from what is read, with the state at the end of the log.
    fn settle(mut self) -> Result<CacheCounters, String> {
        let counters = self.caches.counters();
        while !self.fills.is_empty() {
            self.deliver()?;
        }
        if self.waiting != 0 {
            return Err(format!("{} waiters were not woken", self.waiting));
        }
        let end = self.truth.end;
        for _ in 0..=2 * self.truth.log.len() + 40 {
            self.follow()?;
        }
        let applied = cache(&mut self.caches).applied();
        if applied != end {
            cache(&mut self.caches).jump(end);
        }
        for _ in 0..20 {
            let query = match self.dice.query() {
                // The page of an index that is not in memory is answered from the database.
                Query::Entries { index, key, limit, .. } => Query::Entries { index, key, after: None, limit },
                other => other,
            };
            let mut filled = Vec::new();
            let mut answer = None;
            for _ in 0..4 {
                let need = Need { after: end, memory: Memory::Verified, filled: &filled };
                match cache(&mut self.caches).ask(&query, need, self.now) {
                    CacheReply::Answer(answered) => {
                        answer = Some(answered.answer);
                        break;
                    }
                    CacheReply::Missing(rows) => {
                        for row in rows {
                            let rows = self.truth.read(end, &row);
                            filled.extend(cache(&mut self.caches).fill(end, &row, &rows));
                            filled.sort_by_key(|filled: &FilledRows| filled.key);
                        }
                    }
                    other => return Err(format!("{query:?}: {other:?}")),
                }
            }
            let right = self.truth.state(end).answer(&query);
            if answer.as_ref() != Some(&right) {
                return Err(format!("{query:?} in the end: {answer:?}, not {right:?}"));
            }
        }
        Ok(counters)
    }
}

fn expect(got: Progress, expected: Progress) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{got:?}, not {expected:?}")) }
}

#[test]
fn answers_are_the_states_that_they_state() {
    let runs: u64 = std::env::var("KITH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2_000);
    let mut all = [0; 6];
    for seed in 0..runs {
        let counters = run(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let CacheCounters { hits, misses, joined, refused, evictions, expired, .. } = counters;
        all.iter_mut()
            .zip([hits, misses, joined, refused, evictions, expired])
            .for_each(|(sum, it)| *sum += it);
    }
    assert!(all.iter().all(|sum| runs <= 2 * sum), "all of it happens in most histories: {all:?}");
}

/// Each rule is necessary: without it, some random history produces a wrong answer.
#[test]
fn every_rule_is_needed() {
    for guard in [
        Guard::IgnoreOlderChanges,
        Guard::RefuseChanged,
        Guard::RefuseBeforeMemory,
        Guard::MemoryBeginsAtJump,
        Guard::LostHistory,
        Guard::SameLog,
        Guard::WaitApplied,
        Guard::LeaveOldKeys,
        Guard::ForgetIndexes,
        Guard::RefuseChangedObjects,
    ] {
        let seed = (0..4_000).find(|seed| run(*seed, Some(guard)).is_err());
        assert!(seed.is_some(), "no history needs {guard:?}");
    }
}

#[test]
fn equal_seeds_give_equal_histories() {
    assert_eq!(run(5, None), run(5, None));
}
