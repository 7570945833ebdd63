//! Read quotas over any schedule: never more than the rate and one second's worth, nothing for those who are refused, and whoever comes
//! back when told is let in.

use kith_routing::{QuotaRates, ReadQuota};
use kith_types::Timestamp;
use proptest::prelude::*;
use std::{num::NonZeroU64, time::Duration};

#[derive(Clone, Debug)]
enum Step {
    /// Milliseconds go by.
    Pass(u64),
    /// A query of so many keys, and the bytes of its answer.
    Ask(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..1_500u64).prop_map(Step::Pass),
        (0..400u64, 0..4_000u64).prop_map(|(keys, bytes)| Step::Ask(keys, bytes)),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn what_passes_is_bounded_and_what_is_refused_passes_when_told(
        steps in steps(),
        keys_rate in 1..300u64,
        bytes_rate in 1..3_000u64,
    ) {
        let rates = QuotaRates { keys: NonZeroU64::new(keys_rate), bytes: NonZeroU64::new(bytes_rate) };
        let mut quota = ReadQuota::new(rates);
        let mut now = Duration::ZERO;
        // When which keys passed.
        let mut passed: Vec<(Duration, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Pass(millis) => now += Duration::from_millis(millis),
                Step::Ask(keys, bytes) => match quota.admit(keys, Timestamp(now)) {
                    Ok(()) => {
                        quota.charge_bytes(bytes, Timestamp(now));
                        passed.push((now, keys));
                    }
                    Err(refused) => {
                        prop_assert!(refused.retry_after > Duration::ZERO);
                        let mut later = quota.clone();
                        let early = now + refused.retry_after.saturating_sub(Duration::from_millis(1));
                        if Duration::from_millis(1) < refused.retry_after {
                            prop_assert!(later.admit(keys, Timestamp(early)).is_err(), "told too late");
                        }
                        let then = now + refused.retry_after;
                        prop_assert!(later.admit(keys, Timestamp(then)).is_ok(), "told too early");
                    }
                },
            }
        }
        for (at, (from, _)) in passed.iter().enumerate() {
            let largest = passed[at..].iter().map(|(_, keys)| *keys).max().unwrap_or(0);
            let mut sum = 0;
            for (to, keys) in &passed[at..] {
                sum += keys;
                let window = (*to - *from).as_secs_f64();
                let allowed = keys_rate as f64 * (window + 1.0) + largest as f64;
                prop_assert!(sum as f64 <= allowed + 1.0, "{sum} keys in {window} s at {keys_rate}/s");
            }
        }
    }
}

/// Six nodes in three groups have a sixth of a quota each. Routers read eight tenths of it for a quarter of a minute, a thousand keys at a
/// time, from the two nodes of a group that is drawn by lot; each sees every read that it answers.
#[test]
fn reads_that_routers_let_in_make_nobody_wait_for_more_than_a_second() {
    let quota = QuotaRates { keys: NonZeroU64::new(10_000), bytes: None };
    for seed in 1..50u64 {
        let mut nodes: Vec<ReadQuota> = (0..6).map(|_| ReadQuota::new(quota.part(8, 48))).collect();
        let mut lot = seed;
        for read in 0..120u64 {
            let now = Timestamp(Duration::from_millis(125 * read));
            lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let group = (lot >> 33) as usize % 3;
            nodes[2 * group..2 * group + 2].iter_mut().for_each(|node| node.charge_keys(500, now));
        }
        let now = Timestamp(Duration::from_secs(15));
        for node in &mut nodes {
            let wait = node.admit(500, now).err().map_or(Duration::ZERO, |refused| refused.retry_after);
            assert!(wait <= Duration::from_secs(1), "seed {seed}: {wait:?}");
        }
    }
}
