//! Tests Venice's claim about large fan-outs with production decisions: more replicas increase the throughput only with
//! groups.

use kith_routing::execution::Verdict;
use kith_sim::cluster::{ClientModel, ClusterConfig, NodeModel, Strategy, Trace, simulate};
use kith_sim::tail_latency::TailLatency;
use kith_sim::workload::{KeyCounts, Workload};
use kith_types::FanOutKind;
use std::time::Duration;

/// Simulates queries of 1,000 keys. Without groups, every node receives a request of each query. A request costs its node
/// 60 µs and half a microsecond per key. Clients take no time, because more routers could be added at any time.
fn replicas(policy: &str, groups: u32, qps: f64) -> Trace {
    let mut workload = Workload::only(FanOutKind::NonUnion, qps / 8.0);
    workload.keys = KeyCounts::exactly(1_000);
    let idle = Duration::ZERO;
    simulate(&ClusterConfig {
        groups,
        nodes_per_group: 20,
        clients: 8,
        client: ClientModel { workers: 64, send: idle, receive: idle, per_key: idle },
        node: NodeModel { per_key: Duration::from_nanos(500), ..NodeModel::default() },
        latency: TailLatency::through(0.2, 1.0, 5.0, 100_000.0),
        warm_up: Duration::from_millis(100),
        until: Duration::from_millis(600),
        ..ClusterConfig::of_the_paper(Strategy::of_policy(policy, policy), workload, 3)
    })
}

/// Returns the queries per second at which nodes are 60 % busy, and the requests per query.
fn throughput(policy: &str, groups: u32) -> (f64, f64) {
    let probe = replicas(policy, groups, 1_000.0);
    let qps = 1_000.0 * 0.6 / probe.node_utilisation;
    let trace = replicas(policy, groups, qps);
    assert!((0.5..0.7).contains(&trace.node_utilisation), "{policy}: {}", trace.node_utilisation);
    assert!(trace.queries.iter().all(|query| query.verdict == Some(Verdict::Complete)));
    let summary = trace.summary(None);
    eprintln!(
        "{policy}, {groups} groups: {qps:.0} queries a second at {:.2} busy: {summary:.2?}",
        trace.node_utilisation
    );
    (qps, summary.requests)
}

/// "Doubling the replication factor (doubling the total number of Venice server instances), the read throughput
/// capacity of the whole cluster didn't change at all"; with groups the fan-out is "constant regardless of the replication factor".
#[test]
fn doubling_the_replicas_doubles_throughput_with_groups_and_not_without() {
    let ((three, fan_out), (six, fan_out_six)) =
        (throughput("least-loaded", 3), throughput("least-loaded", 6));
    assert!(1.9 <= six / three, "{three:.0} to {six:.0} queries a second");
    assert_eq!((fan_out, fan_out_six), (20.0, 20.0));
    let ((three, fan_out), (six, fan_out_six)) =
        (throughput("least-pending", 3), throughput("least-pending", 6));
    assert!((0.9..1.15).contains(&(six / three)), "{three:.0} to {six:.0} queries a second");
    assert!(1.8 * fan_out < fan_out_six, "{fan_out} to {fan_out_six} requests a query");
}
