//! The recent durations of requests, over two windows.

use crate::Latencies;
use kith_types::Timestamp;
use std::time::Duration;

/// The time after which a window is full if it has at least [`WINDOW_SAMPLES`] samples.
const WINDOW: Duration = Duration::from_secs(10);
/// The number of samples from which a window is full after [`WINDOW`].
const WINDOW_SAMPLES: u64 = 200;
/// The time after which a window is full with any number of samples, because older durations say nothing about the
/// present.
const WINDOW_MAX: Duration = Duration::from_secs(300);

/// The durations of the last one or two windows.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    current: Window,
    before: Option<Window>,
}

#[derive(Clone, Debug)]
struct Window {
    began: Timestamp,
    /// A precision of a quarter is enough to wait by, and there is one histogram for each node and class.
    latencies: Latencies<4>,
}

impl Durations {
    pub fn new(now: Timestamp) -> Self {
        Self { current: Window::new(now), before: None }
    }

    pub fn add(&mut self, took: Duration, now: Timestamp) {
        self.turn(now);
        self.current.latencies.record(took);
    }

    fn turn(&mut self, now: Timestamp) {
        let age = now.since(self.current.began);
        if WINDOW_MAX <= age || (WINDOW <= age && WINDOW_SAMPLES <= self.current.latencies.count()) {
            let full = std::mem::replace(&mut self.current, Window::new(now));
            self.before = Some(full).filter(|_| age < 2 * WINDOW_MAX);
        }
    }

    /// The number of durations.
    pub fn samples(&self) -> u64 {
        self.windows().map(|window| window.latencies.count()).sum()
    }

    /// Returns an upper bound of the given quantile, in thousandths (990 = p99), at most a quarter too high; `None` before
    /// the first duration.
    pub fn per_mille(&self, share: u64) -> Option<Duration> {
        let windows: Vec<&Latencies<4>> = self.windows().map(|window| &window.latencies).collect();
        Latencies::per_mille_of(&windows, share)
    }

    fn windows(&self) -> impl Iterator<Item = &Window> {
        self.before.iter().chain([&self.current])
    }
}

impl Window {
    fn new(began: Timestamp) -> Self {
        Self { began, latencies: Latencies::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp(Duration::from_millis(millis))
    }

    #[test]
    fn a_quantile_is_at_most_a_quarter_too_high() {
        for micros in [1, 4, 5, 7, 100, 999, 1_000, 77_777, 5_000_000, 130_000_000] {
            let mut durations = Durations::new(at(0));
            durations.add(Duration::from_micros(micros), at(0));
            let estimate = durations.per_mille(990).unwrap().as_micros() as f64;
            assert!(
                micros as f64 <= estimate && estimate <= 1.26 * (micros as f64).max(4.0),
                "{micros}: {estimate}"
            );
        }
        let mut durations = Durations::new(at(0));
        assert_eq!(durations.per_mille(500), None);
        durations.add(Duration::from_secs(100_000), at(0));
        assert!(durations.per_mille(500).is_some(), "beyond the last bucket");
    }

    #[test]
    fn one_in_a_hundred_is_above_the_99th_percentile() {
        let mut durations = Durations::new(at(0));
        (0..1_000u64).for_each(|sample| {
            let micros = if sample % 101 == 0 { 50_000 } else { 500 };
            durations.add(Duration::from_micros(micros), at(0));
        });
        assert!(durations.per_mille(990).unwrap() < Duration::from_millis(1));
        assert!(Duration::from_millis(40) < durations.per_mille(995).unwrap());
    }

    #[test]
    fn what_was_long_ago_is_forgotten_but_not_for_lack_of_news() {
        let mut durations = Durations::new(at(0));
        (0..500).for_each(|_| durations.add(Duration::from_millis(80), at(0)));
        for sample in 0..500u64 {
            durations.add(Duration::from_millis(1), at(10_000 + sample * 10));
        }
        assert_eq!(durations.samples(), 1_000, "the window before still counts");
        for sample in 0..500u64 {
            durations.add(Duration::from_millis(1), at(20_000 + sample * 10));
        }
        assert!(durations.per_mille(999).unwrap() < Duration::from_millis(2));
        let seldom = &mut Durations::new(at(0));
        (0..20u64).for_each(|sample| seldom.add(Duration::from_millis(1), at(sample * 12_000)));
        assert_eq!(seldom.samples(), 20);
    }
}
