//! Figures 9b, 9c and 9d: controllers of early-terminable queries (Moolle §IV-D, §V-C).
//!
//! The paper used a simulator for these figures too. Each simulated client measures its own rates and receives reports from
//! the nodes. The results come from this feedback loop, not from the equations.

use crate::cluster::{ClientModel, ClusterConfig, Strategy, Trace, simulate};
use crate::figures::{Axis, Drawing, Figure, Panel, Series, Size, Style};
use crate::workload::{Arrivals, Workload};
use kith_types::FanOutKind;
use std::time::Duration;

/// The controller with the paper's desired rates and gains (§V-C).
const CONTROLLER: &str = "pd(global-rps(client=5000, node=10000), proportional=1, derivative=0.5)";

/// The number of clients. The knee of figure 9d at D_SRPS = 2,500 and 8 groups implies it: by equation 10, the client's
/// bound, 5,000 ÷ (20 × 30) = 8.3 groups, equals the servers' bound, 10 × 2,500 ÷ (m × 30), at m = 100.
const CLIENTS: u32 = 100;

const PARAMETERS_9BC: &[&str] = &[
    "10 groups of 20 nodes, 100 equal clients, 5 to 200 queries per second each",
    "controller pd(global-rps(client=5000, node=10000), proportional=1, derivative=0.5)",
];
const ASSUMPTIONS_9: &[&str] = &[
    "about 100 clients, as the knee of figure 9d implies (10 × 2,500 ÷ (m × 30) = 8.3 groups)",
    "queries are evenly spaced, except in the series with Poisson arrivals",
    "requests cost the client no time, because only their number matters, as in §V-A",
    "one client is simulated; nodes report 100 times its request rate, and 100 clients",
];

pub(super) const FIGURE_9B: Figure = Figure {
    name: "9b",
    title: "requests per early-terminable query over queries per second",
    shows: "All groups take part below 25 queries per second, one above about 125, and as many as D_RPS allows \
            in between (§V-C).",
    parameters: PARAMETERS_9BC,
    assumptions: ASSUMPTIONS_9,
    draw: |size, seed| {
        let y = Axis::linear("requests per query", "requests");
        by_qps(size, seed, y, |trace| trace.summary(None).requests)
    },
};

pub(super) const FIGURE_9C: Figure = Figure {
    name: "9c",
    title: "requests per second of a client over queries per second",
    shows: "The client stays within D_RPS = 5,000 as long as queries to a single group do (§V-C).",
    parameters: PARAMETERS_9BC,
    assumptions: ASSUMPTIONS_9,
    draw: |size, seed| {
        let y = Axis::linear("requests per second", "rps");
        let mut drawing = by_qps(size, seed, y, Trace::requests_per_second);
        let panel = &mut drawing.panels[0];
        let ends = [panel.series[0].points[0].0, panel.series[0].points.last().map_or(0.0, |point| point.0)];
        let points = ends.map(|qps| (qps, 5_000.0)).into();
        panel.series.push(Series { name: "D_RPS".to_owned(), points });
        // The line of naive rises to 40,000 and would flatten the other lines, so its upper part is left out.
        panel.series[0].points.retain(|point| point.1 <= 20_000.0);
        drawing
    },
};

pub(super) const FIGURE_9D: Figure = Figure {
    name: "9d",
    title: "requests per early-terminable query over the desired rate of a node",
    shows: "At 30 queries per second, the client's limit is 160 requests; below D_SRPS = 2,500, the nodes' limit is \
            lower (§V-C).",
    parameters: &[
        "10 groups of 20 nodes, 100 equal clients, 30 queries per second each",
        "controller pd(global-rps(client=5000, node=D_SRPS), proportional=1, derivative=0.5)",
    ],
    assumptions: ASSUMPTIONS_9,
    draw: draw_9d,
};

fn trace(strategy: Strategy, qps: f64, arrivals: Arrivals, size: Size, seed: u64) -> Trace {
    let workload = Workload { arrivals, ..Workload::only(FanOutKind::EarlyTerminable, qps) };
    let mut config = ClusterConfig::of_the_paper(strategy, workload, seed);
    config.clients = 1;
    config.node.clients_each = CLIENTS;
    let free = Duration::ZERO;
    config.client = ClientModel { send: free, receive: free, per_key: free, ..config.client };
    // The warm-up lasts for seven time constants of the PD controller.
    config.warm_up = Duration::from_secs(10);
    config.until = config.warm_up + Duration::from_secs(if size == Size::Full { 10 } else { 5 });
    simulate(&config)
}

fn by_qps(size: Size, seed: u64, y: Axis, of: impl Fn(&Trace) -> f64) -> Drawing {
    let rates: Vec<f64> = match size {
        Size::Full => {
            (1..=25).map(|step| f64::from(step) * 5.0).chain([135.0, 150.0, 175.0, 200.0]).collect()
        }
        Size::Reduced => vec![10.0, 24.0, 50.0, 80.0, 126.0, 200.0],
    };
    let controlled = || Strategy::moolle().controlled(CONTROLLER);
    let lines = [
        (Strategy::naive(), Arrivals::Regular),
        (Strategy::set_cover(), Arrivals::Regular),
        (controlled(), Arrivals::Regular),
        (Strategy { name: "Moolle, Poisson arrivals".to_owned(), ..controlled() }, Arrivals::Poisson),
    ];
    let series = lines.into_iter().map(|(strategy, arrivals)| Series {
        name: strategy.name.clone(),
        points: rates
            .iter()
            .map(|qps| (*qps, of(&trace(strategy.clone(), *qps, arrivals, size, seed))))
            .collect(),
    });
    Drawing::of(Panel {
        title: "D_RPS 5,000, D_SRPS 10,000, PD gains 1.0 and 0.5".to_owned(),
        x: Axis::linear("queries per second of a client", "qps"),
        y,
        style: Style::Lines,
        series: series.collect(),
    })
}

fn draw_9d(size: Size, seed: u64) -> Drawing {
    let desired: Vec<f64> = match size {
        Size::Full => (1..=20).map(|step| f64::from(step) * 250.0).collect(),
        Size::Reduced => vec![250.0, 1_000.0, 1_750.0, 2_500.0, 3_500.0, 5_000.0],
    };
    let requests = |node: &f64, arrivals| {
        let controller = format!("pd(global-rps(client=5000, node={node}), proportional=1, derivative=0.5)");
        let strategy = Strategy::moolle().controlled(&controller);
        (*node, trace(strategy, 30.0, arrivals, size, seed).summary(None).requests)
    };
    let series = [("Moolle", Arrivals::Regular), ("Moolle, Poisson arrivals", Arrivals::Poisson)];
    let series = series.map(|(name, arrivals)| Series {
        name: name.to_owned(),
        points: desired.iter().map(|node| requests(node, arrivals)).collect(),
    });
    Drawing::of(Panel {
        title: "30 queries per second at each of 100 clients, D_RPS 5,000".to_owned(),
        x: Axis::linear("D_SRPS: desired requests per second of a node", "d_srps"),
        y: Axis::linear("requests per query", "requests"),
        style: Style::Lines,
        series: series.into(),
    })
}
