//! Compares the second-degree size of `github-devs` members by Kith, through a router and one group of three nodes in
//! processes of their own and without the network cache, with PostgreSQL and an indexed edge table. One client sends
//! one query at a time, in turn about the same members. Then it compares a size and a badge query from the warm network
//! cache with an empty call. Then it compares frames with gRPC: a second cluster, whose router and clients speak only
//! gRPC, answers the same queries in turn.
//!
//! Every answer is compared with one computed here. `KITH_BENCH_QUERIES` sets the number of members of each kind.

use crate::{
    rig::{
        self, Edges,
        cpu::{self, Parts},
        postgres::Postgres,
    },
    support::{self, cluster::Cluster},
};
use futures::{StreamExt, stream};
use kith_client::{CacheMode, QueryOptions, RouterClient, Service, TransportKind, security::Dialer};
use kith_net::endpoint;
use kith_operators::{ListEntry, Operator, Value as Answer};
use kith_query::{
    ConnectionsQuery, DistanceQuery, GraphAnswer, GraphQuery, NetworkQuery, NetworkReturn, Operation,
    convert::{operator_to_wire, value_from_wire},
};
use kith_schema::EdgeSelector;
use kith_terminal::bench::stats::{Interval, median_interval};
use kith_types::{Direction, PartitionCount, Workflow, partition_of_id};
use kith_wire::{documents::TopologyDocument, v1};
use serde_json::Value;
use std::time::{Duration, Instant};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

const GRAPH: &str = "github-devs";
/// The number of targets of a badge query, as on a page of search results.
const BADGES: usize = 20;
/// The number of consecutive queries of one side for which CPU time is measured.
const BLOCK: usize = 100;
/// The number of queries in flight when the CPU time of small requests is compared.
const IN_FLIGHT: usize = 32;

/// Runs the benchmark.
pub fn run() {
    let Some(data) = support::data() else { return };
    let file = data.join(GRAPH).join("edges.csv.gz");
    let graph = Edges::read(&file);
    let shape = ["--processes", "--groups", "1", "--nodes", "3"];
    let mut cluster = Cluster::start(&shape);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("grpc.toml");
    std::fs::write(&config, "[session]\ntransport = \"grpc\"\n").expect("the folder can be written");
    let over_grpc = Cluster::start(&[&shape[..], &["--config", config.to_str().expect("UTF-8")]].concat());
    for cluster in [&cluster, &over_grpc] {
        cluster.must(&["load", "graph", file.to_str().expect("UTF-8"), "--graph", GRAPH]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let kith = Kith::connect(&cluster, TransportKind::Framed).await;
        against_postgres(&kith, &graph).await;
        cluster.wait_until("every list is at hand", |cluster| {
            cluster.metric("kith_router_list_cache_entries") == Some(graph.members() as f64)
        });
        against_an_empty_call(&kith, &graph).await;
        badges_of_strangers(&kith, &graph).await;
        let grpc = Kith::connect(&over_grpc, TransportKind::Grpc).await;
        frames_against_grpc(&kith, &grpc, &graph).await;
    });
}

/// One client of the router.
struct Kith {
    client: RouterClient,
    health: HealthClient<tonic::transport::Channel>,
    parts: Parts,
}

impl Kith {
    async fn connect(cluster: &Cluster, transport: TransportKind) -> Self {
        let ready = cluster.ready();
        let addr = ready["router"].as_str().expect("an address").to_owned();
        let pids = |field: &str| -> Vec<u32> {
            let all = ready[field].as_array().expect("a list").iter();
            all.map(|entry: &Value| entry["pid"].as_u64().expect("a process") as u32).collect()
        };
        let parts =
            vec![("client", vec![std::process::id()]), ("router", pids("routers")), ("nodes", pids("nodes"))];
        let channel = endpoint(&addr).expect("an address").connect().await.expect("the router is up");
        let client = RouterClient::over(addr, channel.clone()).with_transport(transport);
        Self { client, health: HealthClient::new(channel), parts }
    }

    async fn ask(&self, operation: Operation, cache: CacheMode) -> GraphAnswer {
        let query =
            GraphQuery { operation, edge_type: None, direction: None, workflow: Workflow::Interactive };
        let options = QueryOptions { cache, ..QueryOptions::default() };
        self.client.query(GRAPH, &query, &options).await.expect("Kith answers").answer
    }

    async fn network(&self, id: u64, cache: CacheMode) -> (u64, u64) {
        match self.ask(Operation::Network(NetworkQuery { id, returns: NetworkReturn::Size }), cache).await {
            GraphAnswer::Network(answer) => (answer.sizes.first, answer.sizes.first + answer.sizes.second),
            other => panic!("a network was answered by {other:?}"),
        }
    }

    async fn badges(&self, from: u64, to: &[u64]) -> Vec<Option<u8>> {
        match self.ask(Operation::Distance(DistanceQuery { from, to: to.to_vec() }), CacheMode::Use).await {
            GraphAnswer::Distances(distances) => distances,
            other => panic!("distances were answered by {other:?}"),
        }
    }

    async fn empty_call(&self) {
        self.health.clone().check(HealthCheckRequest::default()).await.expect("the router is healthy");
    }
}

async fn timed<T>(call: impl Future<Output = T>) -> (f64, T) {
    let started = Instant::now();
    let value = call.await;
    (started.elapsed().as_secs_f64() * 1e6, value)
}

async fn against_postgres(kith: &Kith, graph: &Edges) {
    let queries = rig::setting("KITH_BENCH_QUERIES", 600);
    let Some(mut postgres) = Postgres::start(graph).await else { return };
    println!("second-degree size, {GRAPH}, {queries} members a line; PostgreSQL {}", postgres.version);
    for (name, members) in
        [("uniform", graph.uniform(queries, 1)), ("degree-weighted", graph.by_degree(queries, 2))]
    {
        let query = postgres.choose(&members[..members.len().min(60)]).await;
        // The answer is computed before: after a pause to compute it, all processes would be asleep at the next call.
        let right: Vec<(u64, u64)> = members.iter().map(|id| graph.network(*id)).collect();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (turn, id) in members.iter().enumerate() {
            let (a, b);
            if turn % 2 == 0 {
                a = timed(kith.network(*id, CacheMode::Bypass)).await;
                b = timed(postgres.network(*id)).await;
            } else {
                b = timed(postgres.network(*id)).await;
                a = timed(kith.network(*id, CacheMode::Bypass)).await;
            }
            let right = right[turn];
            assert_eq!((a.1, b.1), (right, right), "member {id}: Kith and PostgreSQL, and what is right");
            ours.push(a.0);
            theirs.push(b.0);
        }
        println!("  {name}: Kith / PostgreSQL {} (its query: {query})", ratios(&ours, &theirs));
        println!(
            "    p50 {} and {}; all together {:.3}",
            median(&ours),
            median(&theirs),
            sum(&ours) / sum(&theirs)
        );
        // CPU time is a mean, and few members have most of the ids: without this, runs cannot be compared.
        let ids_read: usize = members.iter().map(|id| graph.ids_read(*id)).sum();
        println!("    ids in the lists of a query: {} in the mean", ids_read / members.len());
        cpu_by_part(kith, &postgres, &members).await;
    }
}

/// Asks about the same members block by block, each side with its own caches warm, and measures CPU time.
async fn cpu_by_part(kith: &Kith, postgres: &Postgres, members: &[u64]) {
    let mut parts = kith.parts.clone();
    parts.push(("backend", vec![postgres.backend]));
    let mut used = [Vec::new(), Vec::new()];
    let mut took = [Vec::new(), Vec::new()];
    for (turn, block) in members.chunks(BLOCK).enumerate() {
        for side in [turn % 2, 1 - turn % 2] {
            let (used, took) = (&mut used[side], &mut took[side]);
            let before = cpu::now(&parts);
            for id in block {
                took.push(if side == 0 {
                    timed(kith.network(*id, CacheMode::Bypass)).await.0
                } else {
                    timed(postgres.network(*id)).await.0
                });
            }
            used.push((before, cpu::now(&parts)));
        }
    }
    let [ours, theirs] = &took;
    println!(
        "    in turn by {BLOCK} queries: {}, p50 {} and {}; all together {:.3}",
        ratios(ours, theirs),
        median(ours),
        median(theirs),
        sum(ours) / sum(theirs)
    );
    println!("    CPU a query, Kith: {}", cpu::describe(&parts, &cpu::sums(&used[0]), members.len()));
    println!("    CPU a query, PostgreSQL: {}", cpu::describe(&parts, &cpu::sums(&used[1]), members.len()));
}

async fn against_an_empty_call(kith: &Kith, graph: &Edges) {
    /// Every order of three calls, so that none always follows the same one.
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]];
    let queries = rig::setting("KITH_BENCH_QUERIES", 600);
    let asked = badge_queries(kith, graph).await;
    let mut took = [Vec::new(), Vec::new(), Vec::new()];
    for turn in 0..queries {
        let Badges { id, sizes, to, distances } = &asked[turn % asked.len()];
        for call in ORDERS[turn % ORDERS.len()] {
            took[call].push(match call {
                0 => timed(kith.empty_call()).await.0,
                1 => {
                    let (took, answer) = timed(kith.network(*id, CacheMode::Use)).await;
                    assert_eq!(answer, *sizes, "member {id}");
                    took
                }
                _ => {
                    let (took, answer) = timed(kith.badges(*id, to)).await;
                    assert_eq!(answer, *distances, "from {id} to {to:?}");
                    took
                }
            });
        }
    }
    let [empty, warm, badge] = took;
    println!("warm network cache, {queries} queries a line");
    println!(
        "  size / empty gRPC call {} (p50 {} and {})",
        ratios(&warm, &empty),
        median(&warm),
        median(&empty)
    );
    println!(
        "  badge of {BADGES} / size {} (p50 {} and {})",
        ratios(&badge, &warm),
        median(&badge),
        median(&warm)
    );
    near_and_far(&asked, &badge, &warm);
}

/// Badge queries with new targets each time, most of them farther than two steps from a member whose network is cached.
async fn badges_of_strangers(kith: &Kith, graph: &Edges) {
    let queries = rig::setting("KITH_BENCH_QUERIES", 600);
    let asked = badge_queries(kith, graph).await;
    let strangers: Vec<(Vec<u64>, Vec<Option<u8>>)> = (0..queries)
        .map(|turn| {
            let to = graph.uniform(BADGES, 1_000 + turn as u64);
            let distances = graph.distances(asked[turn % asked.len()].id, &to);
            (to, distances)
        })
        .collect();
    let (mut warm, mut badge) = (Vec::new(), Vec::new());
    for (turn, (to, distances)) in strangers.iter().enumerate() {
        let Badges { id, sizes, .. } = &asked[turn % asked.len()];
        for call in [turn % 2, (turn + 1) % 2] {
            if call == 0 {
                let (took, answer) = timed(kith.network(*id, CacheMode::Use)).await;
                assert_eq!(answer, *sizes, "member {id}");
                warm.push(took);
            } else {
                let (took, answer) = timed(kith.badges(*id, to)).await;
                assert_eq!(answer, *distances, "from {id} to {to:?}");
                badge.push(took);
            }
        }
    }
    println!("  badge of {BADGES} uniform strangers, new in each / size {}", ratios(&badge, &warm));
}

/// Asks the same questions of a cluster that speaks frames throughout and of one that speaks gRPC throughout.
async fn frames_against_grpc(framed: &Kith, grpc: &Kith, graph: &Edges) {
    let queries = rig::setting("KITH_BENCH_QUERIES", 600);
    let asked = badge_queries(framed, graph).await;
    badge_queries(grpc, graph).await;
    println!("frames / gRPC, {queries} queries a line");
    for (name, kind) in [("second-degree size, uniform", 0), ("size, warm", 1), ("badge, warm", 2)] {
        let uniform = graph.uniform(queries, 4);
        let mut took = [Vec::new(), Vec::new()];
        let mut used = [Vec::new(), Vec::new()];
        for (block, ids) in uniform.chunks(BLOCK).enumerate() {
            // Latency is measured question by question, CPU time in blocks. CPU time: in blocks.
            for (turn, id) in ids.iter().enumerate() {
                let badge = &asked[(block * BLOCK + turn) % asked.len()];
                for side in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                    took[side].push(timed(ask_kind([framed, grpc][side], kind, *id, badge)).await.0);
                }
            }
            for (side, kith) in [framed, grpc].into_iter().enumerate() {
                let before = cpu::now(&kith.parts);
                for (turn, id) in ids.iter().enumerate() {
                    let badge = &asked[(block * BLOCK + turn) % asked.len()];
                    ask_kind(kith, kind, *id, badge).await;
                }
                used[side].push((before, cpu::now(&kith.parts)));
            }
        }
        println!(
            "  {name}: {} (p50 {} and {})",
            ratios(&took[0], &took[1]),
            median(&took[0]),
            median(&took[1])
        );
        print_cpu(framed, grpc, &used, queries);
    }
    many_in_flight(framed, grpc, graph, queries * 10).await;
    sub_requests(framed, graph, queries * 10).await;
}

async fn ask_kind(kith: &Kith, kind: usize, id: u64, badge: &Badges) {
    match kind {
        0 => drop(kith.network(id, CacheMode::Bypass).await),
        1 => assert_eq!(kith.network(badge.id, CacheMode::Use).await, badge.sizes),
        _ => assert_eq!(kith.badges(badge.id, &badge.to).await, badge.distances),
    }
}

/// Measures the CPU time of many small requests at once.
async fn many_in_flight(framed: &Kith, grpc: &Kith, graph: &Edges, queries: usize) {
    let members = graph.uniform(queries, 5);
    let mut used = [Vec::new(), Vec::new()];
    for block in members.chunks(BLOCK * 10) {
        for (side, kith) in [framed, grpc].into_iter().enumerate() {
            let before = cpu::now(&kith.parts);
            let calls = block
                .iter()
                .map(|id| kith.ask(Operation::Connections(ConnectionsQuery { id: *id }), CacheMode::Bypass));
            stream::iter(calls).buffer_unordered(IN_FLIGHT).for_each(|_| std::future::ready(())).await;
            used[side].push((before, cpu::now(&kith.parts)));
        }
    }
    println!("  connections, {IN_FLIGHT} in flight, {queries} queries");
    print_cpu(framed, grpc, &used, queries);
}

/// Measures only what a router asks of a node: one member's list, from one node that speaks both protocols.
async fn sub_requests(kith: &Kith, graph: &Edges, requests: usize) {
    let topology = kith.client.topology().await.expect("the router is up");
    let node = &topology.nodes[0];
    let partitions = PartitionCount::new(topology.cluster.partitions).expect("a cluster has some");
    let owners = &topology.cluster.groups[0].owners;
    let is_here = |id: &u64| owners[partition_of_id(*id, partitions).index()] == node.node;
    let members: Vec<u64> = graph.uniform(requests, 6).into_iter().filter(is_here).collect();
    let base = expansion(&topology);
    let transports = [TransportKind::Framed, TransportKind::Grpc].map(|kind| kind.build(&Dialer::default()));
    let parts: Parts = vec![kith.parts[0].clone(), kith.parts[2].clone()];
    let mut used = [Duration::ZERO; 2];
    for block in std::iter::once(&members[..BLOCK]).chain(members.chunks(BLOCK * 10)) {
        for (side, transport) in transports.iter().enumerate() {
            let before = cpu::now(&parts);
            let calls = block.iter().map(async |id| {
                let request = v1::EvaluateRequest { keys: vec![*id], ..base.clone() };
                let reply = transport.evaluate(&node.addr, request).await.expect("the node answers");
                let Answer::Lists(lists) =
                    value_from_wire(reply.value.expect("a value"), 1).expect("it is whole")
                else {
                    panic!("a list was asked for");
                };
                assert!(matches!(&lists[0], ListEntry::Ids(ids) if ids.len() == graph.degree(*id)), "{id}");
            });
            stream::iter(calls).buffer_unordered(IN_FLIGHT).for_each(|()| std::future::ready(())).await;
            // The first block opens the connection.
            if BLOCK < block.len() {
                let took = cpu::now(&parts).into_iter().zip(before).map(|(after, before)| after - before);
                used[side] += took.sum::<Duration>();
            }
        }
    }
    let [frames, grpc] = used.map(|used| used.as_secs_f64());
    println!("  sub-requests of one list, {IN_FLIGHT} in flight: CPU, gRPC / frames {:.2}", grpc / frames);
}

/// A request for the lists of members, which it does not have yet.
fn expansion(topology: &TopologyDocument) -> v1::EvaluateRequest {
    let edge = EdgeSelector { kind: "connection".to_owned(), direction: Direction::Both, filter: None };
    let plan = Operator::Expand { input: Box::new(Operator::Keys), edge, longest: u64::MAX };
    v1::EvaluateRequest {
        header: Some(v1::RequestHeader { epoch: topology.cluster.epoch, client: 1, ..Default::default() }),
        name: GRAPH.to_owned(),
        version: topology.graph(GRAPH).expect("it is loaded").version,
        plan: Some(operator_to_wire(&plan)),
        ..Default::default()
    }
}

fn print_cpu(framed: &Kith, grpc: &Kith, used: &[Vec<cpu::Reading>; 2], queries: usize) {
    for ((name, kith), readings) in [("frames", framed), ("gRPC", grpc)].into_iter().zip(used) {
        let used = cpu::sums(readings);
        println!("    CPU a query, {name}: {}", cpu::describe(&kith.parts, &used, queries));
    }
}

/// Badges whose targets are all within two steps need the cache alone; each farther one needs its own list.
fn near_and_far(asked: &[Badges], badge: &[f64], warm: &[f64]) {
    for (name, wanted) in [("all within two steps", true), ("some farther", false)] {
        let is_near = |turn: usize| {
            asked[turn % asked.len()]
                .distances
                .iter()
                .all(|distance| distance.is_some_and(|steps| steps <= 2))
        };
        let of = |took: &[f64]| -> Vec<f64> {
            took.iter()
                .enumerate()
                .filter(|(turn, _)| is_near(*turn) == wanted)
                .map(|(_, took)| *took)
                .collect()
        };
        let (badge, warm) = (of(badge), of(warm));
        if !badge.is_empty() {
            println!("    {name}: {} of {} queries", ratios(&badge, &warm), badge.len());
        }
    }
}

/// A badge query and its right answer.
struct Badges {
    id: u64,
    sizes: (u64, u64),
    to: Vec<u64>,
    distances: Vec<Option<u8>>,
}

/// Badge queries about members whose networks are then in the cache.
async fn badge_queries(kith: &Kith, graph: &Edges) -> Vec<Badges> {
    let mut asked = Vec::new();
    for (seed, id) in graph.by_degree(120, 3).into_iter().enumerate() {
        kith.network(id, CacheMode::Use).await;
        let to = graph.by_degree(BADGES, seed as u64);
        let distances = graph.distances(id, &to);
        asked.push(Badges { id, sizes: graph.network(id), to, distances });
    }
    asked
}

fn ratios(ours: &[f64], theirs: &[f64]) -> String {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    let Interval { median, low, high, .. } = median_interval(&ratios).expect("there are pairs");
    format!("{median:.3} ({low:.3} to {high:.3})")
}

fn median(values: &[f64]) -> String {
    format!("{:.0} us", median_interval(values).expect("there are values").median)
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}
