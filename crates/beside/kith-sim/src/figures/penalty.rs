//! Figure 9a: the computation penalty of equation 5 (Moolle §IV-C3, §V-B2).

use crate::figures::fan_out::cluster;
use crate::figures::means::{MeanPlan, mean_plan};
use crate::figures::{Axis, Drawing, Figure, Panel, Series, Size, Style};
use crate::strategy::Strategy;
use kith_routing::fan_out::Penalty;
use kith_types::FanOutKind;

pub(super) const FIGURE_9A: Figure = Figure {
    name: "9a",
    title: "computation penalty and requests over vertices per query",
    shows: "The asynchronous union controller keeps P of equation 5 low: one group below 450 keys, five at \
            about 1,800, all ten above 3,000 (§IV-C3, §V-B2).",
    parameters: &[
        "10 groups of 20 nodes, 1,536 partitions, 50 to 4,000 keys",
        "controller async-union with its default coefficients: client 1, server 4, growth 1.5",
    ],
    assumptions: &[
        "P is computed from the requests and the busiest node of real plans, not from means",
        "a server's cost per key grows with the query's keys (docs/design/0002-fan-out-control.md): as \
         printed, equation 5 cannot give the paper's break points",
    ],
    draw,
};

fn draw(size: Size, seed: u64) -> Drawing {
    let (step, queries) = match size {
        Size::Full => (50, 60),
        Size::Reduced => (150, 15),
    };
    let keys: Vec<u32> = (step..=4_000).step_by(step as usize).collect();
    let table = cluster(10, seed);
    let strategies =
        [Strategy::naive(), Strategy::set_cover_norbert(), Strategy::set_cover(), Strategy::moolle()];
    let mut panels = panels();
    for strategy in &strategies {
        let plan_of = |keys: &u32| mean_plan(&table, strategy, FanOutKind::AsyncUnion, *keys, queries, seed);
        let plans: Vec<MeanPlan> = keys.iter().map(plan_of).collect();
        let points = |of: &dyn Fn(u32, &MeanPlan) -> f64| {
            keys.iter().zip(&plans).map(|(keys, plan)| (f64::from(*keys), of(*keys, plan))).collect()
        };
        let penalty = Penalty::default();
        let name = || strategy.name.clone();
        panels[0].series.push(Series {
            name: name(),
            points: points(&|keys, plan| penalty.of(keys, plan.requests, plan.busiest_keys)),
        });
        panels[1].series.push(Series { name: name(), points: points(&|_, plan| plan.requests) });
        if strategy.name == "Moolle" {
            panels[2].series.push(Series { name: name(), points: points(&|_, plan| plan.groups) });
        }
    }
    Drawing { panels: panels.into(), tables: Vec::new() }
}

fn panels() -> [Panel; 3] {
    let panel = |title: &str, y: Axis| Panel {
        title: title.to_owned(),
        x: Axis::linear("vertices (keys) per query", "keys"),
        y,
        style: Style::Lines,
        series: Vec::new(),
    };
    [
        panel("penalty P (equation 5)", Axis::logarithmic("penalty P", "penalty")),
        panel("requests", Axis::linear("requests per query", "requests")),
        panel("groups chosen by the controller", Axis::linear("groups", "groups")),
    ]
}
