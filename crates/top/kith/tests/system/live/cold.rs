//! Reads of rows that no node has in its cache: large ones finish, and many at a time wait for each other.

use super::site::{GRAPH, Site, Talk, code};
use kith_types::{PartitionCount, PartitionId, partition_of_id};
use serde_json::{Value, json};

/// Objects that there are: ids from 1.
const PEOPLE: u64 = 2_000;
const PARTITIONS: &str = "2";

fn get(ids: &[u64]) -> Value {
    json!({"op": "object_get", "graph": GRAPH, "ids": ids})
}

/// Ids of one partition from `first` on, of which the first ones may have objects.
fn of_one_partition(first: u64) -> impl Iterator<Item = u64> {
    let count = PartitionCount::new(PARTITIONS.parse().expect("a number")).expect("not zero");
    (first..).filter(move |id| partition_of_id(*id, count) == PartitionId(0))
}

/// Checks an answer to [`get`].
fn assert_found(answer: &Value, ids: &[u64]) {
    assert_eq!(code(answer), None, "{answer}");
    let objects = answer["objects"].as_array().expect("a list");
    assert_eq!(objects.len(), ids.len());
    for (object, id) in objects.iter().zip(ids) {
        let found = object["id"].as_u64();
        assert_eq!(found, (*id <= PEOPLE).then_some(*id), "{id}: {object}");
    }
}

/// Sends reads at this concurrency, none of which may fail.
fn ask_all(site: &Site, concurrency: u32, reads: &[Vec<u64>]) {
    let lines: Vec<Value> = reads.iter().map(|ids| get(ids)).collect();
    let mut talk = Talk::at(&site.routers()[0], concurrency);
    for (answer, ids) in talk.ask_all(&lines).iter().zip(reads) {
        assert_found(answer, ids);
    }
}

#[test]
fn cold_reads_finish_whatever_their_size_and_number() {
    let mut site = Site::start(&["--groups", "1", "--nodes", "1", "--partitions", PARTITIONS]);
    let people: String =
        (1..=PEOPLE).map(|id| format!("{id},\"{{\"\"name\"\":\"\"p{id}\"\"}}\"\n")).collect();
    let people = site.file("people.csv", &people);
    site.cluster.must(&["import", GRAPH, "--objects", &people, "--type", "person"]);

    // After a restart, no cache has anything.
    site.restart();
    let counted = site.cluster.must(&["gremlin", "--graph", GRAPH, "g.V().count()", "-o", "json"]);
    let counted: Value = serde_json::from_str(&counted).expect("JSON");
    assert_eq!(counted["result"], json!([PEOPLE]), "{counted}");

    // Ids that nobody has asked for are cold too, whether or not they have objects.
    site.restart();
    let one: Vec<u64> = of_one_partition(1).take(1_024).collect();
    assert!(*one.last().expect("an id") > PEOPLE, "some are absent");
    ask_all(&site, 1, &[one]);
    ask_all(&site, 1, &[(10_001..=110_000).collect()]);

    let batches = |first: u64| {
        let batch = move |batch: u64| (first + batch * 100..first + batch * 100 + 100).collect();
        (0..300).map(batch).collect::<Vec<Vec<u64>>>()
    };
    ask_all(&site, 32, &batches(200_000));
    ask_all(&site, 128, &batches(300_000));
    let mut ids = of_one_partition(400_000);
    let callers: Vec<Vec<u64>> = (0..100).map(|_| ids.by_ref().take(50).collect()).collect();
    ask_all(&site, 8, &callers);
}
