//! Decides when an open connection is closed: because it is idle, because a request arrives too slowly, or because its peer
//! does not read its replies.
//!
//! It has no clock; the owner of a watch calls it at intervals, and more often while a request arrives.

use kith_types::ErrorCode;
use std::time::Duration;

/// The longest interval between two checks.
const LOOK_MAX: Duration = Duration::from_secs(10);
/// The longest interval while a request arrives.
const LOOK_AT_REQUEST_MAX: Duration = Duration::from_secs(1);
/// The shortest interval, for short idle times.
const LOOK_MIN: Duration = Duration::from_millis(50);
/// The usual grace of a request that has begun ([`Pace`]).
const GRACE: Duration = Duration::from_secs(10);
/// The slowest link over which a large request may arrive: 64 MiB take less than nine minutes.
const BYTES_PER_SECOND_MIN: u64 = 128 << 10;
/// A connection is closed if its peer takes nothing of its unsent replies for this long, because they are held in memory.
const STALLED: Duration = Duration::from_secs(60);

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No request was sent for a long time.
    Idle,
    /// A request that has begun does not end.
    SlowRequest,
    /// The peer does not read its replies.
    Stalled,
}

impl Reason {
    /// The code that is sent to the peer. Its name is also the label of the metric.
    pub fn code(self) -> ErrorCode {
        match self {
            Reason::Idle => ErrorCode::Idle,
            Reason::SlowRequest => ErrorCode::SlowRequest,
            Reason::Stalled => ErrorCode::Stalled,
        }
    }
}

/// The state of a connection at a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivitySample {
    /// How many whole requests have arrived so far.
    pub messages: u64,
    /// How many bytes have arrived so far.
    pub received: u64,
    /// How many bytes were sent so far.
    pub sent: u64,
    /// Whether a request has begun, and this process would read the rest of it.
    pub has_begun: bool,
    /// Whether bytes wait for the peer to read them.
    pub is_unsent: bool,
    /// Whether a request is under way.
    pub is_under_way: bool,
}

/// How often a connection is checked, and after which time it counts as idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The interval between two checks, and while a request arrives.
    pub interval: Duration,
    pub interval_at_request: Duration,
    idle: Option<Duration>,
    /// A request that has begun must arrive completely within this time; after it, it must keep arriving at
    /// [`BYTES_PER_SECOND_MIN`] on average.
    grace: Duration,
}

impl Pace {
    /// Returns the pace for an idle time of `idle`. With `None`, connections may be idle for ever.
    pub fn new(idle: Option<Duration>) -> Self {
        let interval = idle.map_or(LOOK_MAX, |idle| (idle / 4).clamp(LOOK_MIN, LOOK_MAX));
        let interval_at_request = interval.min(LOOK_AT_REQUEST_MAX);
        Self { interval, interval_at_request, idle, grace: GRACE }
    }

    /// Returns the pace for tests that do not wait for the usual grace.
    #[cfg(any(test, feature = "testing"))]
    pub fn hasty() -> Self {
        Self { interval_at_request: LOOK_MIN, grace: 4 * LOOK_MIN, ..Self::new(None) }
    }
}

/// The state of a watch over one connection.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    pace: Pace,
    last: ActivitySample,
    idle: Duration,
    unsent: Duration,
    /// The time since the first check of the request that has begun, and how many bytes had arrived at it.
    begun: Option<(Duration, u64)>,
}

impl Watch {
    /// Returns a watch over a new connection.
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            pace,
            last: ActivitySample::default(),
            idle: Duration::ZERO,
            unsent: Duration::ZERO,
            begun: None,
        }
    }

    /// Records another check, `after` the previous one. Returns why the connection must be closed, if it must.
    pub fn look(&mut self, now: ActivitySample, after: Duration) -> Option<Reason> {
        let last = std::mem::replace(&mut self.last, now);
        let is_idle = now.messages == last.messages && !now.is_under_way && !now.is_unsent && !now.has_begun;
        self.idle = if is_idle { self.idle.saturating_add(after) } else { Duration::ZERO };
        let is_stuck = now.is_unsent && last.is_unsent && now.sent == last.sent;
        self.unsent = if is_stuck { self.unsent.saturating_add(after) } else { Duration::ZERO };
        self.begun = match self.begun {
            _ if !now.has_begun => None,
            Some((time, since)) if now.messages == last.messages => Some((time.saturating_add(after), since)),
            _ => Some((Duration::ZERO, now.received)),
        };
        if self.begun.is_some_and(|(time, since)| self.is_slow(time, now.received - since)) {
            return Some(Reason::SlowRequest);
        }
        if STALLED <= self.unsent {
            return Some(Reason::Stalled);
        }
        self.pace.idle.filter(|most| *most <= self.idle).map(|_| Reason::Idle)
    }

    fn is_slow(&self, time: Duration, bytes: u64) -> bool {
        let over = time.saturating_sub(self.pace.grace);
        self.pace.grace <= time && bytes <= (over.as_secs_f64() * BYTES_PER_SECOND_MIN as f64) as u64
    }
}

/// While memory for replies is short, a peer is too slow if it would take more than this many checks for the replies that
/// it is sent.
const TAKEN_WITHIN_LOOKS: u64 = 30;
/// A peer must be too slow at this many checks in a row, one second apart, so that a peer that only paused is spared.
const SLOW_LOOKS: u32 = 2;

/// How fast a peer takes the replies that its connection holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakingRate {
    held: usize,
    taken: u64,
    slow: u32,
}

impl TakingRate {
    /// Records another check, with the bytes that are held now and those that were taken so far. Returns whether the peer
    /// is too slow.
    pub fn is_too_slow(&mut self, held: usize, taken: u64) -> bool {
        let before = std::mem::replace(self, Self { held, taken, slow: 0 });
        // Only bytes that were held during the whole interval could have been taken.
        let due = before.held.min(held) as u64 / TAKEN_WITHIN_LOOKS;
        if 0 < before.held.min(held) && taken - before.taken <= due {
            self.slow = before.slow.saturating_add(1);
        }
        SLOW_LOOKS <= self.slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks until the connection is closed: how many checks it takes, and why it is closed.
    fn closed(idle: Option<Duration>, mut at: impl FnMut(u64) -> ActivitySample) -> Option<(u64, Reason)> {
        let pace = Pace::new(idle);
        let mut watch = Watch::new(pace);
        (1..2_000).find_map(|look| {
            let seen = at(look);
            let after = if seen.has_begun { pace.interval_at_request } else { pace.interval };
            watch.look(seen, after).map(|reason| (look, reason))
        })
    }

    const TEN_MINUTES: Option<Duration> = Some(Duration::from_secs(600));

    #[test]
    fn nobody_who_asks_or_waits_is_idle() {
        assert_eq!(closed(TEN_MINUTES, |_| ActivitySample::default()), Some((60, Reason::Idle)));
        assert_eq!(closed(None, |_| ActivitySample::default()), None);
        assert_eq!(
            closed(TEN_MINUTES, |look| ActivitySample { messages: look / 59, ..ActivitySample::default() }),
            None
        );
        assert_eq!(
            closed(TEN_MINUTES, |_| ActivitySample { is_under_way: true, ..ActivitySample::default() }),
            None
        );
    }

    #[test]
    fn a_message_ends_in_time_or_keeps_coming() {
        let begun = |received| ActivitySample { has_begun: true, received, ..ActivitySample::default() };
        assert_eq!(closed(None, |_| begun(4)), Some((11, Reason::SlowRequest)));
        // With a short idle time checks are more frequent, but a request still gets the same time.
        let look = closed(Some(Duration::from_secs(1)), |_| begun(4));
        assert_eq!(look, Some((41, Reason::SlowRequest)));
        let per_look = BYTES_PER_SECOND_MIN;
        assert_eq!(closed(None, |look| begun(look * per_look)), None);
        assert!(closed(None, |look| begun(look * per_look / 2)).is_some());
        // Each check sees another request.
        let many = |look| ActivitySample {
            messages: look,
            has_begun: true,
            received: look,
            ..ActivitySample::default()
        };
        assert_eq!(closed(None, many), None);
    }

    #[test]
    fn a_peer_that_takes_no_reply_is_closed_after_a_minute() {
        let waiting = |sent| ActivitySample { is_unsent: true, sent, ..ActivitySample::default() };
        assert_eq!(closed(TEN_MINUTES, |_| waiting(0)), Some((7, Reason::Stalled)));
        assert_eq!(closed(TEN_MINUTES, waiting), None);
    }

    /// The number of checks until the peer counts as too slow; at most a hundred.
    fn looks_until_too_slow(mut at: impl FnMut(u64) -> (usize, u64)) -> Option<u64> {
        let mut taking = TakingRate::default();
        (1..100).find(|look| {
            let (held, taken) = at(*look);
            taking.is_too_slow(held, taken)
        })
    }

    #[test]
    fn a_peer_that_hardly_takes_its_replies_is_too_slow() {
        assert_eq!(looks_until_too_slow(|_| (10 << 20, 0)), Some(3));
        assert_eq!(looks_until_too_slow(|look| (30_000, look * 900)), Some(3));
        assert_eq!(looks_until_too_slow(|look| (30_000, look * 1_100)), None);
        assert_eq!(looks_until_too_slow(|_| (0, 0)), None);
        // It paused for one check now and then.
        assert_eq!(looks_until_too_slow(|look| (30_000, look / 2 * 5_000)), None);
        // Bytes that have only just appeared could not have been taken.
        assert_eq!(looks_until_too_slow(|look| (if look % 2 == 0 { 10 << 20 } else { 0 }, 0)), None);
        assert_eq!(looks_until_too_slow(|look| (1 << look.min(40), 0)), Some(3));
    }
}
