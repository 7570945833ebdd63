//! Pauses of this process, in which it neither receives replies nor sees its timers fire.

use kith_types::Timestamp;
use std::time::Duration;

/// A process that has not ticked for this long is suspended. This is three ticks of the shell's prober.
const STILL: Duration = Duration::from_millis(150);
/// The longest time that a process which was suspended has to catch up with the events that arrived meanwhile.
const CATCH_UP_MAX: Duration = Duration::from_millis(500);

/// The times at which this process was suspended. This is derived from ticks, which are regular while the process runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pauses {
    last_tick: Option<Timestamp>,
    /// The last moment at which this process is known to have been suspended.
    still_until: Timestamp,
    /// The time until which the events that arrived meanwhile keep it busy.
    caught_up: Timestamp,
}

impl Pauses {
    pub(super) fn on_tick(&mut self, now: Timestamp) {
        self.caught_up = self.caught_up(now);
        self.still_until = self.stood_still(now);
        self.last_tick = Some(now);
    }

    /// The last moment at which this process is known to have been suspended.
    pub(super) fn stood_still(&self, now: Timestamp) -> Timestamp {
        self.pause(now).map_or(self.still_until, |_| now)
    }

    /// The time at which this process has caught up with the events that arrived while it was suspended.
    pub(super) fn caught_up(&self, now: Timestamp) -> Timestamp {
        self.pause(now).map_or(self.caught_up, |pause| now + pause.min(CATCH_UP_MAX))
    }

    /// The time that it has been suspended until now, if it has.
    fn pause(&self, now: Timestamp) -> Option<Duration> {
        self.last_tick.map(|last| now.since(last)).filter(|pause| STILL < *pause)
    }
}
