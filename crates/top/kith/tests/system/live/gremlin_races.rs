//! Traversals that write while others write, while processes are killed, past their deadline, or after their caller has left.

use super::{
    gremlin::{GRAPH, line},
    site::{Site, Talk, code},
    support::{cluster::signal, wait_until},
};
use serde_json::{Value, json};
use std::{process::Stdio, thread};

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
    let (code, message) = talk.refused(&line(&deadline));
    assert_eq!(code, "partly_written", "{message}");
    assert!(message.contains("deadline of 300 ms"), "{message}");
    let made = changes(&message);
    assert!(0 < made && made < WANTED, "{message}");
    // It has ended: nothing is added any more.
    assert_eq!((count(&mut talk), count(&mut talk)), (made, made));
}

/// The number of changes that a traversal's error reports.
fn changes(message: &str) -> u64 {
    let (_, rest) =
        message.split_once("the traversal made ").unwrap_or_else(|| panic!("it tells: {message}"));
    rest.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{message}"))
}

/// How many vertices there are, once the graph can be read.
fn count_at_last(talk: &mut Talk) -> u64 {
    let mut found = None;
    wait_until("the graph can be read", || {
        found = talk.ask(&line("g.with('kith.critical', true).V().count()"))["result"][0].as_u64();
        found.is_some()
    });
    found.expect("it was read")
}

/// Signals a process while a traversal writes. Returns the answer to the traversal.
fn signalled_while(site: &Site, (pid, name): (u32, &str), traversal: &str) -> Value {
    let (mut reader, mut writer) = (site.talk(1), site.talk(1));
    let before = count_at_last(&mut reader);
    thread::scope(|scope| {
        let traversal = scope.spawn(|| writer.ask(&line(traversal)));
        wait_until("the traversal writes", || before + 20 < count(&mut reader));
        signal(pid, name);
        traversal.join().expect("it ends")
    })
}

/// Whether a failed traversal tells what it has written. Changes whose outcome is unknown may have been made.
fn check_report(answer: &Value, written: u64) {
    let text = answer.to_string();
    let several =
        text.split_once("nobody knows which of ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let unknown: u64 = several.unwrap_or(u64::from(text.contains("nobody knows whether it")));
    let is_unknown = unknown != 0;
    let code = if is_unknown { "outcome_unknown" } else { "partly_written" };
    assert_eq!(answer["error"]["code"], code, "{text}");
    let made = changes(&text);
    assert!((made..=made + unknown).contains(&written), "{written} written: {text}");
}

#[test]
fn a_traversal_goes_on_once_another_node_leads() {
    const WANTED: u64 = 1_500;
    let arguments = ["--groups", "2", "--nodes", "1", "--partitions", "4", "--processes"];
    let site = site(&arguments, "open = true\n");
    let traversal = adding(WANTED).replacen("g.", "g.with('kith.deadline_ms', 60000).", 1);
    for round in 1..=3_u64 {
        let pid = site.cluster.node_pids(round % 2)[0];
        let answer = signalled_while(&site, (pid, "KILL"), &traversal);
        assert_eq!(answer["result"], json!([WANTED]), "{answer}");
        assert_eq!(count_at_last(&mut site.talk(1)), round * WANTED, "each was added once");
    }
}

#[test]
fn a_traversal_tells_what_it_has_written_before_its_database_was_killed() {
    const WANTED: u64 = 1_500;
    let arguments = ["--groups", "2", "--nodes", "1", "--partitions", "4", "--processes"];
    let mut site = site(&arguments, "open = true\n");
    let mut before = 0;
    for _ in 0..3 {
        let pid = site.cluster.ready()["databases"][0]["pid"].as_u64().expect("a process") as u32;
        let answer = signalled_while(&site, (pid, "KILL"), &adding(WANTED));
        let written = count_at_last(&mut site.talk(1)) - before;
        match answer["result"].is_array() {
            true => assert_eq!((&answer["result"], written), (&json!([WANTED]), WANTED)),
            false => check_report(&answer, written),
        }
        before += written;
        site.cluster.wait_until("the graph can be written again", |cluster| {
            let status = cluster.kith(&["gremlin", "g.addV('dog').drop()", "--graph", GRAPH]).output();
            status.expect("kith runs").status.success()
        });
    }
}

#[test]
fn a_traversal_whose_node_is_frozen_tells_what_it_has_written() {
    const WANTED: u64 = 6_000;
    let arguments = ["--groups", "2", "--nodes", "1", "--partitions", "4", "--processes"];
    let site = site(&arguments, "open = true\n");
    let pid = site.cluster.node_pids(0)[0];
    let traversal = adding(WANTED).replacen("g.", "g.with('kith.deadline_ms', 2000).", 1);
    let answer = signalled_while(&site, (pid, "STOP"), &traversal);
    signal(pid, "CONT");
    check_report(&answer, count_at_last(&mut site.talk(1)));
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

#[test]
fn an_edge_that_many_add_at_once_is_added_by_one_of_them() {
    const CALLERS: u64 = 6;
    const EDGES: u64 = 20;
    let types = "[object.person]\n[association.follows]\ninverse = \"followed_by\"\nfields = { since = { type = \"u64\", nullable = true } }\n";
    let site = site(&["--groups", "2", "--nodes", "2", "--partitions", "8", "--routers", "2"], types);
    let mut talk = site.talk(1);
    (1..=EDGES + 1).for_each(|id| {
        talk.must(&line(&format!("g.addV('person').property(id, {id})")));
    });
    // The answers to each caller.
    let answers_of = |gremlin: &(dyn Fn(u64, u64) -> String + Sync)| -> Vec<Vec<Value>> {
        let asked = |caller: u64| {
            let mut talk = site.talk_to((caller % 2) as usize, 1);
            let all = (2..EDGES + 2).map(|other| gremlin(caller, other));
            all.map(|it| talk.ask(&line(&format!("g.with('kith.critical', true).{it}")))).collect()
        };
        thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS).map(|caller| scope.spawn(move || asked(caller))).collect();
            callers.into_iter().map(|caller| caller.join().expect("it ends")).collect()
        })
    };
    let answers = answers_of(&|caller, to| {
        format!("V(1).addE('follows').to(__.V({to})).property('since', {caller}).values('since')")
    });
    let mut sinces = Vec::new();
    for edge in 0..EDGES as usize {
        let (made, refused): (Vec<_>, Vec<_>) =
            answers.iter().map(|answers| &answers[edge]).partition(|answer| answer["result"].is_array());
        assert_eq!(made.len(), 1, "{made:?}");
        assert!(refused.iter().all(|answer| code(answer) == Some("object_exists")), "{refused:?}");
        sinces.push(made[0]["result"][0].clone());
    }
    let stored =
        "g.with('kith.critical', true).V(1).outE('follows').order().by(inV().id()).values('since').fold()";
    assert_eq!(talk.must(&line(stored))["result"], json!([sinces]));
    // All of them find or add it, and nobody replaces what another has set.
    let merged = answers_of(&|caller, from| {
        format!(
            "mergeE([(T.label): 'follows', (Direction.OUT): {from}, (Direction.IN): 1]).\
             option(Merge.onCreate, [since: {caller}]).values('since')"
        )
    });
    let stored = stored.replace("outE", "inE").replace("inV", "outV");
    let stored = talk.must(&line(&stored))["result"][0].clone();
    for answers in &merged {
        let shown: Vec<Value> = answers.iter().map(|answer| answer["result"][0].clone()).collect();
        assert_eq!(json!(shown), stored);
    }
}
