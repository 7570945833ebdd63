//! The durations of the last minutes, so that quantiles show what is slow now and not what was slow once.

use kith_routing::ReportedLatencies;
use std::time::Duration;

/// The length of a window. Quantiles are over the current window and the one before it.
const WINDOW: Duration = Duration::from_secs(60);

/// The durations of the last one to two minutes.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// The time at which the current window began.
    began: Duration,
    current: ReportedLatencies,
    previous: ReportedLatencies,
}

impl Recent {
    /// Records a duration. `now` never goes back.
    pub fn record(&mut self, took: Duration, now: Duration) {
        self.turn(now);
        self.current.record(took);
    }

    /// Returns the given quantiles, in thousandths; 0 if there were no answers.
    pub fn per_mille<const N: usize>(&mut self, shares: [u64; N], now: Duration) -> [Duration; N] {
        self.turn(now);
        let both = [&self.current, &self.previous];
        shares.map(|share| ReportedLatencies::per_mille_of(&both, share).unwrap_or_default())
    }

    fn turn(&mut self, now: Duration) {
        let age = now.saturating_sub(self.began);
        if age < WINDOW {
            return;
        }
        let ended = std::mem::take(&mut self.current);
        self.previous = if age < 2 * WINDOW { ended } else { ReportedLatencies::default() };
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_slow_is_forgotten_after_two_minutes() {
        let at = Duration::from_secs;
        let mut recent = Recent::default();
        (0..100).for_each(|_| recent.record(at(1), at(0)));
        assert!(at(1) <= recent.per_mille([990], at(61))[0], "it is in the window before");
        (0..100).for_each(|_| recent.record(Duration::from_millis(1), at(70)));
        assert!(at(1) <= recent.per_mille([990], at(70))[0]);
        assert!(recent.per_mille([990], at(125))[0] < Duration::from_millis(2));
        assert_eq!(recent.per_mille([500, 990], at(400)), [Duration::ZERO; 2]);
    }
}
