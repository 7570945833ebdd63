//! The size of a simulated cluster and its faults. All of it follows from the seed.

use kith_cache::live::LiveCacheOptions;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

/// The configuration of one run.
#[derive(Clone, Debug)]
pub(super) struct LiveConfig {
    pub(super) seed: u64,
    pub(super) groups: u32,
    pub(super) nodes_per_group: u32,
    pub(super) partitions: u32,
    pub(super) clients: usize,
    pub(super) writes_max: usize,
    /// The maximum pause of a client between two operations, in milliseconds.
    pub(super) pause_ms: u64,
    /// The time at which all faults end. Faults begin two seconds after the start.
    pub(super) faults_end: Duration,
    /// The number of faults, apart from the replacement of the database.
    pub(super) faults: usize,
    /// Whether the database is replaced by an older copy of itself.
    pub(super) fails_over: bool,
    /// The maximum relative deviation of the rate of a node's clock: 0.2 means 20 % faster or slower.
    pub(super) drift: f64,
    /// One in this many messages takes up to two seconds. With 0, no message does.
    pub(super) slow_one_in: u32,
    /// Whether clients only add and delete associations of one type, between two pairs of objects.
    pub(super) narrow: bool,
    pub(super) caches: LiveCacheOptions,
}

impl LiveConfig {
    pub(super) fn of_seed(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let random = &mut random;
        let recent_max = if random.random_ratio(1, 2) { 16_384 } else { random.random_range(1..20) };
        let caches = LiveCacheOptions {
            bytes_max: 1 << random.random_range(13..20),
            recent_max,
            fills_max: random.random_range(2..32),
            ..LiveCacheOptions::default()
        };
        Self {
            seed,
            groups: random.random_range(1..=2),
            nodes_per_group: random.random_range(1..=2),
            partitions: random.random_range(2..=3),
            clients: random.random_range(2..=5),
            writes_max: random.random_range(10..60),
            pause_ms: random.random_range(5..200),
            faults_end: Duration::from_millis(random.random_range(5_000..12_000)),
            faults: random.random_range(0..8),
            fails_over: random.random_ratio(1, 4),
            drift: if random.random_ratio(1, 2) { 0.0 } else { 0.2 },
            slow_one_in: if random.random_ratio(1, 3) { 0 } else { random.random_range(4..60) },
            narrow: random.random_ratio(1, 2),
            caches,
        }
    }
}
