//! The tail experiment at reduced size: 10 groups of 20 nodes, the paper's latency plus a part that grows with the keys, the
//! 40/40/20 mix, and at least 50 keys in multi-key queries (median 400).

use kith_sim::cluster::{Strategy, Summary, Trace};
use kith_sim::figures::{LOADS, Size, mixed, rivals};
use kith_types::FanOutKind;

fn compare(qps: f64, seed: u64) -> (Trace, Trace) {
    let [naive, moolle] =
        [Strategy::naive(), Strategy::moolle()].map(|strategy| mixed(strategy, qps, Size::Reduced, seed));
    (naive, moolle)
}

fn cut(naive: &Summary, moolle: &Summary, of: fn(&Summary) -> f64) -> f64 {
    1.0 - of(moolle) / of(naive)
}

#[test]
fn moolle_cuts_median_and_p99_by_a_third_and_requests_by_half() {
    for load in LOADS.iter().filter(|load| load.name != "low") {
        for seed in [1, 2] {
            let (naive, moolle) = compare(load.qps, seed);
            assert!(naive.queries.len() == moolle.queries.len(), "both strategies get the same queries");
            assert!(naive.queries.iter().filter(|q| q.kind == FanOutKind::SyncUnion).all(|q| 50 <= q.keys));
            for kind in [None, Some(FanOutKind::SyncUnion)] {
                let (naive, moolle) = (naive.summary(kind), moolle.summary(kind));
                let cuts = [
                    cut(&naive, &moolle, |summary| summary.median_ms),
                    cut(&naive, &moolle, |summary| summary.p99_ms),
                    cut(&naive, &moolle, |summary| summary.requests),
                ];
                let [median, p99, requests] = cuts;
                eprintln!("{} load, seed {seed}, {kind:?}: {cuts:.2?}", load.name);
                assert!(0.35 <= median && 0.35 <= p99 && 0.5 <= requests, "{kind:?} {} {cuts:?}", load.name);
            }
        }
    }
}

#[test]
fn naive_still_carries_peak_load() {
    let (naive, moolle) = compare(LOADS[2].qps, 3);
    assert!((0.7..0.95).contains(&naive.client_utilisation), "{}", naive.client_utilisation);
    assert!(moolle.client_utilisation < 0.5 * naive.client_utilisation);
    assert_eq!((naive.unended, moolle.unended), (0, 0));
}

/// Returns the median, the p99 and the requests per query of all queries.
fn measures(trace: &Trace) -> [f64; 3] {
    let summary = trace.summary(None);
    [summary.median_ms, summary.p99_ms, summary.requests]
}

#[test]
fn nothing_beats_the_defaults_on_median_p99_and_requests_together() {
    for load in LOADS {
        let ours = measures(&mixed(Strategy::kith(), load.qps, Size::Reduced, 1));
        eprintln!("{}: default {ours:.1?}", load.name);
        for rival in rivals() {
            let name = rival.name.clone();
            let theirs = measures(&mixed(rival, load.qps, Size::Reduced, 1));
            eprintln!("{}: {name} {theirs:.1?}", load.name);
            assert!(
                ours.iter().zip(&theirs).any(|(ours, theirs)| ours <= theirs),
                "{name} at {} load: {theirs:.1?}, the default {ours:.1?}",
                load.name
            );
        }
    }
}
