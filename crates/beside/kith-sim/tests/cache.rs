//! The hit rate of the network cache is over 95 % (Moolle §II-A).

use kith_sim::figures::{Population, TraceOptions, run_cache};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Returns the population of the bundled graph: its degrees, and the sizes of its networks when encoded as sorted ids.
fn village() -> Population {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/kith-village/edges.csv.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(file).expect("the bundled graph"))
        .read_to_string(&mut text)
        .expect("gzip");
    let mut neighbours: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let (a, b) = line.split_once(',').expect("two columns");
        let (a, b) = (a.parse().expect("an id"), b.parse().expect("an id"));
        neighbours.entry(a).or_default().push(b);
        neighbours.entry(b).or_default().push(a);
    }
    let network_bytes = |member: &u64| {
        let first = &neighbours[member];
        let mut ids: Vec<u64> =
            first.iter().flat_map(|friend| &neighbours[friend]).chain(first).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let mut bytes = Vec::new();
        kith_types::delta::encode(&ids, &mut bytes);
        bytes.len()
    };
    let degrees: Vec<u64> = neighbours.values().map(|list| list.len() as u64).collect();
    Population::new(&degrees, neighbours.keys().map(network_bytes).collect())
}

#[test]
fn on_the_bundled_graph_a_degree_weighted_trace_hits_95_in_100() {
    let village = village();
    let all: usize = village.network_bytes.iter().sum();
    assert!(all < 64 << 20, "all networks fit the default cache of 256 MiB: {all}");
    for seed in [1, 2] {
        let options = TraceOptions { lookups: 200_000, cache_bytes: 256 << 20, visit_mean: 1.0, seed };
        let run = run_cache(&village, options);
        eprintln!("hit rate {:.4}, second half {:.4}", run.hit_rate, run.hit_rate_warm);
        assert!(0.95 <= run.hit_rate, "including first lookups: {run:?}");
        assert!(0.99 <= run.hit_rate_warm && run.evictions == 0, "{run:?}");
    }
}

#[test]
fn visits_need_far_less_memory_than_independent_look_ups() {
    let population = Population::lognormal(6_000, 4);
    let all: u64 = population.network_bytes.iter().map(|bytes| *bytes as u64 + 256).sum();
    let rate = |visit_mean, share: u64| {
        let options = TraceOptions { lookups: 300_000, cache_bytes: all * share / 100, visit_mean, seed: 4 };
        let run = run_cache(&population, options);
        assert!(run.bytes <= all * share / 100, "the bound holds: {run:?}");
        run.hit_rate
    };
    assert!(0.95 <= rate(1.0, 100), "lookups are degree-weighted and independent, and all networks fit");
    assert!(rate(1.0, 25) < 0.5, "a small cache finds few entries for independent lookups");
    assert!(0.9 <= rate(20.0, 25), "the lookups of a visit find the network in the cache");
}

#[test]
fn equal_seeds_run_alike() {
    let population = Population::lognormal(500, 4);
    let options = TraceOptions { lookups: 5_000, cache_bytes: 200_000, visit_mean: 5.0, seed: 8 };
    assert_eq!(run_cache(&population, options), run_cache(&population, options));
    assert_ne!(run_cache(&population, options), run_cache(&population, TraceOptions { seed: 9, ..options }));
}
