//! Figures 5, 6, 8a and 8b: latencies (Moolle §IV-B, §V-B1).

use crate::cluster::{ClusterConfig, Strategy, Summary, millis, quantile, simulate};
use crate::figures::{Axis, Drawing, Figure, Panel, Series, Size, Style, Table};
use crate::tail_latency::PAPER_SAMPLES;
use crate::workload::{KeyCounts, Workload};
use kith_types::FanOutKind;
use std::time::Duration;

pub(super) const FIGURE_5: Figure = Figure {
    name: "5",
    title: "the long tail of a single-key request",
    shows: "The share of requests slower than x: median under 2 ms, p99 21 ms, maximum 323 ms (§IV-B1).",
    parameters: &["one client, 200 single-key queries per second, 100,000 in total", "10 groups of 20 nodes"],
    assumptions: &[
        "lognormal body (median 1.5 ms, p99 21 ms) and a bounded Pareto tail up to 323 ms, drawn independently",
        "tail index 2.53, with which the largest of 100,000 draws is about the paper's maximum",
        "processor time: 60 µs in each direction at the client, 60 µs + 20 µs per key at the node",
    ],
    draw: draw_5,
};

pub(super) const FIGURE_6: Figure = Figure {
    name: "6",
    title: "latency of a non-union fan-out over groups",
    shows: "More groups make a latency-bound fan-out slower: both terms of equation 4 grow (§IV-B2).",
    parameters: &[
        "one client, 5 queries per second of 100 keys each",
        "n-groups under static(1) to static(10)",
    ],
    assumptions: &[
        "100 keys: the members of a page of search results that need a distance badge; the paper gives no number",
        "server term: the time of the slowest request between leaving the client and coming back; client term: the rest",
        "latencies and processor times as in figure 5; 1 µs per key to merge",
    ],
    draw: draw_6,
};

/// The parameters of figures 8a and 8b.
const PARAMETERS_8: &[&str] = &[
    "10 clients with 5 to 42 queries per second each, 10 groups of 20 nodes",
    "keys per query lognormal, median 400, spread 1, 50 to 5,000",
    "controllers: the default of synchronous unions (minimum)",
];
const ASSUMPTIONS_8: &[&str] = &[
    "only the fan-outs of the network cache (synchronous unions), because the paper measured one NCS node",
    "a request takes 120 µs of the client: the paper's D_RPS of 5,000 at 60 % utilisation; naive then saturates at about 49",
    "medium load is 24 and peak load 42 queries per second, at which naive's client is about 48 % and 85 % busy",
    "nodes: 60 µs per request, 20 µs per key; latency as in figure 5",
];

pub(super) const FIGURE_8A: Figure = Figure {
    name: "8a",
    title: "median latency over queries per second",
    shows: "Moolle's median is well under naive's and a little under set cover's (§V-B1).",
    parameters: PARAMETERS_8,
    assumptions: ASSUMPTIONS_8,
    draw: |size, seed| draw_8(size, seed, "median latency, ms", |summary| summary.median_ms),
};

pub(super) const FIGURE_8B: Figure = Figure {
    name: "8b",
    title: "99th percentile latency over queries per second",
    shows: "Moolle's p99 is the lowest too; set cover's p99 suffers from a few more requests, not from imbalance (§V-B1).",
    parameters: PARAMETERS_8,
    assumptions: ASSUMPTIONS_8,
    draw: |size, seed| draw_8(size, seed, "p99 latency, ms", |summary| summary.p99_ms),
};

fn draw_5(size: Size, seed: u64) -> Drawing {
    let workload = Workload::only(FanOutKind::SingleKey, 200.0);
    let mut config = ClusterConfig::of_the_paper(Strategy::moolle(), workload, seed);
    config.clients = 1;
    config.warm_up = Duration::ZERO;
    config.until = Duration::from_secs(if size == Size::Full { 500 } else { 100 });
    let mut took: Vec<f64> = simulate(&config).queries.iter().map(|query| millis(query.took)).collect();
    took.sort_by(f64::total_cmp);
    // Twenty points per decade of the share, down to the single slowest request.
    let decades = (took.len() as f64).log10();
    let shares = (0..=(decades * 20.0) as u32).map(|step| 10f64.powf(-f64::from(step) / 20.0));
    let mut points: Vec<(f64, f64)> = shares.map(|share| (quantile(&took, 1.0 - share), share)).collect();
    points.dedup_by(|a, b| a.0 == b.0);
    let paper = vec![(2.0, 0.5), (21.0, 0.01), (323.0, 1.0 / PAPER_SAMPLES)];
    let series = vec![
        Series { name: "simulated".to_owned(), points },
        Series { name: "paper: median below, p99, maximum".to_owned(), points: paper },
    ];
    let x = Axis::logarithmic("latency, ms", "latency_ms");
    let y = Axis::logarithmic("share of requests slower", "share_slower");
    let title = "single-key requests at low load".to_owned();
    let panel = Panel { title, x, y, style: Style::Lines, series };
    let named = [("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
    let rows = named.map(|(name, share)| vec![name.to_owned(), format!("{:.2}", quantile(&took, share))]);
    let table = Table { name: "quantiles", columns: vec!["quantile", "latency_ms"], rows: rows.into() };
    Drawing { panels: vec![panel], tables: vec![table] }
}

fn draw_6(size: Size, seed: u64) -> Drawing {
    let summary = |groups: u32| {
        let mut workload = Workload::only(FanOutKind::NonUnion, 5.0);
        workload.keys = KeyCounts::exactly(100);
        let mut config = ClusterConfig::of_the_paper(Strategy::moolle_static(groups), workload, seed);
        config.clients = 1;
        config.until = Duration::from_secs(if size == Size::Full { 802 } else { 202 });
        simulate(&config).summary(None)
    };
    let by_groups: Vec<(f64, Summary)> =
        (1..=10).map(|groups| (f64::from(groups), summary(groups))).collect();
    let series = |name: &str, of: fn(&Summary) -> f64| Series {
        name: name.to_owned(),
        points: by_groups.iter().map(|(groups, summary)| (*groups, of(summary))).collect(),
    };
    Drawing::of(Panel {
        title: "average latency of 100 keys, both terms of equation 4".to_owned(),
        x: Axis::linear("groups", "groups"),
        y: Axis::linear("average latency, ms", "latency_ms"),
        style: Style::StackedBars,
        series: vec![
            series("slowest request (right term)", |summary| summary.slowest_mean_ms),
            series("client (left term)", |summary| summary.mean_ms - summary.slowest_mean_ms),
        ],
    })
}

fn draw_8(size: Size, seed: u64, label: &'static str, of: fn(&Summary) -> f64) -> Drawing {
    let (rates, clients, seconds): (&[f64], u32, u64) = match size {
        Size::Full => (&[5.0, 10.0, 15.0, 20.0, 24.0, 30.0, 36.0, 42.0], 10, 22),
        Size::Reduced => (&[5.0, 24.0, 42.0], 6, 17),
    };
    let strategies =
        [Strategy::naive(), Strategy::set_cover_norbert(), Strategy::set_cover(), Strategy::moolle()];
    let series = strategies.iter().map(|strategy| {
        let value = |qps: &f64| {
            let workload = Workload::only(FanOutKind::SyncUnion, *qps);
            let mut config = ClusterConfig::of_the_paper(strategy.clone(), workload, seed);
            config.clients = clients;
            config.until = Duration::from_secs(seconds);
            (*qps, of(&simulate(&config).summary(None)))
        };
        Series { name: strategy.name.clone(), points: rates.iter().map(value).collect() }
    });
    Drawing::of(Panel {
        title: "second-degree lookups behind the network cache".to_owned(),
        x: Axis::linear("queries per second and client", "qps"),
        y: Axis::linear(label, "latency_ms"),
        style: Style::Lines,
        series: series.collect(),
    })
}
