//! The rate limiter, compared with a naive twin that moves byte by byte.

use kith_routing::{RateLimiter, Turn};
use kith_types::Timestamp;
use proptest::prelude::*;
use std::{num::NonZeroU64, time::Duration};

#[derive(Clone, Debug)]
enum Step {
    /// This many milliseconds pass.
    Pass(u64),
    Take(u64),
    /// A rate in bytes per second; 0 for no limit.
    Set(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3_000u64).prop_map(Step::Pass),
        (0..5_000u64).prop_map(Step::Take),
        // The twin moves whole bytes per millisecond.
        prop_oneof![Just(0), (1..5u64).prop_map(|rate| rate * 1_000)].prop_map(Step::Set),
    ];
    prop::collection::vec(step, 0..40)
}

/// A queue of single bytes. Each millisecond moves a fixed number of them.
struct Twin {
    rate: u64,
    left: u64,
    passed: u64,
}

impl Twin {
    fn pass(&mut self, millis: u64) {
        for _ in 0..millis {
            let moved = (self.rate / 1_000).min(self.left);
            self.left -= moved;
            self.passed += moved;
        }
    }

    fn release(&mut self) {
        if self.rate == 0 {
            self.passed += self.left;
            self.left = 0;
        }
    }
}

proptest! {
    #[test]
    fn turns_pass_as_bytes_in_a_queue_do(steps in steps()) {
        let mut line = RateLimiter::new(None);
        let mut twin = Twin { rate: 0, left: 0, passed: 0 };
        let (mut now, mut end) = (0, 0);
        let mut turns: Vec<(Turn, u64)> = Vec::new();
        for step in steps {
            let at = |millis: u64| Timestamp(Duration::from_millis(millis));
            match step {
                Step::Pass(millis) => {
                    now += millis;
                    twin.pass(millis);
                }
                Step::Take(bytes) => {
                    end += bytes;
                    twin.left += bytes;
                    turns.push((line.take(bytes, at(now)), end));
                }
                Step::Set(rate) => {
                    line.set(NonZeroU64::new(rate), at(now));
                    twin.rate = rate;
                }
            }
            twin.release();
            for (turn, end) in &turns {
                let wait = line.wait(*turn, at(now));
                prop_assert_eq!(wait.is_zero(), *end <= twin.passed);
                if !wait.is_zero() {
                    let left = Duration::from_secs_f64((*end - twin.passed) as f64 / twin.rate as f64);
                    prop_assert!(wait.abs_diff(left) < Duration::from_micros(1), "{:?} for {:?}", wait, left);
                }
            }
        }
    }

    /// A caller that waits for each turn before using its bytes never exceeds the rate over any stretch of time, except for
    /// the one turn that was in progress when the stretch began.
    #[test]
    fn nothing_bursts(
        rate in 1..1_000_000u64,
        uses in prop::collection::vec((0..5_000u64, 1..100_000u64), 1..30),
    ) {
        let mut line = RateLimiter::new(NonZeroU64::new(rate));
        let mut now = Timestamp::ZERO;
        let mut done: Vec<(Timestamp, u64)> = Vec::new();
        for (pause, bytes) in uses {
            now = now + Duration::from_millis(pause);
            let turn = line.take(bytes, now);
            now = now + line.wait(turn, now);
            prop_assert_eq!(line.wait(turn, now), Duration::ZERO);
            done.push((now, bytes));
        }
        for (index, (from, _)) in done.iter().enumerate() {
            let mut sum = 0;
            for (to, bytes) in &done[index + 1..] {
                sum += bytes;
                let allowed = rate as f64 * to.since(*from).as_secs_f64();
                prop_assert!(sum as f64 <= allowed * (1.0 + 1e-9) + 1.0, "{} bytes, {} allowed", sum, allowed);
            }
        }
    }
}
