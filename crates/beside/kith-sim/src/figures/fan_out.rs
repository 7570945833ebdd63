//! Figures 7a and 7b: the number of requests per query (Moolle §V-A). Time is not simulated.

use crate::figures::means::mean_plan;
use crate::figures::{Axis, Drawing, Figure, Panel, Series, Size, Style};
use crate::strategy::Strategy;
use kith_routing::{RoutingTable, placement};
use kith_types::{FanOutKind, PartitionCount};

const REQUESTS: Axis = Axis::linear("requests per query", "requests");

/// The number of keys in the queries of figure 7b.
const KEYS_7B: u32 = 200;

pub(super) const FIGURE_7A: Figure = Figure {
    name: "7a",
    title: "requests per query over keys per query",
    shows: "Moolle (c) saturates at 20·c requests, naive at 200, and set cover stays near one group (§V-A).",
    parameters: &[
        "10 groups of 20 nodes, 1,536 partitions, 1 to 5,000 keys",
        "policies round-robin, set-cover-norbert, set-cover, and n-groups under static(1, 3, 5, 7, 10)",
    ],
    assumptions: &[
        "keys are uniformly random; each group has an independent, balanced placement",
        "the paper's set cover is that of Norbert (its reference [16]); the greedy one of textbooks is shown for comparison",
    ],
    draw: draw_7a,
};

pub(super) const FIGURE_7B: Figure = Figure {
    name: "7b",
    title: "requests per query over nodes",
    shows: "As groups are added, naive grows with the number of nodes; Moolle (1) and set cover do not (§V-A).",
    parameters: &["1 to 10 groups of 20 nodes, 1,536 partitions", "200 keys per query"],
    assumptions: &[
        "the paper does not state the number of keys; 200 keys reach every node of a group",
        "otherwise as figure 7a",
    ],
    draw: draw_7b,
};

/// Returns a routing table with the paper's nodes per group, Kith's partitions, and the given number of groups.
pub(super) fn cluster(groups: u32, seed: u64) -> RoutingTable {
    let partitions = PartitionCount::new(1_536).expect("1,536 is a valid count");
    placement::uniform_table(groups, 20, partitions, seed).expect("20 nodes hold 1,536 partitions")
}

fn draw_7a(size: Size, seed: u64) -> Drawing {
    let table = cluster(10, seed);
    let keys = [1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 450, 700, 1_000, 1_800, 3_000, 5_000];
    let mut strategies = vec![Strategy::naive(), Strategy::set_cover_norbert(), Strategy::set_cover()];
    strategies.extend([1, 3, 5, 7, 10].map(Strategy::moolle_static));
    let series = strategies.iter().map(|strategy| Series {
        name: strategy.name.clone(),
        points: keys
            .iter()
            .map(|keys| (f64::from(*keys), requests(&table, strategy, *keys, size, seed)))
            .collect(),
    });
    let x = Axis::logarithmic("keys per query", "keys");
    let title = "10 groups of 20 nodes".to_owned();
    Drawing::of(Panel { title, x, y: REQUESTS, style: Style::Lines, series: series.collect() })
}

fn draw_7b(size: Size, seed: u64) -> Drawing {
    let strategies = [
        Strategy::naive(),
        Strategy::set_cover_norbert(),
        Strategy::set_cover(),
        Strategy::moolle_static(1),
        Strategy::moolle_static(3),
        Strategy::moolle_static(5),
    ];
    let tables: Vec<RoutingTable> = (1..=10).map(|groups| cluster(groups, seed)).collect();
    let series = strategies.iter().map(|strategy| Series {
        name: strategy.name.clone(),
        points: tables
            .iter()
            .map(|table| (table.nodes().len() as f64, requests(table, strategy, KEYS_7B, size, seed)))
            .collect(),
    });
    let x = Axis::linear("nodes (20 per group)", "nodes");
    let title = format!("{KEYS_7B} keys per query");
    Drawing::of(Panel { title, x, y: REQUESTS, style: Style::Lines, series: series.collect() })
}

fn requests(table: &RoutingTable, strategy: &Strategy, keys: u32, size: Size, seed: u64) -> f64 {
    let queries = match size {
        Size::Full => 400,
        Size::Reduced => 60,
    };
    mean_plan(table, strategy, FanOutKind::NonUnion, keys, queries, seed).requests
}
