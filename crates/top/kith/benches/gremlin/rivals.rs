//! Compares the second degree, common neighbours and the number of walks of three steps, with the same text and
//! bindings over a WebSocket of each server: Kith's router with three nodes, Gremlin Server with TinkerGraph, and
//! JanusGraph, both of which hold the graph in the memory of one process.

use super::{
    GRAPH,
    server::{Kind, Server},
    servers,
};
use crate::{
    rig::{
        self, Edges,
        turns::{Amount, Side, interval_text, take_turns},
    },
    support::{cluster::Cluster, driver::Driver},
};
use serde_json::{Value, json};
use std::{path::Path, time::Instant};

/// A traversal over two members, and its result in plain code.
struct Task {
    name: &'static str,
    gremlin: &'static str,
    right: fn(&Edges, u64, u64) -> u64,
    /// The share of the questions of other tasks, because rivals take seconds for an answer.
    share: usize,
}

const TASKS: [Task; 3] = [
    Task {
        name: "second degree",
        gremlin: "g.V(x).both('connection').both('connection').dedup().count()",
        right: |graph, x, _| graph.reached(x),
        share: 1,
    },
    Task {
        name: "common neighbours",
        gremlin: "g.V(x).both('connection').where(__.both('connection').hasId(y)).count()",
        right: |graph, x, y| graph.common(x, y),
        share: 1,
    },
    Task {
        name: "walks of three steps",
        gremlin: "g.V(x).both('connection').both('connection').both('connection').count()",
        right: |graph, x, _| graph.walks(x, 3),
        share: 5,
    },
];

pub fn run(cluster: &Cluster, graph: &Edges, file: &Path) {
    let rivals: Vec<Server> = [Kind::TinkerGraph, Kind::JanusGraph]
        .into_iter()
        .filter_map(|kind| Server::start(kind, file))
        .collect();
    if rivals.is_empty() {
        return;
    }
    let pairs = rig::setting("KITH_BENCH_PAIRS", 100);
    for task in &TASKS {
        let amount = Amount { pairs: pairs / task.share, blocks: 5, block: 10 / task.share.min(5) };
        measure(task, amount, cluster, graph, &rivals);
    }
}

fn measure(task: &Task, amount: Amount, cluster: &Cluster, graph: &Edges, rivals: &[Server]) {
    let count = amount.pairs.max(amount.blocks * amount.block) + 10;
    let members: Vec<(u64, u64)> =
        graph.uniform(count, 1).into_iter().zip(graph.by_degree(count, 2)).collect();
    let right: Vec<u64> = members.iter().map(|(x, y)| (task.right)(graph, *x, *y)).collect();
    let mut sides = vec![side(task, "Kith", Place::of(cluster), &members, &right)];
    sides.extend(
        rivals.iter().map(|rival| side(task, rival.kind.name(), Place::of_rival(rival), &members, &right)),
    );
    let seen = take_turns(&mut sides, amount);
    println!("{} ({}), {} members of {GRAPH}", task.name, task.gremlin, amount.pairs);
    println!("  Kith: {}", seen[0].describe());
    for rival in &seen[1..] {
        println!("  {}: {}", rival.name, rival.describe());
        let (time, cpu) = (interval_text(seen[0].time_to(rival)), interval_text(seen[0].cpu_to(rival)));
        println!("    Kith / {}: time {time}, CPU {cpu}", rival.name);
    }
}

/// A server that is asked.
struct Place {
    driver: Driver,
    /// The traversal source.
    source: String,
    processes: Vec<u32>,
    /// Whether its ids are texts.
    has_text_ids: bool,
}

impl Place {
    fn of(cluster: &Cluster) -> Self {
        let ready = cluster.ready();
        let driver = Driver::connect(ready["gremlin"].as_str().expect("an address"));
        Self { driver, source: GRAPH.to_owned(), processes: servers(cluster), has_text_ids: false }
    }

    fn of_rival(rival: &Server) -> Self {
        Self {
            driver: Driver::connect(&rival.address),
            source: "g".to_owned(),
            processes: vec![rival.pid],
            has_text_ids: rival.kind.has_text_ids(),
        }
    }
}

fn side<'a>(
    task: &'a Task,
    name: &'static str,
    mut target: Place,
    members: &'a [(u64, u64)],
    right: &'a [u64],
) -> Side<'a> {
    let parts = vec![("client", vec![std::process::id()]), ("server", target.processes.clone())];
    let ask = move |question: usize, _| {
        let (x, y) = members[question];
        let id = |id: u64| {
            if target.has_text_ids {
                json!(id.to_string())
            } else {
                json!({"@type": "g:Int64", "@value": id})
            }
        };
        let mut bindings = json!({"x": id(x)});
        if task.gremlin.contains("(y)") {
            bindings["y"] = id(y);
        }
        let started = Instant::now();
        let reply = target.driver.ask_bound(&target.source, task.gremlin, bindings);
        let took = started.elapsed();
        let found: Vec<u64> =
            reply.values.iter().filter_map(|value: &Value| value["@value"].as_u64()).collect();
        assert_eq!(found, [right[question]], "{name}, {} of {x} and {y}: {reply:?}", task.name);
        took
    };
    Side { name, parts, ask: Box::new(ask) }
}
