//! Pauses of this process, in which it neither hears replies nor sees its timers fire.

use kith_types::Timestamp;
use std::time::Duration;

/// A process that has not ticked for this long stands still: three ticks of the shell's prober.
const STILL: Duration = Duration::from_millis(150);
/// The longest that a process which stood still has to catch up with what came meanwhile.
const CATCH_UP_MAX: Duration = Duration::from_millis(500);

/// When this process stood still. Knows it by ticks that come regularly while it runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pauses {
    last_tick: Option<Timestamp>,
    /// Until when this process is known to have stood still.
    still_until: Timestamp,
    /// Until when what came meanwhile keeps it busy.
    caught_up: Timestamp,
}

impl Pauses {
    pub(super) fn on_tick(&mut self, now: Timestamp) {
        self.caught_up = self.caught_up(now);
        self.still_until = self.stood_still(now);
        self.last_tick = Some(now);
    }

    /// The last moment at which this process is known to have stood still.
    pub(super) fn stood_still(&self, now: Timestamp) -> Timestamp {
        self.pause(now).map_or(self.still_until, |_| now)
    }

    /// When this process has caught up with what came while it stood still.
    pub(super) fn caught_up(&self, now: Timestamp) -> Timestamp {
        self.pause(now).map_or(self.caught_up, |pause| now + pause.min(CATCH_UP_MAX))
    }

    /// How long it has stood still until now, if it has.
    fn pause(&self, now: Timestamp) -> Option<Duration> {
        self.last_tick.map(|last| now.since(last)).filter(|pause| STILL < *pause)
    }
}
