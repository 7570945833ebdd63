//! A rate that forgets: events per second, weighted by e^(−age / window).

use kith_types::Timestamp;
use std::time::Duration;

/// Events per second over roughly the last `window`, without a clock of its own.
///
/// Young meters are corrected for what they have not seen yet, so a steady stream
/// reads right from the start instead of ramping up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateMeter {
    window: f64,
    /// Events, each shrunk by its age.
    weight: f64,
    first: Option<Timestamp>,
    last: Timestamp,
}

impl RateMeter {
    /// A meter that has seen nothing.
    ///
    /// # Panics
    /// If the window is zero.
    pub fn new(window: Duration) -> Self {
        assert!(!window.is_zero(), "a rate needs a window");
        Self { window: window.as_secs_f64(), weight: 0.0, first: None, last: Timestamp::ZERO }
    }

    /// Notes that `events` happened at `now`. Time that runs backwards counts as standing still.
    pub fn add(&mut self, events: f64, now: Timestamp) {
        self.weight = self.weight_at(now) + events;
        self.first.get_or_insert(now);
        self.last = self.last.max(now);
    }

    /// Events per second, as of `now`.
    pub fn per_second(&self, now: Timestamp) -> f64 {
        let Some(first) = self.first else { return 0.0 };
        // A meter that is only an instant old would divide by nothing: one
        // twentieth of the window is taken as seen at least.
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
