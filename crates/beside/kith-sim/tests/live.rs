//! Live graphs in a simulated cluster. `KITH_RUNS` sets the number of runs; `KITH_SEED` selects a single run by its seed.

use kith_cache::live::Guard;
use kith_live::Guards;
use kith_sim::live::{Report, Rules, simulate};

const RUNS: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs these seeds on all processors until a run breaks a promise. Returns the sum of the reports and the failing seed.
fn run(seeds: std::ops::Range<u64>, rules: &Rules) -> (Report, Option<u64>) {
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    let failing = std::sync::atomic::AtomicU64::new(u64::MAX);
    let sum = std::sync::Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seeds.end <= seed || failing.load(std::sync::atomic::Ordering::Relaxed) != u64::MAX {
                        return;
                    }
                    let report = simulate(seed, rules);
                    if !report.violations.is_empty() {
                        failing.fetch_min(seed, std::sync::atomic::Ordering::Relaxed);
                    }
                    sum.lock().expect("no worker panics").add(&report);
                }
            });
        }
    });
    let failing = failing.into_inner();
    (sum.into_inner().expect("no worker panics"), (failing != u64::MAX).then_some(failing))
}

#[test]
fn no_run_breaks_a_promise() {
    let seeds = match number("KITH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("KITH_RUNS").unwrap_or(RUNS),
    };
    let (report, failing) = run(seeds.clone(), &Rules::default());
    println!("{} seeds from {}: {report:?}", seeds.end - seeds.start, seeds.start);
    assert_eq!(
        failing,
        None,
        "KITH_SEED={} reproduces it: {:#?}",
        failing.unwrap_or_default(),
        report.violations
    );
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [7, 19, 85] {
        assert_eq!(simulate(seed, &Rules::default()), simulate(seed, &Rules::default()), "seed {seed}");
    }
}

/// The maximum number of runs in which to look for a promise that breaks without a rule.
const SEARCHED: u64 = 1_500;

/// The tests in `kith-live/src/leader/tests` cover the rules of leaders that are missing here, and those in
/// `kith-cache/src/live/tests` cover the missing rules of caches.
#[test]
fn without_a_rule_some_run_breaks_a_promise() {
    let all = Guards::default();
    let leaders = [
        Guards { forward_last: false, ..all },
        Guards { intents_block: false, ..all },
        Guards { refusals_recorded: false, ..all },
        Guards { floor_refuses: false, ..all },
        Guards { floor_below_intents: false, ..all },
        Guards { unknown_settled: false, ..all },
        Guards { older_copies_noticed: false, ..all },
        Guards { histories_match: false, ..all },
    ];
    for leaders in leaders {
        let rules = Rules { leaders, ..Rules::default() };
        assert!(run(0..SEARCHED, &rules).1.is_some(), "no run needs the rule that is off in {leaders:?}");
    }
    for guard in [Guard::RefuseChanged, Guard::FindTickets] {
        let rules = Rules { caches_without: Some(guard), ..Rules::default() };
        assert!(run(0..SEARCHED, &rules).1.is_some(), "no run needs the rule {guard:?}");
    }
    let rules = Rules { clients_trust_errors: true, ..Rules::default() };
    assert!(
        run(0..SEARCHED, &rules).1.is_some(),
        "no run shows that the error of a repeated write proves nothing"
    );
}
