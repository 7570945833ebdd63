//! Golden tests: command lines, and what they print for people.

use super::{answer, cluster, plan};
use crate::{
    ask,
    cli::{Cli, Command},
    cluster::StatusReply,
    fake::{self, Fake},
    golden,
    graph::GraphCommand,
    write::LiveCommand,
};
use clap::Parser;
use futures::FutureExt;
use kith_query::line::GraphLine;
use kith_wire::v1;

fn outcome(line: &str) -> String {
    let render = |line: &GraphLine| {
        let answered = ask::answer(&Fake, line).now_or_never().expect("the fake never waits").unwrap();
        answer::render_for(&answered, None, None)
    };
    match Cli::try_parse_from(line.split(' ')).unwrap().command {
        Command::Graph(GraphCommand::Ask(question)) => render(&question.line),
        Command::Object(LiveCommand::Read(question)) => render(&question.line),
        Command::Assoc(LiveCommand::Read(question)) => render(&question.line),
        Command::Explain(_) => {
            let notes = vec!["the network cache was not asked".to_owned()];
            plan::explain_for(&v1::ExplainReply { plan: Some(fake::profile()), notes }.into(), None)
        }
        other => panic!("{other:?} prints no answer"),
    }
}

#[test]
fn answers_are_readable() {
    golden::check("tables.txt", outcome);
}

/// A cluster whose names, addresses and numbers are long.
fn large_status() -> StatusReply {
    let served =
        |name: &str| v1::Served { name: name.to_owned(), version: 1_795_248_213_784, ..Default::default() };
    let node = v1::NodeStatus {
        node: 117,
        group: 3,
        addr: "node-117.social.example.org:7100".to_owned(),
        state: "unresponsive".to_owned(),
        partitions: 1_024,
        served: vec![served("connections"), served("people"), served("suggestions")],
        files_damaged: 12,
        fetch_held_back: 1 << 20,
        disk_free: Some(1 << 40),
        ..Default::default()
    };
    let router = v1::RouterStatus {
        addr: "router-1.social.example.org:7000".to_owned(),
        http: "router-1.social.example.org:7080".to_owned(),
        state: "up".to_owned(),
        ..Default::default()
    };
    let store = v1::StoreStatus {
        store: "a-store-whose-name-is-rather-long".to_owned(),
        version: 1_795_248_213_784,
        last_push: "cancelled".to_owned(),
        running: "push-4711-of-a-long-name".to_owned(),
        ..Default::default()
    };
    let graph = v1::LiveGraphStatus {
        graph: "social".to_owned(),
        storage: "mysql://kith@database-1.social.example.org:3306/social".to_owned(),
        leaderless: 2,
        position: 123_456_789,
        nodes: vec![v1::LiveNodeStatus { node: 117, behind: 12, ..Default::default() }],
    };
    let database = v1::DatabaseStatus {
        addr: "database-1.social.example.org:7200".to_owned(),
        http: "database-1.social.example.org:7280".to_owned(),
        state: "up".to_owned(),
        ..Default::default()
    };
    let status = v1::ClusterStatus {
        nodes: vec![node; 3],
        routers: vec![router],
        stores: vec![store],
        live_graphs: vec![graph],
        databases: vec![database],
        ..Default::default()
    };
    StatusReply::from(status)
}

/// Whatever a narrow terminal leaves out, it shows what is wrong with the cluster, and a pipe gets everything.
#[test]
fn the_status_of_a_cluster_fits_80_columns() {
    let status = large_status();
    let narrow = cluster::status_for(&status, Some(80));
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    for shown in
        ["unresponsive", "117", "damaged", "disk free", "behind", "leader", "holds its fetches back", "wider"]
    {
        assert!(narrow.contains(shown), "{shown} is not in {narrow}");
    }
    let whole = cluster::status_for(&status, None);
    for shown in
        ["clients", "suggestions v1795248213784", "router-1.social.example.org:7080", "mysql://kith@"]
    {
        assert!(whole.contains(shown), "{shown} is not in {whole}");
    }
    assert!(!whole.contains('…') && !whole.contains("wider"), "{whole}");
}
