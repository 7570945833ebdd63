//! The cache of one partition. It follows the log, and accepts fills that are not older than the applied changes.

use super::entry::Entry;
use super::freshness::{Freshness, Nonce};
use super::guards::{Guard, Guards};
use super::indexed::touch_indexes;
use super::key::{FillKey, Key};
use super::pending::PendingChanges;
use super::recent::Recent;
use super::store::{HeldEntry, Store};
use crate::flights::{AfterFailure, Failure, FlightId, Flights};
use kith_live::{Change, Effect, RowAnswer, RowQuery};
use kith_types::{LogPoint, PartitionId, Position, Term, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most terms whose fills are ahead of the cache. If there are more, the cache is emptied.
const TERMS_AHEAD_MAX: usize = 16;

/// The state of one partition, except for its entries.
#[derive(Debug)]
pub(super) struct Partition<W> {
    /// The current epoch. Entries of other epochs are ignored.
    pub(super) epoch: u64,
    /// The epoch before which entries of indexes are ignored too.
    pub(super) indexes_epoch: u64,
    pub(super) applied: LogPoint,
    /// The greatest place that the log is known to have reached.
    pub(super) seen: LogPoint,
    pub(super) recent: Recent,
    pub(super) freshness: Freshness,
    pub(super) guards: Guards,
    flights: Flights<FillKey, W>,
    fills_max: usize,
    /// The changes during each fill under way.
    pending: BTreeMap<FillKey, PendingChanges>,
    /// The greatest position, by term, at which an entry was read that the cache had not applied yet.
    ahead: BTreeMap<Term, Position>,
    /// The greatest position that was found in the log, by earlier term.
    pub(super) contained: BTreeMap<Term, Position>,
    /// The number of jumps of the cache.
    pub(super) jumps: u64,
}

impl<W> Partition<W> {
    pub(super) fn new(
        epoch: u64,
        at: LogPoint,
        recent: Recent,
        freshness: Freshness,
        fills_max: usize,
    ) -> Self {
        Self {
            epoch,
            indexes_epoch: epoch,
            applied: at,
            seen: at,
            recent,
            freshness,
            guards: Guards::default(),
            flights: Flights::new(),
            fills_max,
            pending: BTreeMap::new(),
            ahead: BTreeMap::new(),
            contained: BTreeMap::new(),
            jumps: 0,
        }
    }

    pub(super) fn flight_count(&self) -> usize {
        self.flights.len()
    }

    /// Returns the epoch of entries with this key.
    pub(super) fn epoch_of(&self, key: Key) -> u64 {
        match key {
            Key::Entries(..) => self.epoch.max(self.indexes_epoch),
            _ => self.epoch,
        }
    }

    /// Whether no applied change has changed the value since it was read.
    pub(super) fn is_current(&self, key: FillKey, entry: &Entry) -> bool {
        let Partition { applied, recent, guards, .. } = self;
        let at = entry.at;
        let known = *applied <= at || recent.reaches(at) || !guards.hold(Guard::RefuseBeforeMemory);
        let changed = recent.changed_after(key.changes_with(), at);
        known && !(changed && guards.hold(Guard::RefuseChanged)) && self.has_same_objects(entry)
    }

    /// Whether no object of an entry of an index has changed since it was read, nor one whose keys are unknown. Changes
    /// are also remembered under the keys that objects have got, but not under those that they had before.
    fn has_same_objects(&self, entry: &Entry) -> bool {
        let Partition { applied, recent, guards, .. } = self;
        let at = entry.at;
        let Some(ids) = entry.ids().filter(|_| at < *applied) else { return true };
        let changed = |id: &u64| recent.changed_after(Key::Object(*id), at);
        let has_changed = guards.hold(Guard::RefuseChangedObjects) && ids.iter().any(changed);
        !has_changed && !recent.changed_after(Key::Indexes, at)
    }

    /// Applies to the entry the changes since it was read. Returns `false` if they are not known.
    fn bring_up_to_date(&self, key: FillKey, entry: &mut Entry) -> bool {
        let Partition { applied, recent, pending, .. } = self;
        if self.is_current(key, entry) {
            entry.at = entry.at.max(*applied);
            return true;
        }
        // The changes of an index are not noted, because they do not name the keys that objects had before.
        if entry.ids().is_some() {
            return false;
        }
        let FillKey::Entry(of) = key else { return false };
        let noted = pending.get(&key).filter(|_| recent.reaches(entry.at));
        let Some(changes) = noted.and_then(|pending| pending.after(entry.at)) else { return false };
        let current = changes.into_iter().all(|effect| entry.apply(of, effect));
        entry.at = *applied;
        current
    }
}

/// The cache of one partition, borrowed from [`super::LiveCaches`]. `W` is a waiter for a fill, such as the sending end
/// of a channel.
#[derive(Debug)]
pub struct PartitionCache<'a, W> {
    pub(super) id: PartitionId,
    pub(super) partition: &'a mut Partition<W>,
    pub(super) store: &'a mut Store,
}

/// The outcome of applying a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "after a gap, the log must be read"]
pub enum Progress {
    /// The change was applied.
    Applied,
    /// The change was applied before, or is of a term that has ended.
    Known,
    /// Earlier changes are missing. Read the log after this place. If the log no longer contains this place, or not the
    /// changes that follow it, call [`PartitionCache::jump`].
    Gap {
        /// The place that the cache has applied.
        after: LogPoint,
    },
}

/// Whether to read the rows of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissDecision {
    /// Read the rows, and report the outcome to [`PartitionCache::land`] or [`PartitionCache::failed`].
    Fetch(FlightId),
    /// The rows are being read; call [`PartitionCache::join`].
    Join(FlightId),
    /// As many rows of the partition are being read as allowed. Refuse the request as overloaded.
    Busy,
    /// Rows of this kind are not cached. Read them without a flight.
    Uncached,
}

/// Valid rows that were read for the cache, whether or not they were kept. Requests that waited for them pass them to
/// [`PartitionCache::ask`], so that evictions in the meantime do not change the answer.
#[derive(Clone, Debug)]
pub struct FilledRows {
    pub(super) key: FillKey,
    pub(super) entry: Arc<Entry>,
}

/// The outcome of a flight.
#[derive(Debug)]
pub struct FlightOutcome<W> {
    /// The rows. `None` if they were read before a change that the cache has applied; they must then be read again.
    pub filled: Option<FilledRows>,
    /// The waiters of the flight. Each asks again, and passes the rows if there are any.
    pub waiters: Vec<W>,
}

impl<W> PartitionCache<'_, W> {
    /// Returns the last place of the log that the cache has applied.
    pub fn applied(&self) -> LogPoint {
        self.partition.applied
    }

    /// Applies the change at one position of the log. The log that the change was read from must contain
    /// [`Self::applied`], as a read of the log that began there does. For changes that another node sends unasked, use
    /// [`Self::apply_after`].
    pub fn apply(&mut self, point: LogPoint, change: &Change, now: Timestamp) -> Progress {
        let applied = self.partition.applied;
        if point <= applied {
            return Progress::Known;
        }
        if point.position != applied.position.next() {
            return Progress::Gap { after: applied };
        }
        self.move_to(point);
        for effect in &change.effects {
            self.touch(point, effect, now);
        }
        self.partition.recent.forget(now);
        Progress::Applied
    }

    /// Applies a change that follows `after` in the log of its sender, who does not know what this cache has applied.
    /// The first change of a later term is a gap unless the cache has applied `after`: the database may have been
    /// replaced by an older copy of itself, which uses positions again that the cache has applied.
    pub fn apply_after(
        &mut self,
        after: LogPoint,
        point: LogPoint,
        change: &Change,
        now: Timestamp,
    ) -> Progress {
        let applied = self.partition.applied;
        let same_log = point.term == applied.term || after == applied;
        if applied < point && !same_log && self.partition.guards.hold(Guard::SameLog) {
            return Progress::Gap { after: applied };
        }
        self.apply(point, change, now)
    }

    /// Applies the beginning of a later term without changes: the log ends at `point`, at the position that the cache
    /// has applied. As for [`Self::apply`], the log must contain [`Self::applied`].
    pub fn begin_term(&mut self, point: LogPoint) -> Progress {
        let applied = self.partition.applied;
        if point <= applied {
            return Progress::Known;
        }
        if point.position != applied.position {
            return Progress::Gap { after: applied };
        }
        self.move_to(point);
        Progress::Applied
    }

    /// Empties the cache and continues from `at`, because the log does not reach back to [`Self::applied`] or does not
    /// contain it. Fills that were read before `at` are refused. `O(1)` in the number of entries.
    pub fn jump(&mut self, at: LogPoint) {
        (self.partition.applied, self.partition.seen) = (at, at);
        self.partition.jumps += 1;
        self.partition.freshness.reset();
        if self.partition.guards.hold(Guard::MemoryBeginsAtJump) {
            self.partition.recent.begin(at);
        }
        if self.partition.guards.hold(Guard::FindAgainAfterJump) {
            self.partition.contained.clear();
        }
        self.forget_entries();
    }

    /// Switches off a rule, for tests and simulations.
    #[doc(hidden)]
    pub fn switch_off(&mut self, guard: Guard) {
        self.partition.guards.off = Some(guard);
        self.partition.freshness.guards.off = Some(guard);
    }

    /// Empties the cache, which continues from the place that it has applied. `O(1)` in the number of entries.
    pub fn empty(&mut self) {
        self.partition.recent.begin(self.partition.applied);
        self.forget_entries();
    }

    /// Creates a question about the end of the log, which the caller must send to the leader now. `now` must come from
    /// a clock that also runs while the machine is suspended.
    pub fn ask_freshness(&mut self, now: Timestamp) -> Nonce {
        self.partition.freshness.ask(now)
    }

    /// Handles the leader's reply: the end of the log, which the leader read from the primary database after the
    /// question arrived.
    pub fn prove_freshness(&mut self, nonce: Nonce, end: LogPoint, now: Timestamp) {
        self.partition.freshness.replied(nonce, end, self.partition.applied, now);
    }

    /// Returns the time before which the cache answers from memory.
    pub fn fresh_until(&self) -> Timestamp {
        self.partition.freshness.until()
    }

    /// Decides whether to read the rows of `query`, which [`super::CacheReply::Missing`] named.
    pub fn begin(&mut self, query: &RowQuery) -> MissDecision {
        let Some(key) = FillKey::of(query) else { return MissDecision::Uncached };
        if let Some(flight) = self.partition.flights.find(&key) {
            self.store.counters.joined += 1;
            return MissDecision::Join(flight);
        }
        if self.partition.fills_max <= self.partition.flights.len() {
            return MissDecision::Busy;
        }
        self.partition.pending.insert(key, PendingChanges::new(self.partition.applied));
        MissDecision::Fetch(self.partition.flights.start(key))
    }

    /// Waits for a flight.
    ///
    /// # Errors
    /// Returns the waiter if the flight has ended by now; the caller must ask again.
    pub fn join(&mut self, flight: FlightId, waiter: W) -> Result<(), W> {
        self.partition.flights.join(flight, waiter)
    }

    /// Ends a flight with the rows that answer `query` and the place at which they were read, both from one snapshot.
    pub fn land(
        &mut self,
        flight: FlightId,
        at: LogPoint,
        query: &RowQuery,
        answer: &RowAnswer,
    ) -> FlightOutcome<W> {
        let filled = self.fill(at, query, answer);
        let ended = self.partition.flights.end(flight);
        let waiters = ended.map_or(Vec::new(), |(flight, waiters)| {
            self.partition.pending.remove(&flight.key);
            waiters
        });
        FlightOutcome { filled, waiters }
    }

    /// Ends a flight without rows.
    pub fn failed(&mut self, flight: FlightId, query: &RowQuery, failure: Failure) -> AfterFailure<W> {
        self.store.counters.failures += 1;
        let landing = self.partition.flights.fail(flight, failure);
        if let (AfterFailure::Wake(_), Some(key)) = (&landing, FillKey::of(query)) {
            self.partition.pending.remove(&key);
        }
        landing
    }

    /// Adds rows and the place at which they were read, both from one snapshot. Returns `None` if they are older than
    /// the applied changes, or if that is unknown; they must then not be used.
    pub fn fill(&mut self, at: LogPoint, query: &RowQuery, answer: &RowAnswer) -> Option<FilledRows> {
        let key = FillKey::of(query)?;
        let mut entry = Entry::read(at, query, answer)?;
        if !self.partition.bring_up_to_date(key, &mut entry) {
            self.store.counters.refused += 1;
            return None;
        }
        let entry = Arc::new(entry);
        if let FillKey::Entry(key) = key {
            self.keep(key, &entry);
        }
        Some(FilledRows { key, entry })
    }

    fn keep(&mut self, key: Key, entry: &Arc<Entry>) {
        let epoch = self.partition.epoch_of(key);
        let Partition { applied, ahead, .. } = &mut *self.partition;
        if let Some(held) = self.store.get((self.id, key), epoch) {
            let newer = entry.at.max(*applied) < held.at;
            if newer || held.knows_more_than(entry) {
                return;
            }
        }
        if *applied < entry.at {
            let position = ahead.entry(entry.at.term).or_default();
            *position = entry.at.position.max(*position);
        }
        self.store.keep((self.id, key), HeldEntry { epoch, entry: Arc::clone(entry) });
        if TERMS_AHEAD_MAX < self.partition.ahead.len() {
            self.forget_entries();
        }
    }

    fn touch(&mut self, point: LogPoint, effect: &Effect, now: Timestamp) {
        for key in Key::touched(effect) {
            if key.changes_with() == key {
                self.partition.recent.note(key, point, now);
            }
            if let Some(pending) = self.partition.pending.get_mut(&FillKey::Entry(key)) {
                pending.note(point, effect);
            }
            let (epoch, guards) = (self.partition.epoch, self.partition.guards);
            self.store.update((self.id, key), epoch, |entry| {
                if guards.hold(Guard::IgnoreOlderChanges) && point <= entry.at {
                    return true;
                }
                entry.apply(key, effect)
            });
        }
        touch_indexes(self, point, effect, now);
    }

    fn move_to(&mut self, point: LogPoint) {
        let Partition { applied, seen, recent, ahead, guards, .. } = &mut *self.partition;
        let was = std::mem::replace(applied, point);
        *seen = point.max(*seen);
        if was.term != point.term && guards.hold(Guard::LostHistory) {
            recent.note_term(point.term, was.position);
            // Entries that were read beyond the end of an earlier term are from a history that the database has lost.
            let lost = ahead.range(..point.term).any(|(_, position)| was.position < *position);
            ahead.retain(|term, _| point.term <= *term);
            if lost {
                self.forget_entries();
            }
        }
        self.partition.freshness.applied(point);
    }

    fn forget_entries(&mut self) {
        self.partition.epoch = self.store.next_epoch();
        self.partition.ahead.clear();
    }
}
