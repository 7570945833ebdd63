//! The tail experiment. It compares Moolle's controllers with naive round robin on the whole 40/40/20 mix, and Kith's
//! defaults with every policy and controller. It also shows how much the result depends on assumptions about numbers that
//! the paper does not state.

use crate::cluster::{ClusterConfig, Strategy, Summary, Trace, simulate};
use crate::figures::{Axis, Drawing, Figure, Panel, Series, Size, Style, Table, parallel};
use crate::tail_latency::TailLatency;
use crate::workload::Workload;
use kith_routing::{fan_out, load::Hedging, policy};
use kith_types::FanOutKind;
use std::time::Duration;

/// A load with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The name of the load in tables.
    pub name: &'static str,
    /// Queries per second at each client.
    pub qps: f64,
}

/// The loads at which a client under naive round robin is about 12 %, 48 % and 83 % busy. Peak is a load that naive can
/// still carry, as the paper's production did; medium is a little over half of it.
pub const LOADS: [Load; 3] =
    [Load { name: "low", qps: 10.0 }, Load { name: "medium", qps: 40.0 }, Load { name: "peak", qps: 70.0 }];

pub(super) const TAIL: Figure = Figure {
    name: "tail",
    title: "the 40/40/20 mix: Kith's defaults against Moolle's controllers, set covers and naive round robin",
    shows: "Median and p99 of all queries, and requests per query, by load. Tables: each kind of query under every policy and \
            controller; each assumption; and when it pays to end a query early.",
    parameters: &[
        "10 groups of 20 nodes, 1,536 partitions, 10 clients, 10 to 75 queries per second each",
        "40 % single-key, 40 % multi-key (median 400 keys, spread 1, 50 to 5,000), 20 % common-entity",
        "Moolle: n-groups with the paper's controller for each kind of query",
        "default: Kith's default settings, which are n-groups, the default controllers, and hedging of late requests",
        "\"policy, controller\": a policy with one controller for all kinds of queries; the other policies ignore controllers",
    ],
    assumptions: &[
        "latency as in figure 5; 120 µs per request and 1 µs per key at the client, 60 µs and 20 µs at the node",
        "seven in ten common-entity queries have a positive answer, in four partitions on average",
        "low, medium and peak load are 10, 40 and 70 queries per second, at which naive's client is 12, 48 and 83 % busy",
        "a request costs nothing more once it is cancelled",
        "the default is recorded after three minutes instead of two seconds, because a client considers no request to a node \
         late before 100 requests to this node have ended",
    ],
    draw,
};

/// The warm-up of a client that hedges. A client does not consider a request to a node late before a hundred requests to
/// this node have ended.
const HEDGING_WARM_UP: Duration = Duration::from_secs(180);
/// The time for which queries are recorded.
const RECORDED: Duration = Duration::from_secs(20);
/// The warm-up of a client that does not hedge, in which meters and queues fill.
const WARM_UP: Duration = Duration::from_secs(2);

/// Runs one strategy on the mix, with a configuration that `vary` has changed.
fn run(strategy: Strategy, qps: f64, size: Size, seed: u64, vary: &dyn Fn(&mut ClusterConfig)) -> Trace {
    let mut config = ClusterConfig::of_the_paper(strategy, Workload::mixed(qps), seed);
    config.clients = match size {
        Size::Full => 10,
        Size::Reduced => 6,
    };
    config.warm_up = match config.strategy.hedging {
        Hedging::Off => WARM_UP,
        Hedging::Table | Hedging::Live => HEDGING_WARM_UP,
    };
    config.until = config.warm_up + RECORDED;
    vary(&mut config);
    simulate(&config)
}

/// Simulates the mix under a strategy, with `qps` queries per second at each client.
pub fn mixed(strategy: Strategy, qps: f64, size: Size, seed: u64) -> Trace {
    run(strategy, qps, size, seed, &|_| {})
}

/// Returns the strategies with which Kith's defaults are compared: every policy that ignores controllers, the other policies
/// with each controller, and Moolle, whose controllers depend on the kind of query.
pub fn rivals() -> Vec<Strategy> {
    let named = [Strategy::naive(), Strategy::set_cover_norbert(), Strategy::set_cover(), Strategy::moolle()];
    let is_named = |policy: &str| named.iter().any(|strategy| strategy.policy.name() == policy);
    let others = policy::ALL.iter().map(|policy| policy.name()).filter(|policy| !is_named(policy));
    let others =
        others.map(|policy| Strategy::of_policy(format!("{policy}, minimum"), policy).controlled("minimum"));
    let controllers = fan_out::names().map(|controller| match controller {
        "static" => "static(3)",
        other => other,
    });
    let controlled = controllers.map(|controller| {
        Strategy { name: format!("n-groups, {controller}"), ..Strategy::moolle() }.controlled(controller)
    });
    let others: Vec<Strategy> = others.chain(controlled).collect();
    named.into_iter().chain(others).collect()
}

const COLUMNS: [&str; 11] = [
    "load",
    "qps",
    "strategy",
    "kind",
    "queries",
    "median_ms",
    "p99_ms",
    "mean_ms",
    "requests",
    "client_busy",
    "node_busy",
];

fn draw(size: Size, seed: u64) -> Drawing {
    let rates: &[f64] = match size {
        Size::Full => &[10.0, 25.0, 40.0, 55.0, 70.0, 75.0],
        Size::Reduced => &[10.0, 40.0, 70.0],
    };
    let drawn = [Strategy::naive(), Strategy::set_cover_norbert(), Strategy::moolle(), Strategy::kith()];
    let tabled = rivals().into_iter().filter(|rival| drawn.iter().all(|drawn| drawn.name != rival.name));
    let tabled: Vec<Strategy> = tabled.collect();
    let at_rates = drawn.iter().flat_map(|strategy| rates.iter().map(move |qps| (strategy, *qps)));
    let at_loads = tabled.iter().flat_map(|strategy| LOADS.map(|load| (strategy, load.qps)));
    let runs: Vec<(&Strategy, f64)> = at_rates.chain(at_loads).collect();
    let done: Vec<(Summary, Vec<Vec<String>>)> = parallel::map(&runs, |(strategy, qps)| {
        let trace = mixed((*strategy).clone(), *qps, size, seed);
        let load = LOADS.iter().find(|load| load.qps == *qps);
        let rows = load.map_or_else(Vec::new, |load| rows_of(load, &strategy.name, &trace));
        (trace.summary(None), rows)
    });
    let mut panels = panels();
    let measures: [fn(&Summary) -> f64; 3] =
        [|summary| summary.median_ms, |summary| summary.p99_ms, |summary| summary.requests];
    for (strategy, done) in drawn.iter().zip(done.chunks(rates.len())) {
        for (panel, of) in panels.iter_mut().zip(measures) {
            let points = rates.iter().zip(done).map(|(qps, (summary, _))| (*qps, of(summary))).collect();
            panel.series.push(Series { name: strategy.name.clone(), points });
        }
    }
    let rows = done.into_iter().flat_map(|(_, rows)| rows).collect();
    let mut tables = vec![Table { name: "kinds", columns: COLUMNS.to_vec(), rows }];
    if size == Size::Full {
        tables.extend([sensitivity(seed), early(seed)]);
    }
    Drawing { panels: panels.into(), tables }
}

fn panels() -> [Panel; 3] {
    let panel = |title: &str, label, column| Panel {
        title: title.to_owned(),
        x: Axis::linear("queries per second and client", "qps"),
        y: Axis::linear(label, column),
        style: Style::Lines,
        series: Vec::new(),
    };
    [
        panel("median of all queries", "latency, ms", "median_ms"),
        panel("99th percentile of all queries", "latency, ms", "p99_ms"),
        panel("requests", "requests per query", "requests"),
    ]
}

fn rows_of(load: &Load, strategy: &str, trace: &Trace) -> Vec<Vec<String>> {
    let kinds =
        [None, Some(FanOutKind::SingleKey), Some(FanOutKind::SyncUnion), Some(FanOutKind::EarlyTerminable)];
    let row = |kind: Option<FanOutKind>| {
        let summary = trace.summary(kind);
        vec![
            load.name.to_owned(),
            load.qps.to_string(),
            strategy.to_owned(),
            kind.map_or("all", FanOutKind::name).to_owned(),
            summary.queries.to_string(),
            format!("{:.1}", summary.median_ms),
            format!("{:.1}", summary.p99_ms),
            format!("{:.1}", summary.mean_ms),
            format!("{:.1}", summary.requests),
            format!("{:.2}", trace.client_utilisation),
            format!("{:.3}", trace.node_utilisation),
        ]
    };
    kinds.into_iter().map(row).collect()
}

/// A change to the model, with its name.
type Vary = (&'static str, fn(&mut ClusterConfig));

/// The variations, which run at medium load. Each changes one assumption; the first one changes nothing.
const VARIATIONS: &[Vary] = &[
    ("as assumed", |_| {}),
    ("lighter tail: maximum is the largest of a million", |config| {
        config.latency = TailLatency::through(1.5, 21.0, 323.0, 1e6);
    }),
    ("heavier tail: maximum is the largest of ten thousand", |config| {
        config.latency = TailLatency::through(1.5, 21.0, 323.0, 1e4);
    }),
    ("client four times as fast", |config| scale_client(config, 0.25)),
    ("client costs nothing", |config| scale_client(config, 0.0)),
    ("client with 4 workers of a quarter the speed", |config| {
        scale_client(config, 4.0);
        config.client.workers = 4;
    }),
    ("a key costs a node 5 us", |config| config.node.per_key = Duration::from_micros(5)),
    ("a key costs a node 100 us", |config| config.node.per_key = Duration::from_micros(100)),
    ("a partition costs a node 100 us", |config| config.node.per_partition = Duration::from_micros(100)),
    ("median 100 keys", |config| config.workload.keys.median = 100.0),
    ("median 1000 keys", |config| config.workload.keys.median = 1_000.0),
    ("three in ten common-entity queries positive", |config| config.workload.positive_share = 0.3),
    ("nine in ten common-entity queries positive", |config| config.workload.positive_share = 0.9),
    ("100 clients", |config| {
        (config.clients, config.until) = (100, Duration::from_secs(7));
    }),
];

fn scale_client(config: &mut ClusterConfig, factor: f64) {
    let client = &mut config.client;
    for cost in [&mut client.send, &mut client.receive, &mut client.per_key] {
        *cost = cost.mul_f64(factor);
    }
}

fn sensitivity(seed: u64) -> Table {
    let rows = parallel::map(VARIATIONS, |(name, vary)| {
        let [naive, moolle] = [Strategy::naive(), Strategy::moolle()]
            .map(|strategy| run(strategy, LOADS[1].qps, Size::Full, seed, vary));
        let mut row = vec![(*name).to_owned()];
        for kind in [None, Some(FanOutKind::SyncUnion)] {
            let (naive, moolle) = (naive.summary(kind), moolle.summary(kind));
            let cut = |of: fn(&Summary) -> f64| format!("{:.0}", 100.0 * (1.0 - of(&moolle) / of(&naive)));
            row.extend([cut(|all| all.median_ms), cut(|all| all.p99_ms), cut(|all| all.requests)]);
        }
        row
    });
    let columns = vec![
        "assumption",
        "median_cut_percent",
        "p99_cut_percent",
        "requests_cut_percent",
        "multi_key_median_cut_percent",
        "multi_key_p99_cut_percent",
        "multi_key_requests_cut_percent",
    ];
    Table { name: "sensitivity", columns, rows }
}

/// Shows when it pays to send a query that ends with the first positive answer to many groups. The workload consists of
/// common-entity queries at low load; a node's time per partition varies.
fn early(seed: u64) -> Table {
    let runs: Vec<(u64, u32)> =
        [5, 50, 200, 1_000].iter().flat_map(|micros| [1, 3, 10].map(|groups| (*micros, groups))).collect();
    let rows = parallel::map(&runs, |&(micros, groups)| {
        let vary = |config: &mut ClusterConfig| {
            config.node.per_partition = Duration::from_micros(micros);
            config.workload.mix = vec![(FanOutKind::EarlyTerminable, 1.0)];
            config.clients = 4;
        };
        let summary =
            run(Strategy::moolle_static(groups), LOADS[0].qps, Size::Full, seed, &vary).summary(None);
        let numbers = [summary.median_ms, summary.p99_ms, summary.mean_ms, summary.requests];
        let mut row = vec![micros.to_string(), groups.to_string()];
        row.extend(numbers.map(|number| format!("{number:.1}")));
        row
    });
    let columns = vec!["partition_us", "groups", "median_ms", "p99_ms", "mean_ms", "requests"];
    Table { name: "early", columns, rows }
}
