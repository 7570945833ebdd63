//! A rate with exponential decay: events per second, weighted by e^(−age / window).

use kith_types::Timestamp;
use std::time::Duration;

/// Events per second over roughly the last `window`. It has no clock of its own.
///
/// Young meters are corrected for what they have not seen yet, so that a steady stream reads correctly from the start
/// instead of ramping up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateMeter {
    window: f64,
    /// The number of events, each reduced by its age.
    weight: f64,
    first: Option<Timestamp>,
    last: Timestamp,
}

impl RateMeter {
    /// Returns a meter without any events.
    ///
    /// # Panics
    /// If the window is zero.
    pub fn new(window: Duration) -> Self {
        assert!(!window.is_zero(), "a rate needs a window");
        Self { window: window.as_secs_f64(), weight: 0.0, first: None, last: Timestamp::ZERO }
    }

    /// Records `events` events at `now`. If time goes back, it counts as unchanged.
    pub fn add(&mut self, events: f64, now: Timestamp) {
        self.weight = self.weight_at(now) + events;
        self.first.get_or_insert(now);
        self.last = self.last.max(now);
    }

    /// Events per second, as of `now`.
    pub fn per_second(&self, now: Timestamp) -> f64 {
        let Some(first) = self.first else { return 0.0 };
        // The age is at least one twentieth of the window, because a meter of age zero would divide by zero.
        let age = now.since(first).as_secs_f64().max(self.window / 20.0);
        let seen = 1.0 - (-age / self.window).exp();
        self.weight_at(now) / (self.window * seen)
    }

    fn weight_at(&self, now: Timestamp) -> f64 {
        self.weight * (-now.since(self.last).as_secs_f64() / self.window).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp(Duration::from_millis(millis))
    }

    #[test]
    fn a_steady_stream_reads_right_early_and_late() {
        let mut meter = RateMeter::new(Duration::from_secs(2));
        for step in 0..1_000 {
            meter.add(1.0, at(step * 10));
            if 50 <= step {
                let rate = meter.per_second(at(step * 10 + 5));
                assert!((90.0..110.0).contains(&rate), "100 a second reads {rate} after {step} events");
            }
        }
    }

    #[test]
    fn a_stream_that_ends_is_forgotten() {
        let mut meter = RateMeter::new(Duration::from_secs(1));
        (0..1_000).for_each(|step| meter.add(1.0, at(step * 10)));
        assert!(meter.per_second(at(20_000)) < 0.01);
        assert_eq!(RateMeter::new(Duration::from_secs(1)).per_second(at(5)), 0.0);
    }
}
