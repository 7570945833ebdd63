//! A read with the ticket of a write shows this write at once, at any router and in any group.

use super::site::{GRAPH, Site, Talk, code};
use serde_json::{Value, json};
use std::thread;

const WRITES: u64 = 60;

/// Sends one line to each conversation at the same time. Returns their answers.
fn ask_each(talks: &mut [Talk], lines: &[Value]) -> Vec<Value> {
    thread::scope(|scope| {
        let asked = talks.iter_mut().zip(lines).map(|(talk, line)| scope.spawn(|| talk.ask(line)));
        let asked: Vec<_> = asked.collect();
        asked.into_iter().map(|talk| talk.join().expect("the line is answered")).collect()
    })
}

/// Returns a read with a ticket, for each group and without a group.
fn in_groups(read: &Value, ticket: &Value) -> Vec<Value> {
    [json!(0), json!(1), Value::Null]
        .into_iter()
        .map(|group| {
            let mut read = read.clone();
            read["ticket"] = ticket.clone();
            if !group.is_null() {
                read["group"] = group;
            }
            read
        })
        .collect()
}

#[test]
fn a_write_shows_at_once_to_whoever_has_its_ticket() {
    let site = Site::start(&["--groups", "2", "--nodes", "2", "--partitions", "8", "--routers", "2"]);
    let mut writer = site.talk_to(0, 4);
    let mut readers = [(); 3].map(|()| site.talk_to(1, 4));
    let mut critical = site.talk_to(1, 4);
    writer.must(
        &json!({"op": "object_add", "graph": GRAPH, "type": "person", "id": 1, "data": {"name": "Ada"}}),
    );
    for turn in 1..=WRITES {
        let update = json!({"op": "object_update", "graph": GRAPH, "id": 1, "data": {"age": turn}});
        let object = writer.must(&update)["ticket"].clone();
        let get = json!({"op": "object_get", "graph": GRAPH, "id": 1});
        for answer in ask_each(&mut readers, &in_groups(&get, &object)) {
            assert_eq!(answer["object"]["data"]["age"], turn, "{answer}");
        }
        // For most of these ids, the two ends are in different partitions.
        let other = 1 + turn % 7;
        let add = json!({"op": "assoc_add", "graph": GRAPH, "id1": 10, "type": "follows", "id2": other, "time": turn});
        let edge = writer.must(&add)["ticket"].clone();
        for (id1, kind, id2) in [(10, "follows", other), (other, "followed_by", 10)] {
            let get = json!({"op": "assoc_get", "graph": GRAPH, "id1": id1, "type": kind, "ids": [id2]});
            for answer in ask_each(&mut readers, &in_groups(&get, &json!([object, edge]))) {
                assert_eq!(answer["out"], json!([[id2, turn]]), "{answer}");
            }
            let mut get = get;
            get["critical"] = json!(true);
            assert_eq!(critical.must(&get)["out"], json!([[id2, turn]]));
        }
        let count = json!({"op": "assoc_count", "graph": GRAPH, "id1": 10, "type": "follows"});
        for answer in ask_each(&mut readers, &in_groups(&count, &edge)) {
            assert_eq!(answer["count"], turn.min(7), "{answer}");
        }
        // Another router learns of a removal only through the ticket.
        let delete =
            json!({"op": "assoc_delete", "graph": GRAPH, "id1": other, "type": "followed_by", "id2": 10});
        let gone = match turn.is_multiple_of(9) {
            true => writer.must(&delete)["ticket"].clone(),
            false => continue,
        };
        let get = json!({"op": "assoc_get", "graph": GRAPH, "id1": 10, "type": "follows", "ids": [other]});
        for answer in ask_each(&mut readers, &in_groups(&get, &gone)) {
            assert_eq!(answer["out"], json!([]), "{answer}");
        }
        let again = writer.must(&add)["ticket"].clone();
        for answer in ask_each(&mut readers, &in_groups(&get, &again)) {
            assert_eq!(answer["out"], json!([[other, turn]]), "{answer}");
        }
    }
}

#[test]
fn tickets_of_other_graphs_are_refused() {
    let site = Site::start(&["--groups", "2", "--nodes", "1", "--partitions", "4"]);
    site.create("other", &[]);
    let edges = site.file("edges.csv", "src,dst\n1,2\n2,3\n");
    site.cluster.must(&["load", "graph", &edges, "--graph", "village"]);
    let mut talk = site.talk(4);
    let add = |graph: &str| json!({"op": "object_add", "graph": graph, "type": "tag"});
    let (own, other) = (talk.must(&add(GRAPH)), talk.must(&add("other")));
    let get = |graph: &str, ticket: &Value| json!({"op": "object_get", "graph": graph, "id": own["id"], "ticket": ticket});
    assert_eq!(talk.must(&get(GRAPH, &own["ticket"]))["object"]["id"], own["id"]);
    let both = json!([own["ticket"], other["ticket"]]);
    for ticket in [&other["ticket"], &both] {
        assert_eq!(code(&talk.ask(&get(GRAPH, ticket))), Some("wrong_ticket"));
    }
    let connections = json!({"op": "connections", "graph": "village", "id": 2});
    assert_eq!(talk.must(&connections)["ids"], json!([1, 3]));
    for (name, value) in [("ticket", own["ticket"].clone()), ("critical", json!(true))] {
        let mut line = connections.clone();
        line[name] = value;
        assert_eq!(code(&talk.ask(&line)), Some("loaded_graph"), "{line}");
    }
    assert_eq!(code(&talk.ask(&get("village", &own["ticket"]))), Some("loaded_graph"));
}
