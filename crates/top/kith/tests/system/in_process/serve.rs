//! One cluster in this process: a graph is loaded, and the answers are correct, through a router and through a session, over
//! both transports.

use super::village;
use kith::dev::DevOptions;
use kith_client::TransportKind;
use kith_net::security::Dialer;
use kith_net::transport::{GrpcTransport, Transport};
use kith_operators::Operator;
use kith_query::{
    CacheMode, CommonAnswer, CommonPlan, CommonQuery, ConnectionsQuery, GraphAnswer, GraphQuery,
    NetworkQuery, NetworkReturn, Operation, QueryAnswer, QueryOptions, Service, Want,
    convert::operator_to_wire,
};
use kith_routing::{FanOutController, LoadSnapshot, QueryShape, fan_out::ControllerState};
use kith_schema::EdgeSelector;
use kith_session::{Session, SessionSettings};
use kith_types::{Direction, Workflow};
use kith_wire::v1;
use std::sync::{Arc, mpsc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime,
};

fn ask(operation: Operation) -> GraphQuery {
    GraphQuery { operation, edge_type: None, direction: None, workflow: Workflow::Interactive }
}

async fn answer(service: &dyn Service, operation: Operation) -> QueryAnswer {
    let options = QueryOptions { profile: true, ..QueryOptions::default() };
    service.query("village", &ask(operation), &options).await.expect("the query is answered")
}

async fn error_code(service: &dyn Service, graph: &str, operation: Operation) -> String {
    let error =
        service.query(graph, &ask(operation), &QueryOptions::default()).await.expect_err("it must fail");
    error.code().name().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loaded_graph_is_served_by_the_router_and_to_the_fast_client() {
    let cluster = super::start(2, 3).await;
    cluster.load("village", &village("edges.csv.gz"), Some(&village("entities.csv.gz"))).await;
    let seeds = vec![cluster.ready().nodes[4].addr.clone()];
    let session = Session::connect(seeds.clone(), SessionSettings::default()).await.expect("a node answers");
    let over_grpc = SessionSettings { transport: TransportKind::Grpc, ..SessionSettings::default() };
    let session_over_grpc = Session::connect(seeds, over_grpc).await.expect("a node answers");
    let router_over_grpc = cluster.router.clone().with_transport(TransportKind::Grpc);
    let services: [&dyn Service; 4] = [&cluster.router, &session, &router_over_grpc, &session_over_grpc];
    for service in services {
        let network =
            answer(service, Operation::Network(NetworkQuery { id: 9043, returns: NetworkReturn::Ids })).await;
        let GraphAnswer::Network(network_answer) = &network.answer else { panic!("{network:?}") };
        assert_eq!(network_answer.sizes.first, 666);
        let ids = network_answer.network.as_ref().expect("ids were asked for");
        assert_eq!(ids.first().len(), 666);
        assert_eq!(ids.second().count() as u64, network_answer.sizes.second);
        let profile = network.profile.expect("a profile was asked for");
        assert!(profile.requests <= 1 + 3, "one group of three nodes after the first degree: {profile:?}");

        let GraphAnswer::Ids(first) =
            answer(service, Operation::Connections(ConnectionsQuery { id: 9043 })).await.answer
        else {
            panic!("connections are ids")
        };
        assert_eq!(first, ids.first());
        let to = first[0];
        for plan in [CommonPlan::Auto, CommonPlan::Fetch, CommonPlan::Push] {
            let common =
                Operation::Common(CommonQuery { id: 9043, to, kind: None, returns: Want::Exists, plan });
            assert!(matches!(
                answer(service, common).await.answer,
                GraphAnswer::Common(CommonAnswer::Exists(_))
            ));
        }
        assert_eq!(
            error_code(service, "village", Operation::Connections(ConnectionsQuery { id: 1 })).await,
            "member_not_found"
        );
        assert_eq!(
            error_code(service, "hamlet", Operation::Connections(ConnectionsQuery { id: 1 })).await,
            "unknown_graph"
        );
    }
}

#[derive(Debug)]
struct AlwaysTwo;

impl FanOutController for AlwaysTwo {
    fn name(&self) -> &'static str {
        "always-two"
    }

    fn groups(&self, _: &QueryShape, _: &LoadSnapshot, _: &mut ControllerState) -> u32 {
        2
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_router_asks_the_controller_that_its_program_brings() {
    let bring = |options: &mut DevOptions| {
        let settings = options.router.session.clone();
        options.router.session = settings
            .with_controller("network:sync-union", Arc::new(AlwaysTwo))
            .expect("it selects something");
    };
    let cluster = super::start_with(3, 1, bring).await;
    cluster.load("village", &village("edges.csv.gz"), None).await;
    // Without the caches, which may know the first degree already, there are two rounds.
    let options = QueryOptions { profile: true, cache: CacheMode::Bypass, ..QueryOptions::default() };
    let network = Operation::Network(NetworkQuery { id: 9043, returns: NetworkReturn::Size });
    let answered = cluster.router.query("village", &ask(network), &options).await.expect("it is answered");
    let rounds = answered.profile.expect("a profile was asked for").rounds;
    let decided: Vec<(&str, &str, u32)> = rounds
        .iter()
        .map(|round| (round.controller.as_str(), round.selector.as_str(), round.groups_allowed))
        .collect();
    assert_eq!(decided, [("minimum", "", 1), ("always-two", "network:sync-union", 2)], "{rounds:?}");
}

/// The number of threads on which a node evaluates long requests.
const THREADS: usize = 4;

/// Occupies all of those threads until it is dropped.
struct Occupied {
    _until_dropped: Vec<mpsc::Sender<()>>,
}

impl Occupied {
    async fn new() -> Self {
        let mut held = Vec::new();
        for _ in 0..THREADS {
            let (sender, receiver) = mpsc::channel::<()>();
            let (begins, begun) = tokio::sync::oneshot::channel();
            tokio::task::spawn_blocking(move || {
                let _ = begins.send(());
                let _ = receiver.recv();
            });
            begun.await.expect("the thread runs");
            held.push(sender);
        }
        Self { _until_dropped: held }
    }
}

/// A request for the lists of so many members that a node evaluates it on one of those threads.
fn long_request(version: u64, deadline_us: u64) -> v1::EvaluateRequest {
    let edge = EdgeSelector { kind: "connection".to_owned(), direction: Direction::Both, filter: None };
    let plan = Operator::Expand { input: Box::new(Operator::Keys), edge, longest: u64::MAX };
    v1::EvaluateRequest {
        header: Some(v1::RequestHeader { deadline_us, ..Default::default() }),
        name: "village".to_owned(),
        version,
        keys: (0..200).collect(),
        plan: Some(operator_to_wire(&plan)),
        ..Default::default()
    }
}

/// Returns how many requests the nodes of this process dropped.
async fn expired(cluster: &super::Cluster) -> u64 {
    let mut stream = TcpStream::connect(&cluster.ready().http).await.expect("it listens");
    let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("it takes a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("it answers");
    let line = text.lines().find_map(|line| line.strip_prefix("kith_node_expired_total "));
    line.map_or(0, |count| count.trim().parse().expect("a count"))
}

/// Lets a request wait for a thread beyond its deadline. Returns how many requests were counted as dropped while it waited, and
/// in all.
async fn waited_too_long(
    cluster: &super::Cluster,
    addr: &str,
    version: u64,
    kind: TransportKind,
) -> [u64; 2] {
    let (transport, beside) = (kind.build(&Dialer::default()), GrpcTransport::default());
    let reply = transport.evaluate(addr, long_request(version, 10_000_000)).await;
    assert!(reply.expect("it has time").value.is_some());
    let before = expired(cluster).await;
    let occupied = Occupied::new().await;
    let asked = tokio::spawn({
        let addr = addr.to_owned();
        async move { transport.evaluate(&addr, long_request(version, 1)).await }
    });
    // Over frames the request is answered when its deadline passes, over gRPC when its turn comes.
    loop {
        let ping = beside.ping(addr, v1::PingRequest::default()).await.expect("it is well");
        if asked.is_finished() || ping.load.is_some_and(|load| load.in_flight == 1) {
            break;
        }
    }
    let waiting = expired(cluster).await;
    drop(occupied);
    let error = asked.await.expect("no panic").expect_err("it was too late");
    assert_eq!(kith_wire::detail_of(&error).code, "deadline_exceeded", "{kind:?}");
    while expired(cluster).await == waiting {
        tokio::task::yield_now().await;
    }
    [waiting - before, expired(cluster).await - before]
}

/// ET-1: a request that waited in a node's queue beyond its deadline is dropped there, without reading data.
#[test]
fn et_1_a_request_whose_deadline_passed_in_the_queue_is_not_executed() {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(THREADS)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        // Disable fetching lists ahead, because the router's requests would wait in the same queue.
        let cluster = super::start_with(1, 1, |options| options.router.cache.list_bytes = 0).await;
        let version = cluster.load("village", &village("edges.csv.gz"), None).await;
        let addr = cluster.ready().nodes[0].addr.clone();
        for kind in [TransportKind::Framed, TransportKind::Grpc] {
            // Nodes of other tests in this process count too: an attempt in which one of them has counted is repeated.
            let mut attempts = Vec::new();
            while attempts.last() != Some(&[0, 1]) {
                assert!(attempts.len() < 5, "{kind:?}: {attempts:?}");
                attempts.push(waited_too_long(&cluster, &addr, version, kind).await);
            }
        }
    });
}
