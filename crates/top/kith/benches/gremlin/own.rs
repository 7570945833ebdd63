//! The size of the second degree, by Gremlin and by Kith's own query, through the same client and router. The network cache is
//! bypassed.

use super::{GRAPH, servers};
use crate::{
    rig::{
        self, Edges,
        turns::{Amount, Side, interval_text, take_turns},
    },
    support::cluster::Cluster,
};
use kith_client::{CacheMode, QueryOptions, Question, Reply, Request, RouterClient, Service};
use kith_gremlin::{
    graphbinary::{Items, counted},
    value::Value,
};
use kith_query::{
    GraphAnswer, GraphQuery, GremlinQuery, GremlinTraversal, NetworkQuery, NetworkReturn, Operation,
};
use kith_types::Workflow;
use std::{fs, time::Instant};
use tokio::runtime::Runtime;

/// The label of the edges in both graphs.
const LABEL: &str = "connection";
/// The name of the live graph.
const LIVE: &str = "live";
const TYPES: &str = "[object.person]\n[association.connection]\nsymmetric = true\n";

/// Compares both over the loaded graph.
pub fn run(cluster: &Cluster, graph: &Edges) {
    Asker::new(cluster, GRAPH).compare(cluster, graph);
}

/// Compares both over a live graph, into which the same edges are imported.
pub fn run_live(cluster: &Cluster, graph: &Edges) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (types, edges, checkpoint) = (path("types.toml"), path("edges.csv"), path("checkpoint"));
    fs::write(&types, TYPES).expect("the folder can be written");
    let rows: String = graph.edges.iter().map(|(id1, id2)| format!("{id1},{id2},1\n")).collect();
    fs::write(&edges, format!("id1,id2,time\n{rows}")).expect("the folder can be written");
    cluster.must(&["schema", "apply", &types, "--graph", LIVE]);
    cluster.must(&["import", LIVE, "--type", LABEL, "--checkpoint", &checkpoint, "--assocs", &edges]);
    Asker::new(cluster, LIVE).compare(cluster, graph);
}

/// A client, and the graph that it asks.
struct Asker {
    runtime: Runtime,
    client: RouterClient,
    graph: &'static str,
}

impl Asker {
    fn new(cluster: &Cluster, graph: &'static str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let router = cluster.ready()["router"].as_str().expect("an address").to_owned();
        let client = runtime.block_on(RouterClient::connect(&[router])).expect("the router is up");
        Self { runtime, client, graph }
    }

    fn compare(&self, cluster: &Cluster, edges: &Edges) {
        let (pairs, blocks) = (rig::setting("KITH_BENCH_PAIRS", 600), rig::setting("KITH_BENCH_BLOCKS", 10));
        let amount = Amount { pairs, blocks, block: 60 };
        let count = amount.pairs.max(amount.blocks * amount.block) + 10;
        println!("second degree in the graph {:?}, {pairs} members", self.graph);
        for (name, members) in
            [("uniform", edges.uniform(count, 1)), ("degree-weighted", edges.by_degree(count, 2))]
        {
            let reached: Vec<u64> = members.iter().map(|id| edges.reached(*id)).collect();
            let networks: Vec<(u64, u64)> = members.iter().map(|id| edges.network(*id)).collect();
            let by_gremlin = |question: usize| {
                let started = Instant::now();
                let count = self.runtime.block_on(self.count(members[question]));
                assert_eq!(count, reached[question], "member {}", members[question]);
                started.elapsed()
            };
            let by_own = |question: usize| {
                let started = Instant::now();
                let sizes = self.runtime.block_on(self.network(members[question]));
                assert_eq!(sizes, networks[question], "member {}", members[question]);
                started.elapsed()
            };
            let parts = || vec![("client", vec![std::process::id()]), ("servers", servers(cluster))];
            let mut sides = [
                Side { name: "Gremlin", parts: parts(), ask: Box::new(|question, _| by_gremlin(question)) },
                Side { name: "own query", parts: parts(), ask: Box::new(|question, _| by_own(question)) },
            ];
            let seen = take_turns(&mut sides, amount);
            let [gremlin, own] = &seen[..] else { unreachable!("there are two sides") };
            let (time, cpu) = (interval_text(gremlin.time_to(own)), interval_text(gremlin.cpu_to(own)));
            let of_servers = interval_text(gremlin.server_cpu_to(own));
            println!("  {name}: Gremlin / own query {time}; CPU {cpu}, of the servers {of_servers}");
            for side in [gremlin, own] {
                println!("    {}: {}", side.name, side.describe());
            }
        }
    }

    /// The number of members that two hops reach, by Gremlin.
    async fn count(&self, id: u64) -> u64 {
        let text = format!("g.V({id}).both('{LABEL}').both('{LABEL}').dedup().count()");
        let query = GremlinQuery {
            traversal: GremlinTraversal::Text { text, bindings: bytes::Bytes::new() },
            with_properties: true,
            is_explained: false,
            writes: false,
        };
        let question = Question::Gremlin { graph: self.graph.to_owned(), query };
        let reply = self.client.call(Request { question, options: options() }.into()).await;
        let Reply::Gremlin(answer) = reply.expect("an answer") else {
            panic!("a traversal is answered by its results")
        };
        let results = Items::new(&answer.results).expect("a list").collect::<Result<Vec<Value>, _>>();
        match results.expect("results").into_iter().map(counted).collect::<Vec<_>>()[..] {
            [(Value::Long(count), 1)] => count.cast_unsigned(),
            ref other => panic!("a count was answered by {other:?}"),
        }
    }

    /// The number of members in the first degree, and the number within two steps, by Kith's own query.
    async fn network(&self, id: u64) -> (u64, u64) {
        let operation = Operation::Network(NetworkQuery { id, returns: NetworkReturn::Size });
        let query = GraphQuery {
            operation,
            edge_type: Some(LABEL.to_owned()),
            direction: None,
            workflow: Workflow::Interactive,
        };
        match self.client.query(self.graph, &query, &options()).await.expect("an answer").answer {
            GraphAnswer::Network(answer) => (answer.sizes.first, answer.sizes.first + answer.sizes.second),
            other => panic!("a network was answered by {other:?}"),
        }
    }
}

fn options() -> QueryOptions {
    QueryOptions { cache: CacheMode::Bypass, ..QueryOptions::default() }
}
