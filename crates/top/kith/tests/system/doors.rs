//! A door of one's own, the example `line` of `kith-doors`, in a router that a program starts: answers, rights, limits, metrics. The
//! door has no line of code for the latter three.

#[allow(dead_code, reason = "its `main` is for those who run it by itself")]
#[path = "../../../../shell/kith-doors/examples/line.rs"]
mod line_door;

use crate::support::{self, raw, secured};
use kith_net::{
    server::{
        connections::ConnectionSettings,
        security::{Security, ServerSecurity},
    },
    testing::free_address,
};
use kith_node::{Labels, Node, NodeOptions};
use kith_router::{Router, RouterOptions, RouterSettings};
use line_door::Line;
use secured::{Papers, SecuredCluster, access, fill, must, with};
use std::{fs, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use support::{cluster::metric_at, reference::Reference};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream},
    net::TcpStream,
    runtime::Runtime,
    time::timeout,
};
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

const GRAPH: &str = "kith-village";
/// Connections that the router takes.
const OPEN_MAX: usize = 8;
const SUBJECTS: &[(&str, &str, &str)] = &[
    ("ads", "ads-token", "read = [\"pages\", \"people\", \"kith-village\"]"),
    ("eve", "eve-token", "read = [\"secrets\"]"),
];
/// Far above what any answer takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Three nodes and a router as processes, with a graph and three stores; a node and a router of this process that have the door.
struct Started<'c> {
    cluster: &'c SecuredCluster,
    node: &'c Node,
    router: Router,
    http: String,
}

impl<'c> Started<'c> {
    async fn new(cluster: &'c SecuredCluster, node: &'c Node) -> Self {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let http = free_address();
        let options = RouterOptions {
            router: 9,
            listen: local,
            http,
            resp: None,
            gremlin: None,
            doors: vec![(local, Arc::new(Line))],
            data: cluster.folder.path().join("router-9"),
            settings: RouterSettings::default(),
            database_password_file: None,
            connections: ConnectionSettings { open_max: Some(OPEN_MAX), ..ConnectionSettings::default() },
            security: security(cluster),
        };
        let stop = CancellationToken::new();
        let router = Router::start(options, cluster.metadata(), stop).await.expect("it starts");
        Self { cluster, node, router, http: http.to_string() }
    }

    /// A connection to the router's door.
    async fn connect(&self) -> io::Result<Talk<TlsStream<TcpStream>>> {
        self.connect_to(self.router.doors.addresses[0]).await
    }

    /// A connection to a door, over TLS.
    async fn connect_to(&self, addr: SocketAddr) -> io::Result<Talk<TlsStream<TcpStream>>> {
        let stream = TcpStream::connect(addr).await?;
        let name = "127.0.0.1".try_into().expect("an address");
        Ok(Talk(BufStream::new(raw::connector(&self.cluster.authority.pem).connect(name, stream).await?)))
    }

    async fn metric(&self, name: &str) -> f64 {
        let (http, name) = (self.http.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || metric_at(&http, &name).unwrap_or(0.0)).await.expect("it is read")
    }
}

fn security(cluster: &SecuredCluster) -> Security {
    let Papers { cert, key } = cluster.papers.clone();
    let security = ServerSecurity {
        cert: Some(cert),
        key: Some(key),
        client_ca: Some(cluster.authority.pem.clone()),
        access: Some(cluster.folder.path().join("access.toml")),
        ..ServerSecurity::default()
    };
    Security::open(security).expect("its files are whole")
}

/// The first node of the first group.
async fn node(cluster: &SecuredCluster, stop: CancellationToken) -> Node {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = NodeOptions {
        node: 0,
        labels: Labels::default(),
        listen: local,
        http: local,
        resp: None,
        doors: vec![(local, Arc::new(Line))],
        data: cluster.folder.path().join("node-0"),
        scrub_rate: None,
        fetch_rate: None,
        fetch_p99: None,
        warm_bytes: 0,
        databases: Default::default(),
        log_retention: NodeOptions::LOG_RETENTION_DEFAULT,
        connections: ConnectionSettings::default(),
        security: security(cluster),
    };
    Node::start(options, cluster.metadata(), stop).await.expect("it starts")
}

fn started() -> SecuredCluster {
    SecuredCluster::start_nodes(2, &[1, 2, 3], |folder| {
        let file = folder.join("access.toml");
        fs::write(&file, access(SUBJECTS)).expect("written");
        vec!["--access".to_owned(), file.to_str().expect("UTF-8").to_owned()]
    })
}

fn fill_all(cluster: &SecuredCluster) {
    let ops = cluster.authority.papers("ops");
    fill(cluster, "pages", 20, &ops);
    fill(cluster, "secrets", 20, &ops);
    let rows: PathBuf = cluster.folder.path().join("people.jsonl");
    fs::write(&rows, "{\"name\":\"ada\",\"age\":36}\n{\"name\":\"bob\",\"age\":7}\n").expect("written");
    let rows = rows.to_str().expect("UTF-8");
    let create = ["store", "create", "people", "--key", "string", "--value", "record", "--key-field", "name"];
    must(with(cluster.kith(&create), &ops));
    must(with(cluster.kith(&["store", "push", "people", rows]), &ops));
    let load = Reference::open(GRAPH).expect("it comes with the project").load_arguments();
    must(with(cluster.kith(&load.iter().map(String::as_str).collect::<Vec<_>>()), &ops));
}

/// A conversation in lines.
struct Talk<S>(BufStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Talk<S> {
    /// The reply to a line; empty if there is none.
    async fn say(&mut self, line: &str) -> String {
        self.0.write_all(format!("{line}\n").as_bytes()).await.expect("it takes a line");
        self.0.flush().await.expect("it takes a line");
        let mut reply = String::new();
        let read = timeout(TIMEOUT, self.0.read_line(&mut reply)).await.expect("it answers in time");
        read.expect("a line");
        reply.trim_end().to_owned()
    }
}

#[test]
fn a_door_of_ones_own_gets_rights_limits_and_metrics_for_nothing() {
    let (cluster, stop, runtime) = (started(), CancellationToken::new(), Runtime::new().expect("a runtime"));
    let node = runtime.block_on(node(&cluster, stop.clone()));
    fill_all(&cluster);
    runtime.block_on(async {
        let started = Started::new(&cluster, &node).await;
        answers(&started).await;
        rights(&started).await;
        of_a_node(&started).await;
        limits(&started).await;
        started.router.leave().await;
        stop.cancel();
        node.ended().await;
    });
}

async fn answers(started: &Started<'_>) {
    let mut ads = started.connect().await.expect("it listens");
    assert_eq!(ads.say("auth ads-token").await, "ok");
    assert_eq!(ads.say("get pages 7").await, "value 7 of pages");
    assert_eq!(ads.say("get pages 777").await, "(none)");
    let answer: serde_json::Value = serde_json::from_str(&ads.say("get people ada").await).expect("JSON");
    assert_eq!(answer, serde_json::json!({"age": 36}));
    assert_eq!(ads.say("degree kith-village 9043").await, "666");
    let failures = "kith_router_query_errors_total{op=\"line\"}";
    assert_eq!(started.metric(failures).await, 0.0);
    assert_eq!(ads.say("degree kith-village 1").await, "(none)");
    let reply = ads.say("get kith-village 1").await;
    assert!(reply.starts_with("error not_values: "), "{reply}");
    assert_eq!(started.metric(failures).await, 0.0, "what a door learns of a store's shape is no query");
    let reply = ads.say("degree people 1").await;
    assert!(reply.starts_with("error "), "{reply}");
    assert_eq!(started.metric(failures).await, 1.0);
    for wrong in ["get pages x", "get pages", "degree kith-village x", "put pages 7 x"] {
        let reply = ads.say(wrong).await;
        assert!(
            reply.starts_with("error wrong_key_type: ") || reply.starts_with("error bad_request: "),
            "{reply}"
        );
    }
    assert_eq!(started.metric("kith_router_query_seconds_count{op=\"line\"}").await, 6.0);
    assert_eq!(started.metric("kith_server_connections{protocol=\"line\"}").await, 1.0);
    assert_eq!(started.metric("kith_router_read_keys_total{store=\"pages\"}").await, 2.0);
}

async fn rights(started: &Started<'_>) {
    let queries = "kith_router_query_seconds_count{op=\"line\"}";
    let before = started.metric(queries).await;
    let mut nobody = started.connect().await.expect("it listens");
    for refused in ["get pages 7", "degree kith-village 9043", "auth guess"] {
        let reply = nobody.say(refused).await;
        assert!(reply.starts_with("error unauthenticated: "), "{reply}");
    }
    assert_eq!(nobody.say("auth eve-token").await, "ok");
    for refused in ["get pages 7", "degree kith-village 9043", "get nowhere 1"] {
        let reply = nobody.say(refused).await;
        assert!(reply.starts_with("error permission_denied: eve may not read store"), "{reply}");
    }
    assert_eq!(started.metric(queries).await, before);
    assert_eq!(nobody.say("get secrets 1").await, "value 1 of secrets");
    assert_eq!(started.metric(queries).await, before + 1.0);
    assert_eq!(started.metric("kith_line_auth_failures_total{role=\"router\"}").await, 1.0);

    let mut stranger = started.connect().await.expect("it listens");
    for _ in 0..16 {
        assert!(stranger.say("get pages 7").await.starts_with("error unauthenticated: "));
    }
    let mut rest = String::new();
    let end = timeout(TIMEOUT, stranger.0.read_to_string(&mut rest)).await.expect("it is closed");
    assert_eq!((end.expect("in order"), rest.as_str()), (0, ""));

    let mut clear = TcpStream::connect(started.router.doors.addresses[0]).await.expect("it listens");
    clear.write_all(b"get pages 7\n").await.expect("it reads");
    let mut reply = String::new();
    clear.read_to_string(&mut reply).await.expect("an error comes");
    assert_eq!(reply, "error tls_required\n");
}

/// A node by itself answers for the partitions that it holds, and refuses what it does not hold or do.
async fn of_a_node(started: &Started<'_>) {
    let mut ads = started.connect_to(started.node.doors.addresses[0]).await.expect("it listens");
    assert!(ads.say("get pages 1").await.starts_with("error unauthenticated: "));
    assert_eq!(ads.say("auth ads-token").await, "ok");
    let mut held = 0;
    for key in 0..20 {
        let reply = ads.say(&format!("get pages {key}")).await;
        match reply == format!("value {key} of pages") {
            true => held += 1,
            false => assert!(reply.starts_with("error partitions_unavailable: "), "{reply}"),
        }
    }
    assert!(0 < held && held < 20, "half of the partitions are here, not {held} of 20 keys");
    let mut people = Vec::new();
    for name in ["ada", "bob", "eve"] {
        people.push(ads.say(&format!("get people {name}")).await);
    }
    let is_one = |reply: &String| {
        ["{\"age\":36}", "{\"age\":7}", "(none)"].contains(&reply.as_str())
            || reply.starts_with("error partitions_unavailable: ")
    };
    assert!(people.iter().all(is_one), "{people:?}");
    let reply = ads.say("degree kith-village 9043").await;
    assert!(reply.starts_with("error unsupported_operation: ") && reply.contains("ask a router"), "{reply}");
    assert!(ads.say("get secrets 1").await.starts_with("error permission_denied: "));
    assert!(ads.say("get kith-village 1").await.starts_with("error not_values: "));
}

async fn limits(started: &Started<'_>) {
    let refused = "kith_line_refused_connections_total{role=\"router\"}";
    assert_eq!(started.metric(refused).await, 0.0);
    let mut open = Vec::new();
    // Known one after the other: only a quarter of the places is for those who are not.
    while open.len() < 2 * OPEN_MAX {
        let Ok(mut talk) = started.connect().await else { break };
        assert_eq!(talk.say("auth ads-token").await, "ok");
        open.push(talk);
    }
    assert!((OPEN_MAX - 2..=OPEN_MAX).contains(&open.len()), "{} connections", open.len());
    assert_eq!(started.metric(refused).await, 1.0);
    for talk in &mut open {
        assert_eq!(talk.say("get pages 1").await, "value 1 of pages");
    }
}
