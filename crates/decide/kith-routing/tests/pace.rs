//! Fetches that give way to reads: plays `testdata/pace.txt`, and checks properties that hold for all reads.
//!
//! A block of the file is a command, and its outcome after `>`; `BLESS=1` rewrites the outcomes. The command `8s reads=1000
//! ms=1 slow=20x10 fetch=200` stands for eight seconds with a thousand reads per second that take a millisecond, of which
//! twenty take ten times as long, while up to 200 MiB per second are fetched. `reported=500x9` adds 500 reads per second for
//! which routers waited 9 ms. The outcome is the limit after each second, in MiB/s.

use kith_routing::{Latencies, Pace, PaceOptions, PaceSample, SeenFrom};
use kith_sim::scenario::check_blocks;
use kith_types::Timestamp;
use proptest::prelude::*;
use std::{num::NonZeroU64, path::PathBuf, time::Duration};

const MIB: f64 = (1 << 20) as f64;
/// The interval at which the shell updates the pace.
const TICK: Duration = Duration::from_millis(500);

/// The load of a node: the latencies of its reads, and the fetch.
#[derive(Clone, Copy, Debug)]
struct Load {
    reads_per_second: u64,
    latency: Duration,
    /// The number of slow reads of each thousand, and the factor.
    slow: (u64, u32),
    /// The reads per second that routers report, and how long they waited for each.
    reported: (u64, Duration),
    /// The rate of the fetch in bytes per second without a limit; `None` if nothing is fetched.
    fetch: Option<f64>,
}

impl Load {
    /// Returns a load without reads and without a fetch.
    fn none() -> Self {
        Self {
            reads_per_second: 0,
            latency: Duration::ZERO,
            slow: (0, 1),
            reported: (0, Duration::ZERO),
            fetch: None,
        }
    }

    /// Returns the reads of one tick.
    fn reads(&self) -> Latencies {
        let count = self.reads_per_second / 2;
        let mut reads = Latencies::default();
        for index in 0..count {
            let slow = index * 1_000 / count < self.slow.0;
            reads.record(self.latency * if slow { self.slow.1 } else { 1 });
        }
        reads
    }

    /// Returns the reads of one tick that routers report.
    fn reported_reads(&self) -> Latencies {
        let mut latencies = Latencies::default();
        (0..self.reported.0 / 2).for_each(|_| latencies.record(self.reported.1));
        latencies
    }
}

struct World {
    pace: Pace,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        Self { pace: Pace::new(PaceOptions::default()), now: Timestamp::ZERO }
    }

    /// Runs ticks with the same load, and calls `after_tick` after each.
    fn ticks(&mut self, count: usize, load: Load, mut after_tick: impl FnMut(&Self)) {
        let (reads, seen) = (load.reads(), load.reported_reads());
        for _ in 0..count {
            self.tick(load, &reads, &seen);
            after_tick(self);
        }
    }

    fn tick(&mut self, load: Load, reads: &Latencies, reported: &Latencies) {
        self.now = self.now + TICK;
        let limit = self.pace.limit().map_or(f64::MAX, |limit| limit.get() as f64);
        let rate = load.fetch.unwrap_or(0.0).min(limit);
        let fetched = (rate * TICK.as_secs_f64()) as u64;
        let is_fetching = load.fetch.is_some();
        self.pace.on(&PaceSample { reads, reported, fetched, is_fetching }, self.now);
    }

    fn limit(&self) -> Option<f64> {
        self.pace.limit().map(|limit| limit.get() as f64 / MIB)
    }
}

#[test]
fn limits_are_as_recorded() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/pace.txt");
    let mut world = World::new();
    check_blocks(&path, |lines| match lines {
        ["new node"] => {
            world = World::new();
            String::new()
        }
        [load] => run(&mut world, load),
        other => panic!("{other:?} is one load"),
    });
}

fn run(world: &mut World, line: &str) -> String {
    let mut words = line.split(' ');
    let seconds: usize = words.next().and_then(|word| word.strip_suffix('s')?.parse().ok()).expect("seconds");
    let mut load =
        Load { reads_per_second: 0, latency: Duration::from_millis(1), slow: (0, 1), ..Load::none() };
    for word in words {
        let (name, value) = word.split_once('=').expect("name=value");
        match name {
            "reads" => load.reads_per_second = value.parse().expect("a number"),
            "ms" => load.latency = Duration::from_millis(value.parse().expect("a number")),
            "slow" => {
                let (count, times) = value.split_once('x').expect("slow=20x10");
                load.slow = (count.parse().expect("a number"), times.parse().expect("a number"));
            }
            "reported" => {
                let (count, millis) = value.split_once('x').expect("reported=500x9");
                let wait = Duration::from_millis(millis.parse().expect("a number"));
                load.reported = (count.parse().expect("a number"), wait);
            }
            "fetch" => load.fetch = Some(value.parse::<f64>().expect("a number") * MIB),
            other => panic!("{other}?"),
        }
    }
    let mut limits: Vec<String> = Vec::new();
    world.ticks(2 * seconds, load, |world| {
        limits.push(world.limit().map_or("-".to_owned(), |limit| format!("{limit:.0}")));
    });
    let limits: Vec<&str> = limits.iter().skip(1).step_by(2).map(String::as_str).collect();
    let p99 = |p99: Option<Duration>| {
        p99.map_or("?".to_owned(), |p99| format!("{:.1} ms", p99.as_secs_f64() * 1e3))
    };
    let of = |from| (p99(world.pace.p99_steady(from)), p99(world.pace.p99_fetching(from)));
    let ((steady, fetching), (steady_at_routers, fetching_at_routers)) =
        (of(SeenFrom::Node), of(SeenFrom::Routers));
    let routers = if steady_at_routers == "?" {
        String::new()
    } else {
        format!("; at routers {steady_at_routers}, {fetching_at_routers}")
    };
    format!("{}\np99 steady {steady}, fetching {fetching}{routers}", limits.join(" "))
}

/// Returns reads whose p99 rises with the rate of the fetch, which closes the control loop.
fn loaded(rate: f64, capacity: f64) -> Load {
    let latency = Duration::from_millis(1).mul_f64(1.0 + rate / capacity);
    Load { reads_per_second: 1_000, latency, fetch: Some(400.0 * MIB), ..Load::none() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// For all reads: the limit is never below the floor, and nothing is limited before reads were seen without a fetch.
    #[test]
    fn a_fetch_always_ends(
        steps in prop::collection::vec((0..2_000u64, 1..50u64, 0..100u64, any::<bool>(), 1..60usize, 0..200u64), 1..12),
        floor in 1..64u64,
    ) {
        let floor = NonZeroU64::new(floor << 20).expect("it is not 0");
        let options = PaceOptions { floor, ..PaceOptions::default() };
        let mut world = World { pace: Pace::new(options), now: Timestamp::ZERO };
        let mut quiet_reads = 0;
        for (reads_per_second, millis, slow, is_fetching, ticks, reported) in steps {
            let reported = (10 * reported, Duration::from_millis(reported));
            let fetch = is_fetching.then_some(300.0 * MIB);
            let latency = Duration::from_millis(millis);
            let load = Load { reads_per_second, latency, slow: (slow, 20), reported, fetch };
            quiet_reads += if is_fetching { 0 } else { reads_per_second + reported.0 };
            let mut limits = Vec::new();
            world.ticks(ticks, load, |world| limits.push(world.pace.limit()));
            for limit in limits {
                prop_assert!(limit.is_none_or(|limit| floor <= limit));
                prop_assert!(0 < quiet_reads || limit.is_none());
            }
        }
    }

    /// With equal input there is no oscillation: the limit goes down to the floor and stays there, or is lifted and stays
    /// lifted.
    #[test]
    fn equal_reads_move_it_one_way(slow_first in any::<bool>(), factor in 1..40u64, reads_per_second in 60..2_000u64) {
        let mut world = World::new();
        let of = |millis: u64, fetch| {
            Load { reads_per_second, latency: Duration::from_millis(millis), fetch, ..Load::none() }
        };
        world.ticks(200, of(10, None), |_| {});
        // Start somewhere in the middle.
        if slow_first {
            world.ticks(30, of(20, Some(200.0 * MIB)), |_| {});
        }
        let now = of(factor, Some(200.0 * MIB));
        // The current window contains other reads too.
        world.ticks(20, now, |_| {});
        let mut limits = Vec::new();
        world.ticks(1_500, now, |world| limits.push(world.limit().unwrap_or(f64::MAX)));
        let falls = limits.windows(2).any(|pair| pair[1] < pair[0]);
        let rises = limits.windows(2).any(|pair| pair[0] < pair[1]);
        prop_assert!(!(falls && rises), "{:?}", &limits[..100]);
        let last = *limits.last().expect("there are some");
        match factor {
            0..=11 => prop_assert_eq!(last, f64::MAX),
            13.. => prop_assert_eq!(last, 4.0),
            _ => {}
        }
    }

    /// The reads at routers count like the reads at the node: a rate that is too fast for either of them is too fast.
    #[test]
    fn the_worse_side_counts(seen_at_routers in any::<bool>(), reads_per_second in 100..2_000u64, wait in 2..100u64) {
        let mut world = World::new();
        let of = |factor: u32, fetch| {
            let own = if seen_at_routers { 1 } else { factor };
            let at_routers = if seen_at_routers { factor } else { 1 };
            Load {
                reads_per_second,
                latency: Duration::from_millis(wait) * own,
                reported: (reads_per_second, Duration::from_millis(3 * wait) * at_routers),
                fetch,
                ..Load::none()
            }
        };
        world.ticks(200, of(1, None), |_| {});
        world.ticks(60, of(1, Some(200.0 * MIB)), |_| {});
        prop_assert_eq!(world.limit(), None, "neither suffers");
        world.ticks(400, of(2, Some(200.0 * MIB)), |_| {});
        prop_assert_eq!(world.limit(), Some(4.0), "one does");
        world.ticks(1_500, of(1, Some(200.0 * MIB)), |_| {});
        prop_assert_eq!(world.limit(), None, "it no longer does");
    }

    /// In a loop with reads that suffer from the fetch, the rate comes close to the one that they tolerate, and stays close.
    #[test]
    fn it_settles_at_what_reads_bear(capacity in 50..2_000u64) {
        let capacity = capacity as f64 * MIB;
        let mut world = World::new();
        world.ticks(120, Load { fetch: None, ..loaded(0.0, capacity) }, |_| {});
        let mut rates = Vec::new();
        for _ in 0..400 {
            let rate = world.limit().map_or(400.0, |limit| limit.min(400.0)) * MIB;
            world.ticks(1, loaded(rate, capacity), |_| {});
            rates.push(rate);
        }
        // The p99 is 1.2 times the steady one at a fifth of the capacity. Buckets are 3 % wide.
        let bearable = (capacity * 0.2).clamp(4.0 * MIB, 400.0 * MIB);
        for rate in &rates[150..] {
            prop_assert!(bearable * 0.6 <= *rate && *rate <= (bearable * 1.1 + capacity * 0.08), "{} {}", rate / MIB, bearable / MIB);
        }
    }
}
