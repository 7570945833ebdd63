//! The second degree of members, alternately in a live graph and in the same graph loaded, in one cluster. All answers are
//! checked.

use super::site::{Association, GRAPH, Site, median, ratios, timed};
use crate::{
    rig::{self, Edges, cpu},
    support::{self, in_time},
};
use kith_client::{CacheMode, QueryOptions, Service};
use kith_query::{GraphAnswer, GraphQuery, NetworkQuery, NetworkReturn, Operation};
use kith_types::Workflow;

const SHAPE: [&str; 4] = ["--groups", "1", "--nodes", "3"];
const WRITES_IN_FLIGHT: usize = 512;
/// The number of consecutive queries of one graph for which CPU time is measured.
const BLOCK: usize = 50;

pub async fn run() {
    let Some(data) = support::data() else { return };
    let loaded = std::env::var("KITH_BENCH_GRAPH").unwrap_or_else(|_| "lastfm-asia".to_owned());
    let graphs = [GRAPH, &loaded];
    let file = data.join(&loaded).join("edges.csv.gz");
    let graph = Edges::read(&file);
    let site = Site::start(&SHAPE, None).await;
    tokio::task::block_in_place(|| {
        site.cluster.must(&["load", "graph", file.to_str().expect("UTF-8"), "--graph", &loaded]);
    });
    let edges = graph.edges.iter().filter(|(a, b)| a != b);
    let friends =
        edges.map(|(id1, id2)| Association { kind: "friend", id1: *id1, id2: *id2, time: 1, data: None });
    let friends: Vec<Association> = friends.collect();
    let count = friends.len();
    let took = site.add_all(friends, WRITES_IN_FLIGHT).await;
    println!(
        "second degree of {loaded}; {count} symmetric associations written in {:.0} s, {:.0}/s with {WRITES_IN_FLIGHT} in flight",
        took.as_secs_f64(),
        count as f64 / took.as_secs_f64()
    );
    let queries = rig::setting("KITH_BENCH_QUERIES", 600);
    for (name, members) in
        [("uniform", graph.uniform(queries, 1)), ("degree-weighted", graph.by_degree(queries, 2))]
    {
        let right: Vec<(u64, u64)> = members.iter().map(|id| graph.network(*id)).collect();
        let last = members.len() - 1;
        for () in in_time() {
            if network(&site, GRAPH, members[last]).await == right[last] {
                break;
            }
        }
        let mut took = [Vec::new(), Vec::new()];
        for (turn, id) in members.iter().enumerate() {
            for side in [turn % 2, 1 - turn % 2] {
                let (took_it, answer) = timed(network(&site, graphs[side], *id)).await;
                assert_eq!(answer, right[turn], "member {id} of {}", graphs[side]);
                took[side].push(took_it);
            }
        }
        let mut used = [Vec::new(), Vec::new()];
        for block in members.chunks(BLOCK) {
            for side in [0, 1] {
                let before = cpu::now(&site.parts);
                for id in block {
                    network(&site, graphs[side], *id).await;
                }
                used[side].push((before, cpu::now(&site.parts)));
            }
        }
        let [live, loaded] = took;
        let (a, b) = (median(&live), median(&loaded));
        println!(
            "  {name}, {queries} members: live / loaded {}; p50 {a:.0} and {b:.0} us",
            ratios(&live, &loaded)
        );
        println!("    ratio of the sums {:.3}", live.iter().sum::<f64>() / loaded.iter().sum::<f64>());
        for (name, used) in [("live", &used[0]), ("loaded", &used[1])] {
            println!(
                "    CPU per query, {name}: {}",
                cpu::describe(&site.parts, &cpu::sums(used), members.len())
            );
        }
    }
}

/// Returns the number of members in the first degree, and the number within two steps.
async fn network(site: &Site, graph: &str, id: u64) -> (u64, u64) {
    let operation = Operation::Network(NetworkQuery { id, returns: NetworkReturn::Size });
    // The loaded graph has only one edge type.
    let edge_type = (graph == GRAPH).then(|| "friend".to_owned());
    let query = GraphQuery { operation, edge_type, direction: None, workflow: Workflow::Interactive };
    let options = QueryOptions { cache: CacheMode::Bypass, ..QueryOptions::default() };
    match site.client.query(graph, &query, &options).await.expect("an answer").answer {
        GraphAnswer::Network(answer) => (answer.sizes.first, answer.sizes.first + answer.sizes.second),
        other => panic!("a network was answered by {other:?}"),
    }
}
