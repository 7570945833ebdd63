//! The network cache's hit rate on degree-weighted traces (Moolle §II-A: "over 95 %").
//!
//! The traces run against the production state machine of `kith-cache`. Queries ask for each member with a probability
//! proportional to its number of connections. A fetch takes some time, so lookups join fetches in progress, as in
//! production. Such lookups do not count as hits.

use crate::agenda::Agenda;
use crate::figures::{Axis, Drawing, Figure, Panel, Series, Size, Style, Table};
use crate::tail_latency::normal_quantile;
use kith_cache::{Basis, CacheOptions, FlightId, Lookup, Mode, NetworkCache, Origin};
use kith_types::{StoreVersion, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

/// The origin of all entries, because there is only one graph version.
const ORIGIN: Origin = Origin { component: StoreVersion(1), graph: StoreVersion(1) };

pub(super) const CACHE: Figure = Figure {
    name: "cache",
    title: "hit rate of the network cache on degree-weighted traces",
    shows: "The share of lookups answered from the cache, by length of the trace and size of the cache (§II-A).",
    parameters: &[
        "20,000 members with lognormal degrees as in kith-metro: median 51, spread 0.8; 1,000,000 lookups",
        "200 lookups per second, 30 ms per fetch; caches of 5 to 100 % of the bytes of all networks",
    ],
    assumptions: &[
        "a network takes 2 bytes per id; its number of ids is the member's degree times the mean degree of a neighbour, at \
         most the population",
        "independent: each lookup draws a member by degree. Visits: each visit draws a member by degree, for whom \
         20 lookups follow on average, one every 3 s (pages with distance badges and network sizes); 3 % of all \
         members are visiting at a time",
        "one graph version throughout; hit rates cover the whole trace, including first lookups, and its second half",
    ],
    draw,
};

/// The members of a graph, with the properties that a trace needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// For each member, the sum of the degrees of all members up to and including this one.
    cumulative: Vec<u64>,
    /// The size of each member's network, in bytes.
    pub network_bytes: Vec<usize>,
}

impl Population {
    /// Builds a population from the degrees of its members and the sizes of their networks in bytes.
    ///
    /// # Panics
    /// If the two lists differ in length.
    pub fn new(degrees: &[u64], network_bytes: Vec<usize>) -> Self {
        assert_eq!(degrees.len(), network_bytes.len(), "one network per member");
        let mut sum = 0;
        let add = |degree: &u64| {
            sum += degree;
            sum
        };
        Self { cumulative: degrees.iter().map(add).collect(), network_bytes }
    }

    /// Builds a population with lognormal degrees like those of the larger graph of the bundled generator (kith-metro).
    pub fn lognormal(members: usize, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut degree = || {
            let z = normal_quantile(rng.random_range(1e-9..1.0 - 1e-9));
            ((51.0 * (0.8 * z).exp()) as u64).clamp(1, 7_000)
        };
        let degrees: Vec<u64> = (0..members).map(|_| degree()).collect();
        let sum: u64 = degrees.iter().sum();
        let neighbour = degrees.iter().map(|degree| degree * degree).sum::<u64>() / sum;
        let ids = |degree: &u64| (degree * neighbour).min(members as u64) as usize;
        let network_bytes = degrees.iter().map(|degree| 2 * ids(degree)).collect();
        Self::new(&degrees, network_bytes)
    }

    /// Draws a member with a probability proportional to its degree.
    fn draw(&self, rng: &mut StdRng) -> usize {
        let all = self.cumulative.last().copied().unwrap_or(1).max(1);
        let at = rng.random_range(0..all);
        self.cumulative.partition_point(|sum| *sum <= at)
    }
}

/// The parameters of a trace, and the size of the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceOptions {
    /// The number of lookups.
    pub lookups: u64,
    /// The size of the cache, in bytes.
    pub cache_bytes: u64,
    /// The mean number of lookups of one visit; 1 for independent lookups.
    pub visit_mean: f64,
    /// The seed of all random decisions.
    pub seed: u64,
}

/// The results of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheRun {
    /// The share of lookups that are answered from the cache; the first lookup of each member counts too.
    pub hit_rate: f64,
    /// The same share over the second half of the trace.
    pub hit_rate_warm: f64,
    /// The hit rate at each tenth of the trace: the number of lookups so far, and their hit rate.
    pub growth: Vec<(f64, f64)>,
    /// The number of entries that were evicted.
    pub evictions: u64,
    /// The bytes in the cache at the end.
    pub bytes: u64,
}

const GAP: Duration = Duration::from_millis(5);
const FETCH: Duration = Duration::from_millis(30);
const PAUSE: Duration = Duration::from_secs(3);

enum CacheEvent {
    /// A visit begins with its first lookup.
    Visit,
    /// A further lookup of a visit.
    Again(usize),
    /// The fetch of a member's network ends. The number is the network's size in bytes.
    Landed(FlightId, usize),
}

/// Runs a trace against the production network cache.
pub fn run(population: &Population, options: TraceOptions) -> CacheRun {
    let cache = CacheOptions { bytes_max: options.cache_bytes, ..CacheOptions::default() };
    let mut cache: NetworkCache<u64, (), ()> = NetworkCache::new(cache);
    let mut rng = StdRng::seed_from_u64(options.seed);
    let mut agenda = Agenda::new();
    agenda.at(Timestamp::ZERO, CacheEvent::Visit);
    let (mut seen, mut growth, mut half) = (0, Vec::new(), cache.counters());
    while seen < options.lookups {
        let step = agenda.take().expect("there is always a next visit");
        let now = agenda.now();
        let member = match step {
            CacheEvent::Landed(flight, bytes) => {
                cache.filled(flight, (), Basis::Component, bytes, now);
                continue;
            }
            CacheEvent::Again(member) => member,
            CacheEvent::Visit => {
                // Visits begin less often if they are longer, so that the rate of lookups stays the same.
                agenda.at(now + GAP.mul_f64(options.visit_mean), CacheEvent::Visit);
                population.draw(&mut rng)
            }
        };
        if rng.random::<f64>() < 1.0 - 1.0 / options.visit_mean {
            agenda.at(now + PAUSE, CacheEvent::Again(member));
        }
        if let Lookup::Fetch(flight) = cache.get(&(member as u64), ORIGIN, now, Mode::Use) {
            agenda.at(now + FETCH, CacheEvent::Landed(flight, population.network_bytes[member]));
        }
        seen += 1;
        if seen == options.lookups / 2 {
            half = cache.counters();
        }
        if seen % (options.lookups / 10).max(1) == 0 {
            growth.push((seen as f64, cache.counters().hit_rate().unwrap_or(0.0)));
        }
    }
    let end = cache.counters();
    CacheRun {
        hit_rate: end.hit_rate().unwrap_or(0.0),
        hit_rate_warm: (end.hits - half.hits) as f64 / (options.lookups - options.lookups / 2) as f64,
        growth,
        evictions: end.evictions,
        bytes: end.bytes,
    }
}

fn draw(size: Size, seed: u64) -> Drawing {
    let (members, lookups) = match size {
        Size::Full => (20_000, 1_000_000),
        Size::Reduced => (6_000, 150_000),
    };
    let population = Population::lognormal(members, seed);
    // An entry takes about 256 bytes more than its value.
    let all: u64 = population.network_bytes.iter().map(|bytes| *bytes as u64 + 256).sum();
    let shares = [0.05, 0.1, 0.25, 0.5, 1.0];
    let (mut rows, mut by_share, mut by_length) = (Vec::new(), Vec::new(), Vec::new());
    for (name, visit_mean) in [("independent", 1.0), ("visits of 20", 20.0)] {
        let mut points = Vec::new();
        for share in shares {
            let cache_bytes = (all as f64 * share) as u64;
            let run = run(&population, TraceOptions { lookups, cache_bytes, visit_mean, seed });
            points.push((share * 100.0, run.hit_rate * 100.0));
            rows.push(vec![
                name.to_owned(),
                members.to_string(),
                lookups.to_string(),
                format!("{:.0}", share * 100.0),
                (cache_bytes >> 20).to_string(),
                format!("{:.2}", run.hit_rate * 100.0),
                format!("{:.2}", run.hit_rate_warm * 100.0),
                run.evictions.to_string(),
            ]);
            if share == 1.0 {
                let points = run.growth.iter().map(|(seen, rate)| (*seen, rate * 100.0)).collect();
                by_length.push(Series { name: name.to_owned(), points });
            }
        }
        by_share.push(Series { name: name.to_owned(), points });
    }
    let tables = vec![Table { name: "hit-rates", columns: COLUMNS.to_vec(), rows }];
    Drawing { panels: panels(by_share, by_length), tables }
}

const COLUMNS: [&str; 8] = [
    "trace",
    "members",
    "lookups",
    "cache_percent",
    "cache_mib",
    "hit_rate_percent",
    "hit_rate_second_half_percent",
    "evictions",
];

fn panels(by_share: Vec<Series>, by_length: Vec<Series>) -> Vec<Panel> {
    let rate = Axis::linear("hit rate, %", "hit_rate_percent");
    let warming = Axis { column: "hit_rate_percent_by_lookups", ..rate };
    let share = Axis::linear("cache, % of the bytes of all networks", "cache_percent");
    let lookups = Axis::linear("lookups", "lookups");
    let panel =
        |title: &str, x, y, series| Panel { title: title.to_owned(), x, y, style: Style::Lines, series };
    vec![
        panel("by size of the cache, whole trace", share, rate, by_share),
        panel("by length of the trace, everything fits", lookups, warming, by_length),
    ]
}
