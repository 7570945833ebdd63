//! Reads of a list that nodes have cached, against a `get` of one value of a store, through the same router and from the
//! same nodes.

use super::site::{Association, GRAPH, Site, median, ratios, timed};
use crate::{
    rig::{self, cpu, reads},
    support::values,
};
use kith_client::{BatchKeys, QueryOptions, Service};
use kith_engine::{KeyType, ValueType};
use kith_query::{AssocRangeQuery, GraphAnswer, GraphQuery, Operation};
use kith_types::Workflow;
use std::time::Duration;

const SHAPE: [&str; 4] = ["--groups", "1", "--nodes", "3"];
const STORE: &str = "people";
const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Bytes);
const OBJECTS: u64 = 500;
/// The number of associations of each object. A read returns all of them.
const LENGTH: u64 = 20;
const WRITES_IN_FLIGHT: usize = 128;
/// The number of consecutive reads of one kind for which CPU time is measured.
const BLOCK: usize = 500;

pub async fn run() {
    let site = Site::start(&SHAPE, None).await;
    tokio::task::block_in_place(|| {
        values::create(&site.cluster, STORE, TYPES.0, TYPES.1);
        values::push(&site.cluster, STORE, TYPES, 1, reads::rows(OBJECTS));
    });
    let associations = (0..OBJECTS).flat_map(|id1| {
        let to =
            move |turn| Association { kind: "likes", id1, id2: OBJECTS + turn, time: turn + 1, data: None };
        (0..LENGTH).map(to)
    });
    site.add_all(associations.collect(), WRITES_IN_FLIGHT).await;
    let queries = rig::setting("KITH_BENCH_QUERIES", 4_000);
    let mut took = [Vec::new(), Vec::new()];
    let mut used = [Vec::new(), Vec::new()];
    for id in 0..OBJECTS {
        ask(&site, 0, id).await;
        ask(&site, 1, id).await;
    }
    for turn in 0..queries {
        for side in [turn % 2, 1 - turn % 2] {
            let id = (turn as u64 * 7) % OBJECTS;
            took[side].push(timed(ask(&site, side, id)).await.0);
        }
    }
    for round in 0..2 * queries.div_ceil(BLOCK) {
        let side = round % 2;
        let before = cpu::now(&site.parts);
        for turn in 0..BLOCK as u64 {
            ask(&site, side, (turn * 7) % OBJECTS).await;
        }
        used[side].push((before, cpu::now(&site.parts)));
    }
    let [range, get] = took;
    println!(
        "cached assoc_range of {LENGTH} against a get of 1 KiB, through a router; {queries} of each, alternately"
    );
    println!(
        "  assoc_range / get {}; p50 {:.0} and {:.0} us",
        ratios(&range, &get),
        median(&range),
        median(&get)
    );
    for (name, used) in [("assoc_range", &used[0]), ("get", &used[1])] {
        let each = cpu::describe(&site.parts, &cpu::sums(used), used.len() * BLOCK);
        println!("    CPU, {name}: {each}");
    }
}

/// Reads a list (`side` 0) or a value (`side` 1), and checks the answer.
async fn ask(site: &Site, side: usize, id: u64) {
    if side == 1 {
        let answer = site.client.multi_get(STORE, &BatchKeys::Ids(vec![id]), &QueryOptions::default()).await;
        let answer = answer.expect("an answer");
        assert!(
            answer.records.value(0).is_some_and(|value| value == reads::value(id)),
            "key {id} was answered wrongly"
        );
        return;
    }
    let operation = Operation::AssocRange(AssocRangeQuery {
        id1: id,
        kind: "likes".to_owned(),
        pos: None,
        with_data: false,
        with_versions: false,
        limit: Some(LENGTH as u32),
        after: None,
    });
    let query = GraphQuery { operation, edge_type: None, direction: None, workflow: Workflow::Interactive };
    let options = QueryOptions { deadline: Some(Duration::from_secs(5)), ..QueryOptions::default() };
    let answered = site.client.query(GRAPH, &query, &options).await.expect("an answer");
    let GraphAnswer::Associations(list) = answered.answer else { panic!("a list was asked for") };
    let right = (0..LENGTH).rev().map(|turn| (OBJECTS + turn, turn + 1));
    assert!(
        list.out.iter().map(|listed| (listed.id2, listed.time)).eq(right),
        "object {id} was answered wrongly"
    );
}
