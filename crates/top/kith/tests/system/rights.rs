//! The rights of callers over the wire, tried by hand: attacks that no client of ours would make, and every method and operation there is.

use crate::support::{self, methods, raw, secured};
use bytes::Bytes;
use kith_client::security::{Dialer, SecurityOptions};
use kith_net::security::secret;
use kith_wire::{
    Message,
    documents::{Document, TopologyDocument},
    frame::Op,
    v1,
};
use methods::{Needs, calls, framed};
use raw::{begin, begin_compressed, call, frame, frames, outcome};
use secured::{SecuredCluster, access, fill};
use std::{fs, io::Write, path::Path};
use support::cluster::Cluster;
use tokio::runtime::Runtime;

/// A cluster with the stores `pages`, `scores` and `secrets`, and a subject by token for each list of rights.
fn started(subjects: &'static [(&str, &str, &str)]) -> SecuredCluster {
    let cluster = SecuredCluster::start(|folder| {
        let file = folder.join("access.toml");
        fs::write(&file, access(subjects)).expect("written");
        ["--access", file.to_str().expect("UTF-8"), "--resp", "127.0.0.1:0"].map(str::to_owned).to_vec()
    });
    let ops = cluster.authority.papers("ops");
    for store in ["pages", "scores", "secrets"] {
        fill(&cluster, store, 100, &ops);
    }
    cluster
}

/// Connects as the subject of a token.
fn bearing(cluster: &SecuredCluster, token: &str) -> Dialer {
    let path = cluster.folder.path().join(format!("{token}.token"));
    secret::testing::write(&path, token);
    let options = SecurityOptions {
        ca: Some(cluster.authority.pem.clone()),
        token: Some(path),
        ..SecurityOptions::default()
    };
    Dialer::open(options).expect("a token and an authority")
}

async fn topology(dialer: &Dialer, router: &str) -> TopologyDocument {
    let replies = call(dialer, router, "/kith.v1.Cluster/GetTopology", Bytes::new()).await;
    let reply = replies.expect("anybody known may ask").remove(0);
    TopologyDocument::decode(&v1::Topology::decode(reply).expect("a topology").document).expect("JSON")
}

#[test]
fn verify_opens_only_what_the_metadata_names() {
    let cluster = started(&[("ads", "ads", "read = [\"pages\"]\nwrite = [\"scores\"]")]);
    let (ads, runtime) = (bearing(&cluster, "ads"), Runtime::new().expect("a runtime"));
    let node = cluster.node(0);
    let verify = |message: Vec<u8>| {
        runtime.block_on(call(&ads, &node, "/kith.v1.Inspect/Verify", message.into())).map(|replies| {
            let replies = replies.into_iter().map(|it| v1::VerifyProgress::decode(it).expect("progress"));
            replies.filter_map(|it| it.finding).collect::<Vec<_>>()
        })
    };
    let ask_of = |store: &str, version, object_store| {
        let store = store.to_owned();
        v1::VerifyRequest { store, version, object_store, ..Default::default() }.encode_to_vec()
    };
    let ask = |store: &str, version| ask_of(store, version, false);
    let topology = runtime.block_on(topology(&ads, &cluster.router(0)));
    let pages = topology.stores.iter().find(|store| store.name == "pages").expect("it is served");
    let served = pages.version;
    let own = verify(ask("pages", served)).expect("the right to read `pages`");
    assert_eq!(own.iter().map(|it| it.state.as_str()).collect::<Vec<_>>(), ["ok"]);
    let copy = verify(ask_of("pages", served, true)).expect("the same right");
    assert!(copy[0].state == "ok" && copy[0].place.contains("pages"), "{copy:?}");
    for object_store in [false, true] {
        assert_eq!(outcome(&verify(ask_of("pages", served + 1, object_store))), "version_not_kept");
        for store in ["secrets", "../secrets/values", "pages/../secrets", "/proc/self"] {
            let report = verify(ask_of(store, served, object_store));
            assert_eq!(outcome(&report), "permission_denied", "{store}");
        }
    }
    // As readers could ask until nodes decided by themselves what a version is made of.
    for name in ["../secrets/values", "../../../../../../../../../../../proc/self/fd"] {
        let mut record = pages.clone();
        record.components[0].name = name.to_owned();
        let record = String::from_utf8(record.encode()).expect("JSON");
        let message = v1::StoreNamed { store: record }.encode_to_vec();
        let report = verify(message);
        assert!(report.is_err(), "{name}: {report:?}");
    }
}

#[test]
fn what_is_refused_is_a_line_of_the_audit_log() {
    let cluster = started(&[("ads", "ads", "read = [\"pages\"]\nwrite = [\"scores\"]")]);
    let (ads, stranger) = (bearing(&cluster, "ads"), bearing(&cluster, "guessed"));
    let router = cluster.router(0);
    let runtime = Runtime::new().expect("a runtime");
    let read = v1::MultiGetRequest { store: "secrets".to_owned(), ids: vec![3], ..Default::default() };
    let read = |dialer| call(dialer, &router, "/kith.v1.Store/MultiGet", read.encode_to_vec().into());
    assert_eq!(outcome(&runtime.block_on(read(&ads))), "permission_denied");
    assert_eq!(outcome(&runtime.block_on(read(&stranger))), "unauthenticated");
    let push = v1::PushRequest {
        store: "scores".to_owned(),
        push: "p1".to_owned(),
        components: "[{}]".into(),
        ..Default::default()
    };
    let pushed = call(&ads, &router, "/kith.v1.Cluster/PushStore", push.encode_to_vec().into());
    assert_eq!(outcome(&runtime.block_on(pushed)), "bad_request");
    let topology = runtime.block_on(topology(&ads, &router));
    let scores = topology.stores.iter().find(|store| store.name == "scores").expect("it is served");
    let mut component = scores.components[0].clone();
    component.folder = Some("7-other".to_owned());
    let components = serde_json::to_vec(&[component]).expect("JSON").into();
    let push = v1::PushRequest { push: "p2".to_owned(), components, ..push };
    let pushed = call(&ads, &router, "/kith.v1.Cluster/PushStore", push.encode_to_vec().into());
    assert_eq!(outcome(&runtime.block_on(pushed)), "bad_request");
    let read = "method=\"/kith.v1.Store/MultiGet\"";
    for words in [
        [read, "subject=\"ads\"", "store=\"secrets\"", "code=\"permission_denied\""],
        [read, "subject=\"token\"", "store=\"\"", "code=\"unauthenticated\""],
        ["method=\"push\"", "subject=\"ads\"", "store=\"scores\"", "components of the push"],
        ["method=\"push\"", "subject=\"ads\"", "store=\"scores\"", "7-other"],
    ] {
        cluster.wait_until("the refusal is logged", || {
            let log = plain(&cluster.router_log());
            log.lines().any(|line| {
                let common = ["audit=true", "peer=127.0.0.1:"];
                common.iter().chain(&words).all(|word| line.contains(word))
            })
        });
    }
}

#[test]
fn a_connection_that_shows_an_unknown_token_is_nobodys_from_then_on() {
    let cluster = started(&[("ads", "ads", "read = [\"pages\"]")]);
    let runtime = Runtime::new().expect("a runtime");
    let read = v1::MultiGetRequest { store: "pages".to_owned(), ids: vec![3], ..Default::default() };
    let (read, router) = (read.encode_to_vec(), cluster.router(0));
    for (tokens, expected) in [
        (&["ads"][..], &["ok", "ok"][..]),
        (&["ads", "guessed"], &["ok", "unauthenticated", "unauthenticated"]),
        (&["ads", ""], &["ok", "unauthenticated", "unauthenticated"]),
        (&["ads", "guessed", "ads"], &["ok", "unauthenticated", "ok", "ok"]),
    ] {
        let answers = frames(&cluster.authority.pem, &router, tokens, Op::MultiGet, &read);
        let answers: Vec<String> = runtime.block_on(answers).iter().map(outcome).collect();
        assert_eq!(answers, expected, "{tokens:?}");
    }
}

/// A log without colours.
fn plain(log: &str) -> String {
    let mut parts = log.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn no_other_user_can_read_what_a_cluster_keeps() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    // As somebody else may have made them: each process closes its own.
    for folder in [data.clone(), data.join("node-000"), data.join("router-000")] {
        fs::create_dir(&folder).expect("made");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("set");
    }
    let cluster = Cluster::start(&[
        "--processes",
        "--nodes",
        "1",
        "--groups",
        "2",
        "--data",
        data.to_str().expect("UTF-8"),
    ]);
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "text"]);
    let rows = folder.path().join("rows.csv");
    fs::write(&rows, "key,value\n1,one\n2,two\n").expect("written");
    cluster.must(&["store", "push", "people", rows.to_str().expect("UTF-8")]);
    let mut folders = vec![data];
    let mut files = 0;
    while let Some(next) = folders.pop() {
        assert_eq!(mode(&next), 0o700, "{}", next.display());
        for entry in fs::read_dir(&next).expect("readable").flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
                files += 1;
            }
        }
    }
    assert!(10 < files, "packs, metadata and logs: {files}");
    assert_eq!(mode(&cluster.ready_file) & 0o077, 0);
}

/// Who walks: their token, and what they may do to the stores.
struct Walker {
    token: &'static str,
    reads: &'static [&'static str],
    writes: &'static [&'static str],
}

const WALKERS: [Walker; 5] = [
    Walker { token: "stranger", reads: &[], writes: &[] },
    Walker { token: "none", reads: &[], writes: &[] },
    Walker { token: "reader", reads: &["pages"], writes: &[] },
    Walker { token: "writer", reads: &[], writes: &["scores"] },
    Walker { token: "both", reads: &["scores"], writes: &["scores"] },
];

impl Walker {
    /// The code with which they are refused; `None`: they may.
    fn refused(&self, needs: Needs, store: &str) -> Option<&'static str> {
        let may = match needs {
            Needs::Nothing => return None,
            _ if self.token == "stranger" => return Some("unauthenticated"),
            Needs::Known => true,
            Needs::Read => self.reads.contains(&store),
            Needs::Write => self.writes.contains(&store),
            Needs::ReadAndWrite => self.reads.contains(&store) && self.writes.contains(&store),
            Needs::Admin | Needs::AdminOfAll | Needs::Cluster => false,
        };
        (!may).then_some("permission_denied")
    }
}

/// Why a call was refused; `None`: it was let in, whatever became of it.
fn refusal<T>(result: &Result<T, tonic::Status>) -> Option<String> {
    Some(outcome(result)).filter(|code| matches!(code.as_str(), "permission_denied" | "unauthenticated"))
}

/// Threat model (docs/operating/threats.md): each method, each variant of its message, each framed operation and each command of Redis
/// is asked of a router and of a node, about the walker's own store and about others.
#[test]
fn everybody_gets_what_their_rights_say_of_every_method_and_operation() {
    let cluster = started(&[
        ("none", "none", "read = []"),
        ("reader", "reader", "read = [\"pages\"]"),
        ("scorer", "writer", "write = [\"scores\"]"),
        ("keeper", "both", "read = [\"scores\"]\nwrite = [\"scores\"]"),
    ]);
    let runtime = Runtime::new().expect("a runtime");
    let servers = [cluster.router(0), cluster.node(0)];
    let ops: Vec<Op> = (0..=u8::MAX).filter_map(Op::from_number).collect();
    for walker in &WALKERS {
        let dialer = bearing(&cluster, walker.token);
        for (store, server) in
            ["pages", "scores", "secrets"].iter().flat_map(|it| servers.iter().map(move |at| (*it, at)))
        {
            for call in calls(store) {
                let answer = runtime.block_on(begin(&dialer, server, &call.path, call.message));
                let (answer, expected) = (refusal(&answer), walker.refused(call.needs, store));
                assert_eq!(
                    answer.as_deref(),
                    expected,
                    "{} {} {} of {store}",
                    walker.token,
                    call.path,
                    call.variant
                );
            }
            for op in &ops {
                let Some((body, needs)) = framed(*op, store) else { continue };
                let answer = frame(&cluster.authority.pem, server, walker.token, *op, &body);
                let (answer, expected) = (refusal(&runtime.block_on(answer)), walker.refused(needs, store));
                assert_eq!(answer.as_deref(), expected, "{} {} of {store}", walker.token, op.name());
            }
        }
    }
    walk_redis(&cluster);
    walk_http(&cluster);
    // Nothing of all this changed a store.
    let topology = runtime.block_on(topology(&bearing(&cluster, "reader"), &cluster.router(0)));
    let stores: Vec<&str> = topology.stores.iter().map(|store| store.name.as_str()).collect();
    assert_eq!(stores, ["pages", "scores", "secrets"]);
}

/// A compressed message, by each encoding that is accepted.
fn compressed(message: &[u8]) -> [(&'static str, Vec<u8>); 2] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(message).expect("memory");
    [("gzip", gzip.finish().expect("memory")), ("zstd", zstd::encode_all(message, 3).expect("memory"))]
}

#[test]
fn compressed_requests_are_answered_and_refused_as_plain_ones_are() {
    let cluster = started(&[
        ("none", "none", "read = []"),
        ("reader", "reader", "read = [\"pages\"]"),
        ("keeper", "both", "read = [\"scores\"]\nwrite = [\"scores\"]"),
    ]);
    let runtime = Runtime::new().expect("a runtime");
    for walker in WALKERS.iter().filter(|walker| walker.token != "writer") {
        let dialer = bearing(&cluster, walker.token);
        for (store, server) in [("pages", cluster.router(0)), ("scores", cluster.node(0))] {
            for call in calls(store) {
                let plain = runtime.block_on(begin(&dialer, &server, &call.path, call.message.clone()));
                let plain = outcome(&plain);
                for sent in compressed(&call.message) {
                    let encoding = sent.0;
                    let answer = runtime.block_on(begin_compressed(&dialer, &server, &call.path, sent));
                    let about = format!("{} {} of {store} by {encoding}", walker.token, call.path);
                    assert_eq!(refusal(&answer).as_deref(), walker.refused(call.needs, store), "{about}");
                    assert_eq!(outcome(&answer), plain, "{about}");
                }
            }
        }
    }
    // A bomb, and an encoding that gRPC knows and this release does not.
    let (reader, path) = (bearing(&cluster, "reader"), "/kith.v1.Store/MultiGet");
    let zeros = vec![0; kith_wire::REQUEST_BYTES_MAX + 1];
    for (sent, code) in compressed(&zeros)
        .into_iter()
        .map(|sent| (sent, "too_large"))
        .chain([(("deflate", vec![3, 0]), "unsupported_operation")])
    {
        let answer = runtime.block_on(begin_compressed(&reader, &cluster.router(0), path, sent));
        assert_eq!(outcome(&answer), code);
    }
}

/// Commands of Redis: those that name keys need the right to read their store, all others but the greetings to be known.
fn walk_redis(cluster: &SecuredCluster) {
    const READS: [&str; 4] = ["exists", "get", "mget", "strlen"];
    const OTHERS: [&str; 12] = [
        "auth", "client", "cluster", "command", "config", "echo", "hello", "info", "ping", "quit", "reset",
        "select",
    ];
    for redis in [cluster.redis(None), cluster.redis_of_node(0, None)] {
        let as_token = |token: &str, command: &[&str]| {
            redis.cli(&[&["--no-auth-warning", "-a", token], command].concat())
        };
        let listed = as_token("reader", &["command", "list"]);
        let listed: std::collections::BTreeSet<&str> =
            listed.lines().filter(|line| !line.is_empty()).collect();
        let placed = READS.iter().chain(&OTHERS).copied().collect();
        assert_eq!(listed, placed, "say here what each command needs");
        for command in READS {
            assert!(redis.cli(&[command, "pages:7"]).contains("NOAUTH"), "{command} of nobody");
            for walker in &WALKERS[1..] {
                for store in ["pages", "scores", "secrets"] {
                    let reply = as_token(walker.token, &[command, &format!("{store}:7")]);
                    let is_refused = reply.contains("NOPERM");
                    assert_eq!(
                        is_refused,
                        !walker.reads.contains(&store),
                        "{} {command} {store}: {reply}",
                        walker.token
                    );
                }
            }
        }
        for command in
            [&["echo", "x"][..], &["info"], &["client", "list"], &["config", "get", "*"], &["select", "0"]]
        {
            assert!(redis.cli(command).contains("NOAUTH"), "{command:?} of nobody");
        }
    }
}

/// Health and metrics are for everybody, and hold no keys or values.
fn walk_http(cluster: &SecuredCluster) {
    let http = cluster.http();
    for (path, status) in
        [("/healthz", "200"), ("/readyz", "200"), ("/metrics", "200"), ("/", "200"), ("/debug", "404")]
    {
        let response = get(&http, path);
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {response}");
        assert!(!response.contains("value 7 of"), "{path}");
    }
    // What alerts about certificates and the access file need.
    let metrics = get(&http, "/metrics");
    for file in ["certificates", "access"] {
        assert!(metrics.contains(&format!("kith_server_reload_failed{{file=\"{file}\"}} 0")), "{file}");
    }
    assert!(metrics.contains("kith_server_certificate_expiry_timestamp_seconds{file=\"tls-cert\"} "));
}

fn get(addr: &str, path: &str) -> String {
    use std::io::Read;
    let mut stream = std::net::TcpStream::connect(addr).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("text");
    response
}
