//! Traversals that write while others write, while processes are killed, past their deadline, or after their caller has left.

use super::{
    gremlin::{GRAPH, line},
    site::{Site, Talk},
    support::{cluster::signal, wait_until},
};
use serde_json::{Value, json};
use std::{process::Stdio, thread, time::Instant};

fn site(arguments: &[&str], types: &str) -> Site {
    let site = Site::start_empty(arguments);
    let applied = site.apply(GRAPH, types, &[]);
    assert!(applied.status.success(), "{applied:?}");
    site
}

fn count(talk: &mut Talk) -> u64 {
    let answer = talk.must(&line("g.with('kith.critical', true).V().count()"));
    answer["result"][0].as_u64().expect("a number")
}

/// A traversal that adds this many vertices, one after the other.
fn adding(wanted: u64) -> String {
    let numbers: Vec<String> = (0..wanted).map(|number| number.to_string()).collect();
    format!("g.inject({}).addV('dog').count()", numbers.join(","))
}

#[test]
fn a_traversal_ends_when_its_caller_is_gone() {
    const WANTED: u64 = 6_000;
    let site = site(&["--groups", "1", "--nodes", "1", "--partitions", "4"], "open = true\n");
    let mut caller =
        site.cluster.kith(&["gremlin", &adding(WANTED), "--graph", GRAPH, "--deadline-ms", "60000"]);
    let mut caller = caller.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith starts");
    let mut talk = site.talk(1);
    let mut written = || count(&mut talk);
    wait_until("the traversal writes", || 0 < written());
    caller.kill().expect("it is killed");
    caller.wait().expect("it has ended");
    let mut before = written();
    wait_until("the traversal writes no more", || before == std::mem::replace(&mut before, written()));
    assert!(before < WANTED, "it was carried out to its end");
}

#[test]
fn a_traversal_writes_nothing_after_its_deadline_has_ended_it() {
    const WANTED: u64 = 6_000;
    let site = site(&["--groups", "1", "--nodes", "1", "--partitions", "4"], "open = true\n");
    let mut talk = site.talk(1);
    let deadline = format!("g.with('kith.deadline_ms', 300).{}", adding(WANTED).replacen("g.", "", 1));
    let (code, told) = talk.refused(&line(&deadline));
    assert_eq!(code, "partly_written", "{told}");
    assert!(told.contains("deadline of 300 ms"), "{told}");
    let made = changes(&told);
    assert!(0 < made && made < WANTED, "{told}");
    // It has ended: nothing is added any more.
    assert_eq!((count(&mut talk), count(&mut talk)), (made, made));
}

/// The number of changes that a traversal's error reports.
fn changes(told: &str) -> u64 {
    let (_, rest) = told.split_once("the traversal made ").unwrap_or_else(|| panic!("it tells: {told}"));
    rest.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{told}"))
}

#[test]
fn a_traversal_whose_node_or_database_is_killed_tells_what_it_has_written() {
    const WANTED: u64 = 1_500;
    let arguments = ["--groups", "2", "--nodes", "1", "--partitions", "4", "--processes"];
    let mut site = site(&arguments, "open = true\n");
    for victim in ["node", "database", "node", "database"] {
        let mut reader = site.talk(1);
        let before = count(&mut reader);
        let mut writer = site.talk(1);
        let answer = thread::scope(|scope| {
            let traversal = scope.spawn(|| writer.ask(&line(&adding(WANTED))));
            wait_until("the traversal writes", || before + 20 < count(&mut reader));
            let pid = match victim {
                "node" => site.cluster.node_pids(0)[0],
                _ => site.cluster.ready()["databases"][0]["pid"].as_u64().expect("a process") as u32,
            };
            signal(pid, "KILL");
            traversal.join().expect("it ends")
        });
        let since = Instant::now();
        let mut written = 0;
        wait_until("the graph can be read", || {
            let answer = reader.ask(&line("g.with('kith.critical', true).V().count()"));
            written = answer["result"][0].as_u64().unwrap_or(u64::MAX);
            written != u64::MAX
        });
        let written = written - before;
        let told = answer.to_string();
        eprintln!("{victim}: {written} written, readable after {:?}: {told}", since.elapsed());
        if answer["result"].is_array() {
            assert_eq!((&answer["result"], written), (&json!([WANTED]), WANTED), "{victim}");
            continue;
        }
        // The one change whose outcome is unknown may have been made.
        let is_unknown = told.contains("nobody knows whether it");
        let made = changes(&told);
        assert!(
            (made..=made + u64::from(is_unknown)).contains(&written),
            "{victim}: {written} written: {told}"
        );
        site.cluster.wait_until("the graph can be written again", |cluster| {
            let status = cluster.kith(&["gremlin", "g.addV('dog').drop()", "--graph", GRAPH]).output();
            status.expect("kith runs").status.success()
        });
    }
}

#[test]
fn merging_a_vertex_succeeds_while_others_merge_and_drop_it() {
    const ROUNDS: u64 = 40;
    let types = "[object.person]\nfields = { name = { type = \"text\", unique = true }, age = { type = \"i32\", nullable = true } }\n";
    let site = site(&["--groups", "2", "--nodes", "2", "--partitions", "8"], types);
    let by_id = "g.mergeV([(T.label): 'person', (T.id): 7, name: 'Ada']).id()";
    let by_name =
        "g.mergeV([(T.label): 'person', name: 'Eve']).option(Merge.onMatch, [age: 3]).values('name')";
    thread::scope(|scope| {
        for caller in 0..4 {
            let mut talk = site.talk(1);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    assert_eq!(talk.must(&line(by_id))["result"], json!([7]));
                    talk.must(&line(by_name));
                    if round % 4 == caller {
                        talk.must(&line("g.V(7).drop()"));
                    }
                }
            });
        }
    });
    let mut talk = site.talk(1);
    let names = talk.must(&line("g.with('kith.critical', true).V().values('name').order().fold()"));
    let names: Vec<&str> =
        names["result"][0].as_array().expect("a list").iter().flat_map(Value::as_str).collect();
    assert!(names == ["Ada", "Eve"] || names == ["Eve"], "{names:?}");
    // A vertex that has the id or the unique value, but differs otherwise, is an error.
    talk.must(&line(by_id));
    let other = "g.mergeV([(T.label): 'person', (T.id): 7, name: 'Bob'])";
    assert_eq!(talk.refused(&line(other)).0, "object_exists");
    let other = "g.mergeV([(T.label): 'person', (T.id): 8, name: 'Eve'])";
    assert_eq!(talk.refused(&line(other)).0, "unique_taken");
}
