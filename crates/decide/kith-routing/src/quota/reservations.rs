//! Keys that are reserved for reads that will follow. Their number and their life are bounded.

use kith_types::Timestamp;
use std::{collections::BTreeMap, time::Duration};

/// The lifetime of a reservation: many round trips, and short enough if its client is gone.
pub const RESERVATION_LIFE: Duration = Duration::from_millis(500);
/// The largest number of reservations of one client.
const PER_CLIENT_MAX: usize = 64;
/// The largest number of reservations of all clients together.
const MAX: usize = 1_024;

/// The id of a reservation, which its client chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId {
    /// The client.
    pub client: u64,
    /// The number of the reservation. It is random, so that no other client can guess it.
    pub id: u64,
}

/// The result of a reservation that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantedReservation {
    /// The keys are reserved until they are read, given back, or [`RESERVATION_LIFE`] has passed.
    Held,
    /// There is room for the keys, but they are not reserved because too many reservations are open. Read them at once.
    Unheld,
}

/// The reservations of one store at one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Reservations {
    held: BTreeMap<ReservationId, Held>,
    keys: u64,
    /// No reservation ends before this time.
    first_end: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    keys: u64,
    until: Timestamp,
}

impl Reservations {
    /// The number of keys in all reservations.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Removes expired reservations. Takes constant time unless one may have expired.
    pub fn expire(&mut self, now: Timestamp) {
        if now < self.first_end || self.held.is_empty() {
            return;
        }
        self.held.retain(|_, held| now < held.until);
        self.keys = self.held.values().map(|held| held.keys).sum();
        self.first_end = self.held.values().map(|held| held.until).min().unwrap_or_default();
    }

    /// Reserves `keys` keys for a read, if there is room for another reservation.
    pub fn hold(&mut self, id: ReservationId, keys: u64, now: Timestamp) -> GrantedReservation {
        let of_client =
            ReservationId { client: id.client, id: 0 }..=ReservationId { client: id.client, id: u64::MAX };
        let is_full = MAX <= self.held.len()
            || self.held.contains_key(&id)
            || PER_CLIENT_MAX <= self.held.range(of_client).count();
        if is_full {
            return GrantedReservation::Unheld;
        }
        let until = now + RESERVATION_LIFE;
        if self.held.is_empty() {
            self.first_end = until;
        }
        self.keys += keys;
        self.held.insert(id, Held { keys, until });
        GrantedReservation::Held
    }

    /// Ends a reservation. Returns how many keys it held; `None` if it does not exist or has expired.
    pub fn end(&mut self, id: ReservationId, now: Timestamp) -> Option<u64> {
        self.expire(now);
        let held = self.held.remove(&id)?;
        self.keys -= held.keys;
        Some(held.keys)
    }
}
