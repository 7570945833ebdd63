//! Lines of `kith run` that have an id in common take effect in their order, regardless of the number of lines in flight.

use super::site::Site;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

const LINES: usize = 1_500;

/// Returns random writes and reads of a few ids.
fn lines() -> Vec<Value> {
    let mut random = StdRng::seed_from_u64(7);
    let line = |turn: usize| {
        let (id1, id2) = (random.random_range(1..6_u64), random.random_range(1..6_u64));
        let kind = ["friend", "follows", "likes"][random.random_range(0..3)];
        match random.random_range(0..12) {
            0 => json!({"op": "object_add", "type": "person", "id": id1, "data": {"name": "Ada"}}),
            1 => json!({"op": "object_delete", "id": id1}),
            2 | 3 => json!({"op": "object_update", "id": id1, "data": {"age": turn}}),
            4..7 => json!({"op": "assoc_add", "id1": id1, "type": kind, "id2": id2, "time": turn}),
            7 => json!({"op": "assoc_delete", "id1": id1, "type": kind, "id2": id2}),
            8 => json!({"op": "object_get", "ids": [id1, id2]}),
            9 => json!({"op": "assoc_count", "id1": id1, "type": kind}),
            _ => json!({"op": "assoc_range", "id1": id1, "type": kind}),
        }
    };
    (0..LINES).map(line).collect()
}

/// Removes the parts of an answer that may differ from one run to another.
fn essence(mut answer: Value) -> Value {
    let strip = |object: &mut Value| {
        object.as_object_mut().map(|object| object.remove("version"));
    };
    answer.as_object_mut().map(|answer| answer.remove("ticket"));
    strip(&mut answer);
    if let Some(objects) = answer.get_mut("objects").and_then(Value::as_array_mut) {
        objects.iter_mut().for_each(strip);
    }
    answer
}

#[test]
fn many_lines_in_flight_are_answered_as_one_after_the_other() {
    let site = Site::start(&["--groups", "2", "--nodes", "2", "--partitions", "8"]);
    let answers = |graph: &str, concurrency: u32| {
        site.create(graph, &[]);
        let on_graph = |mut line: Value| {
            line["graph"] = json!(graph);
            line
        };
        let lines: Vec<Value> = lines().into_iter().map(on_graph).collect();
        site.talk(concurrency).ask_all(&lines).into_iter().map(essence).collect::<Vec<_>>()
    };
    let (alone, together) = (answers("alone", 1), answers("together", 64));
    for (index, (line, (alone, together))) in lines().iter().zip(alone.iter().zip(&together)).enumerate() {
        assert_eq!(alone, together, "line {index}: {line}");
    }
}

#[test]
fn a_line_that_names_an_id_twice_does_not_wait_for_itself() {
    let site = Site::start(&["--groups", "1", "--nodes", "1", "--partitions", "2"]);
    let mut talk = site.talk(64);
    let add = json!({"op": "assoc_add", "graph": "social", "id1": 3, "type": "friend", "id2": 3, "time": 9});
    let get = json!({"op": "assoc_get", "graph": "social", "id1": 3, "type": "friend", "ids": [3, 3]});
    let answers = talk.ask_all(&[add.clone(), add, get]);
    assert_eq!((&answers[0]["existed"], &answers[1]["existed"]), (&json!(false), &json!(true)));
    assert_eq!(answers[2], json!({"out": [[3, 9]]}));
}
