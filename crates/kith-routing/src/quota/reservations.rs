//! Keys that were promised to reads that have not come yet. Bounded in number and in time.

use kith_types::Timestamp;
use std::{collections::BTreeMap, time::Duration};

/// How long a reservation holds: many round trips, and no longer than a client that is gone can be borne with.
pub const RESERVATION_LIFE: Duration = Duration::from_millis(500);
/// Of one client.
const PER_CLIENT_MAX: usize = 64;
/// Of all clients together.
const MAX: usize = 1_024;

/// One reservation, as its client names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId {
    /// Whose.
    pub client: u64,
    /// Which; random, so that nobody else can name it.
    pub id: u64,
}

/// What became of a reservation that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// The keys are kept until they are read, given back, or [`RESERVATION_LIFE`] is over.
    Held,
    /// There is room for the keys, but nobody keeps it: too many reservations are open. Read at once.
    Unheld,
}

/// The reservations of one store at one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Reservations {
    held: BTreeMap<ReservationId, Held>,
    keys: u64,
    /// None of them is over before.
    first_end: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    keys: u64,
    until: Timestamp,
}

impl Reservations {
    /// The keys of all of them.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Forgets those that are over. Constant, but where one may be.
    pub fn expire(&mut self, now: Timestamp) {
        if now < self.first_end || self.held.is_empty() {
            return;
        }
        self.held.retain(|_, held| now < held.until);
        self.keys = self.held.values().map(|held| held.keys).sum();
        self.first_end = self.held.values().map(|held| held.until).min().unwrap_or_default();
    }

    /// Keeps so many keys for a read, if there is a place for it.
    pub fn hold(&mut self, id: ReservationId, keys: u64, now: Timestamp) -> Reserved {
        let of_client =
            ReservationId { client: id.client, id: 0 }..=ReservationId { client: id.client, id: u64::MAX };
        let is_full = MAX <= self.held.len()
            || self.held.contains_key(&id)
            || PER_CLIENT_MAX <= self.held.range(of_client).count();
        if is_full {
            return Reserved::Unheld;
        }
        let until = now + RESERVATION_LIFE;
        if self.held.is_empty() {
            self.first_end = until;
        }
        self.keys += keys;
        self.held.insert(id, Held { keys, until });
        Reserved::Held
    }

    /// Ends a reservation: how many keys it held; `None` if there is none, or none any more.
    pub fn end(&mut self, id: ReservationId, now: Timestamp) -> Option<u64> {
        self.expire(now);
        let held = self.held.remove(&id)?;
        self.keys -= held.keys;
        Some(held.keys)
    }
}
