//! Traversals over real graphs equal the reference answers and plain code, with every fan-out, while nodes are killed.

use crate::support::{
    cluster::{Cluster, is_alive, signal},
    is_full,
    reference::{LARGE, Reference, SMALL},
    walks,
};
use serde_json::{Value, json};

const FAN_OUTS: [&str; 3] = ["groups=1", "max", "auto"];
/// Walks of three steps from the members of larger graphs take too long in a debug build.
const RECORDS: usize = 12;
const CONCURRENCY: u32 = 8;

const SHAPE: [&str; 7] = ["--processes", "--groups", "2", "--nodes", "2", "--partitions", "8"];
/// Its edges have times, as those of live graphs do.
const LIVE: &str = "ldbc-sf0.1";
const TYPES: &str = "[object.person]\n[association.knows]\nsymmetric = true\n";

/// Chooses nodes.
type Victims = dyn Fn(&Cluster) -> Vec<u32>;

fn load(cluster: &Cluster, reference: &Reference) {
    let arguments = reference.load_arguments();
    cluster.must(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
}

/// The questions with each fan-out, as lines of `kith run`. `with` begins each traversal.
fn lines<'q>(graph: &str, with: &str, questions: &'q [(String, Value)]) -> Vec<(Value, &'q Value)> {
    let with = format!("g.with('kith.budget', 'elements=5000000').{with}.");
    let line = |fan_out: &str, gremlin: &str| {
        let gremlin = gremlin.replacen("g.", &with, 1);
        // A busy machine must not fail a test of results.
        json!({"op": "gremlin", "graph": graph, "gremlin": gremlin, "fan_out": fan_out, "deadline_ms": 60_000})
    };
    let of = |fan_out| questions.iter().map(move |(gremlin, expected)| (fan_out, gremlin, expected));
    let all = FAN_OUTS.into_iter().flat_map(of);
    all.map(|(fan_out, gremlin, expected)| (line(fan_out, gremlin), expected)).collect()
}

/// Asks all lines; `then` happens when a quarter of the answers have arrived.
fn check(cluster: &Cluster, lines: &[(Value, &Value)], then: impl FnOnce()) {
    let requests: Vec<Value> = lines.iter().map(|(line, _)| line.clone()).collect();
    let (answers, _) = cluster.run_and_then(&requests, CONCURRENCY, requests.len() / 4, then);
    let pairs = lines.iter().zip(&answers);
    let wrong: Vec<String> = pairs
        .filter(|((_, expected), answer)| answer["result"] != **expected)
        .map(|((line, expected), answer)| format!("{line}: {answer}, not {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ, as\n{}", wrong.len(), lines.len(), wrong[0]);
}

/// Asks all lines while a node of each group in turn is killed, and then a whole group.
fn check_while_nodes_die(cluster: &mut Cluster, lines: &[(Value, &Value)]) {
    let victims: [&Victims; 3] = [
        &|cluster| cluster.node_pids(0)[..1].to_vec(),
        &|cluster| cluster.node_pids(1)[1..].to_vec(),
        &|cluster| cluster.node_pids(1),
    ];
    for victims in victims {
        let before = victims(cluster);
        check(cluster, lines, || before.iter().for_each(|pid| signal(*pid, "KILL")));
        cluster.wait_until("the dead are replaced", |cluster| {
            let now = victims(cluster);
            now.iter().all(|pid| !before.contains(pid) && is_alive(*pid))
        });
    }
}

fn records() -> usize {
    if is_full() { RECORDS * 4 } else { RECORDS }
}

#[test]
fn traversals_over_real_graphs_are_right_while_nodes_die_and_return() {
    let mut cluster = Cluster::start(&SHAPE);
    let names = if is_full() { [&SMALL[..], &LARGE[..4]].concat() } else { SMALL[..2].to_vec() };
    for reference in names.into_iter().filter_map(Reference::open) {
        load(&cluster, &reference);
        let questions = walks::questions(&reference, "connection", records());
        // Routers that have the lists at hand would ask no node.
        let lines = lines(reference.name, "with('kith.cache', 'bypass')", &questions);
        check_while_nodes_die(&mut cluster, &lines);
    }
}

#[test]
fn traversals_over_a_real_live_graph_are_right_while_nodes_die_and_return() {
    let Some(reference) = Reference::open(LIVE) else { return };
    let mut cluster = Cluster::start(&SHAPE);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (types, checkpoint) = (path("types.toml"), path("checkpoint"));
    std::fs::write(&types, TYPES).expect("the folder can be written");
    cluster.must(&["schema", "apply", &types, "--graph", LIVE]);
    let import = ["import", LIVE, "--checkpoint", &checkpoint];
    let (nodes, edges) = (reference.file("nodes.csv.gz"), reference.file("edges.csv.gz"));
    cluster.must(&[&import[..], &["--type", "person", "--columns", "id", "--objects", &nodes]].concat());
    cluster.must(&[&import[..], &["--type", "knows", "--assocs", &edges]].concat());
    let questions = walks::questions(&reference, "knows", records());
    check_while_nodes_die(&mut cluster, &lines(LIVE, "with('kith.critical', true)", &questions));
}
