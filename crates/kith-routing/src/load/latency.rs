//! How long requests took lately: counts by duration over two windows, for quantiles.

use kith_types::Timestamp;
use std::time::Duration;

/// Four per octave, from 4 µs to 134 s: a quantile is at most a quarter too high.
const BUCKETS: usize = 100;
const MICROS_MIN: u64 = 4;
const OCTAVE_MAX: u32 = 26;
/// A window is full after this long ...
const WINDOW: Duration = Duration::from_secs(10);
/// ... with at least so many samples, or ...
const WINDOW_SAMPLES: u32 = 200;
/// ... after this long whatever it has: older times say nothing of now.
const WINDOW_MAX: Duration = Duration::from_secs(300);

/// Durations of the last window or two.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    current: Window,
    before: Option<Window>,
}

#[derive(Clone, Debug)]
struct Window {
    began: Timestamp,
    samples: u32,
    counts: Box<[u32; BUCKETS]>,
}

impl Durations {
    pub fn new(now: Timestamp) -> Self {
        Self { current: Window::new(now), before: None }
    }

    pub fn add(&mut self, took: Duration, now: Timestamp) {
        self.turn(now);
        self.current.counts[bucket_of(took)] += 1;
        self.current.samples += 1;
    }

    fn turn(&mut self, now: Timestamp) {
        let age = now.since(self.current.began);
        if WINDOW_MAX <= age || (WINDOW <= age && WINDOW_SAMPLES <= self.current.samples) {
            let full = std::mem::replace(&mut self.current, Window::new(now));
            self.before = Some(full).filter(|_| age < 2 * WINDOW_MAX);
        }
    }

    /// How many durations it rests on.
    pub fn samples(&self) -> u32 {
        self.current.samples + self.before.as_ref().map_or(0, |window| window.samples)
    }

    /// The duration that a share `share` of all does not exceed, at most a quarter too high; `None` before the first.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (f64::from(self.samples()) * share).ceil() as u32;
        let mut seen = 0;
        for bucket in 0..BUCKETS {
            seen +=
                self.current.counts[bucket] + self.before.as_ref().map_or(0, |window| window.counts[bucket]);
            if rank <= seen && 0 < seen {
                return Some(upper_edge(bucket));
            }
        }
        None
    }
}

impl Window {
    fn new(began: Timestamp) -> Self {
        Self { began, samples: 0, counts: Box::new([0; BUCKETS]) }
    }
}

fn bucket_of(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(MICROS_MIN);
    let octave = micros.ilog2().min(OCTAVE_MAX);
    let quarter = ((micros >> (octave - 2)) & 3) as usize;
    let last = if octave == OCTAVE_MAX && micros >> OCTAVE_MAX > 1 { 3 } else { quarter };
    (octave as usize - 2) * 4 + last
}

fn upper_edge(bucket: usize) -> Duration {
    let (octave, quarter) = (bucket as u32 / 4, bucket as u64 % 4);
    Duration::from_micros((5 + quarter) << octave)
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
            let told = durations.quantile(0.99).unwrap().as_micros() as f64;
            assert!(micros as f64 <= told && told <= 1.26 * (micros as f64).max(4.0), "{micros}: {told}");
        }
        let mut durations = Durations::new(at(0));
        assert_eq!(durations.quantile(0.5), None);
        durations.add(Duration::from_secs(100_000), at(0));
        assert!(durations.quantile(0.5).is_some(), "beyond the last bucket");
    }

    #[test]
    fn one_in_a_hundred_is_above_the_99th_percentile() {
        let mut durations = Durations::new(at(0));
        (0..1_000u64).for_each(|sample| {
            let micros = if sample % 101 == 0 { 50_000 } else { 500 };
            durations.add(Duration::from_micros(micros), at(0));
        });
        assert!(durations.quantile(0.99).unwrap() < Duration::from_millis(1));
        assert!(Duration::from_millis(40) < durations.quantile(0.995).unwrap());
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
        assert!(durations.quantile(0.999).unwrap() < Duration::from_millis(2));
        let seldom = &mut Durations::new(at(0));
        (0..20u64).for_each(|sample| seldom.add(Duration::from_millis(1), at(sample * 12_000)));
        assert_eq!(seldom.samples(), 20);
    }
}
