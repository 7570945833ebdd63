//! Properties of the simulator that hold regardless of the numbers of the model.

use kith_routing::execution::Verdict;
use kith_sim::cluster::{ClientModel, ClusterConfig, Strategy, Trace, simulate};
use kith_sim::workload::{Arrivals, KeyCounts, Workload};
use kith_types::FanOutKind;
use std::time::Duration;

fn config(strategy: Strategy, workload: Workload) -> ClusterConfig {
    ClusterConfig {
        clients: 2,
        warm_up: Duration::from_secs(1),
        until: Duration::from_secs(6),
        ..ClusterConfig::of_the_paper(strategy, workload, 9)
    }
}

fn is_clean(trace: &Trace) {
    assert!(!trace.queries.is_empty());
    for query in &trace.queries {
        assert_eq!((query.verdict, query.wrong_keys), (Some(Verdict::Complete), 0), "{query:?}");
    }
    assert_eq!((trace.unended, trace.outstanding_keys, trace.late_sends), (0, 0, 0));
}

#[test]
fn every_strategy_answers_every_key_once() {
    let strategies =
        kith_routing::policy::ALL.iter().map(|policy| Strategy::of_policy(policy.name(), policy.name()));
    for strategy in strategies {
        is_clean(&simulate(&config(strategy, Workload::mixed(40.0))));
    }
}

#[test]
fn equal_seeds_give_equal_traces_and_others_do_not() {
    let config = config(Strategy::moolle(), Workload::mixed(30.0));
    let trace = simulate(&config);
    assert_eq!(trace, simulate(&config));
    assert_ne!(trace, simulate(&ClusterConfig { seed: 10, ..config }));
}

#[test]
fn strategies_are_asked_the_same_queries() {
    let asked = |strategy| {
        let mut queries = simulate(&config(strategy, Workload::mixed(30.0))).queries;
        queries.sort_by_key(|query| query.began);
        queries.iter().map(|query| (query.began, query.kind, query.keys)).collect::<Vec<_>>()
    };
    assert_eq!(asked(Strategy::naive()), asked(Strategy::moolle()));
}

#[test]
fn a_positive_answer_ends_an_early_terminable_query_and_no_other() {
    let workload = Workload::only(FanOutKind::EarlyTerminable, 20.0);
    let trace = simulate(&config(Strategy::moolle_static(1), workload));
    is_clean(&trace);
    let took = |early: bool| {
        let queries: Vec<_> = trace.queries.iter().filter(|query| query.stopped_early == early).collect();
        let sum: Duration = queries.iter().map(|query| query.took).sum();
        (queries.len(), sum / queries.len() as u32)
    };
    let ((early, early_took), (late, late_took)) = (took(true), took(false));
    let share = early as f64 / (early + late) as f64;
    assert!((0.55..0.85).contains(&share), "seven in ten have a hit: {share}");
    assert!(3 * early_took < late_took, "{early_took:?} against {late_took:?}");
}

#[test]
fn a_busy_client_makes_queries_wait() {
    let p99 = |send: u64| {
        let mut config = config(Strategy::naive(), Workload::mixed(40.0));
        config.client = ClientModel { send: Duration::from_micros(send), ..config.client };
        simulate(&config).summary(Some(FanOutKind::SingleKey)).p99_ms
    };
    assert!(2.0 * p99(0) < p99(120), "single-key queries wait behind the many requests of other queries");
}

#[test]
fn the_part_that_grows_with_keys_is_seen() {
    let median = |keys: u32| {
        let mut workload = Workload::only(FanOutKind::SyncUnion, 5.0);
        workload.keys = KeyCounts::exactly(keys);
        simulate(&config(Strategy::moolle_static(1), workload)).summary(None).median_ms
    };
    // 250 keys per node at 20 µs take 5 ms, and merging 5,000 keys takes another 5 ms.
    assert!(median(200) + 4.0 < median(5_000), "equation 4: {} and {}", median(200), median(5_000));
}

#[test]
fn nodes_count_the_clients_and_their_own_rate() {
    // The controller limits the requests of 100 clients to the desired rate of a node.
    let mut workload = Workload::only(FanOutKind::EarlyTerminable, 30.0);
    workload.arrivals = Arrivals::Regular;
    let strategy = Strategy::moolle().controlled("global-rps(client=1000000, node=1500)");
    let mut config = config(strategy, workload);
    config.clients = 1;
    config.node.clients_each = 100;
    let requests = simulate(&config).summary(None).requests;
    assert!(
        (70.0..=100.0).contains(&requests),
        "equation 10: 10 x 1,500 / (100 x 30) = 5 groups, {requests}"
    );
}
