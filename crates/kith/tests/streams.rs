//! Streams of records against real processes: every key once and the footer true of it, while nodes die, stand still or
//! fall apart in its middle, while versions change, and while readers do not read.

mod support;

use futures::{StreamExt, future::join_all};
use kith_client::{QueryOptions, Service, Session, SessionSettings, StreamItem, StreamStatus, TransportKind};
use kith_ops::{Record, RecordCounts};
use kith_schema::RecordView;
use kith_types::ErrorCode;
use serde_json::{Value, json};
use std::{fs, io::Write, process::Stdio, time::Duration};
use support::{
    cluster::{Cluster, signal},
    disk,
    streams::{Seen, connect, keys, push_version, read},
    values::{create, push},
};

/// Some 8 MB: more than is ever on its way of a stream in frames that nobody reads.
const PEOPLE: u64 = 8_000;
/// More than that over gRPC, whose windows are wider.
const MANY: u64 = 20_000;
/// What a test needs to happen may take so many tries.
const TRIES: u32 = 5;
/// Far more than any read takes.
const PATIENCE: Duration = Duration::from_secs(50);
/// Keys of a stream: some are absent.
const ASKED: u64 = PEOPLE + 100;

fn started(arguments: &[&str]) -> Cluster {
    started_with(arguments, PEOPLE)
}

fn started_with(arguments: &[&str], people: u64) -> Cluster {
    let cluster = Cluster::start(arguments);
    create(&cluster, "people", support::streams::TYPES.0, support::streams::TYPES.1);
    push_version(&cluster, "people", people, 1);
    cluster
}

fn patient() -> QueryOptions {
    QueryOptions { deadline: Some(PATIENCE), ..QueryOptions::default() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}

fn partial() -> QueryOptions {
    QueryOptions { partial: true, ..patient() }
}

/// What `kith mget` prints for `input`, and its exit code.
fn mget(cluster: &Cluster, arguments: &[&str], input: &str) -> (Vec<Value>, Option<i32>) {
    let mut command = cluster.kith(&["mget", "people", "--keys-from", "-", "-o", "json"]);
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("kith runs");
    let mut stdin = child.stdin.take().expect("its input is piped");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    (lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(), output.status.code())
}

fn lines_of(keys: impl Iterator<Item = u64>) -> String {
    keys.map(|key| format!("{key}\n")).collect()
}

/// Lines without the footer, in an order of their own; and the footer.
fn sorted(mut lines: Vec<Value>) -> (Vec<String>, Value) {
    let footer = lines.pop().expect("a footer");
    let mut lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.sort();
    (lines, footer)
}

#[test]
fn a_stream_tells_what_a_whole_read_tells_on_every_way_in() {
    let cluster = started(&["--nodes", "2", "--groups", "2"]);
    // Absent ones and repeats among them.
    let input = lines_of((0..2_000).chain(PEOPLE..PEOPLE + 10).chain(0..20));
    for way in [&[][..], &["--transport", "grpc"], &["--direct"], &["--direct", "--transport", "grpc"]] {
        let (whole, code) = mget(&cluster, &[way, &["--deadline-ms", "50000"]].concat(), &input);
        assert_eq!(code, Some(0), "{way:?}");
        let (streamed, code) =
            mget(&cluster, &[way, &["--stream", "--profile", "--deadline-ms", "50000"]].concat(), &input);
        assert_eq!(code, Some(0), "{way:?}");
        let ((whole, whole_footer), (streamed, footer)) = (sorted(whole), sorted(streamed));
        assert!(whole == streamed, "{way:?}: other lines than those of a whole read");
        for count in ["found", "absent", "error", "unanswered", "versions"] {
            assert_eq!(footer["footer"][count], whole_footer["footer"][count], "{way:?}");
        }
        assert_eq!((&footer["footer"]["status"], &footer["footer"]["absent"]), (&json!("OK"), &json!(10)));
        assert_eq!(footer["footer"]["crc32c"].is_string(), !way.contains(&"--direct"), "{footer}");
        assert!(footer["profile"]["requests"].as_u64().is_some_and(|requests| 0 < requests), "{footer}");
    }
    let (none, code) = mget(&cluster, &["--stream"], "");
    assert_eq!((none.len(), &none[0]["footer"]["status"], code), (1, &json!("OK"), Some(0)));
    let (few, code) = mget(&cluster, &["--stream"], "7\n");
    assert_eq!((few.len(), &few[0]["key"], code), (2, &json!(7), Some(0)));
}

#[test]
fn records_are_decoded_as_they_come() {
    let cluster = Cluster::start(&["--nodes", "2"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = folder.path().join("rows.jsonl");
    let lines: String = (0..3_000).map(|id| format!("{{\"id\":{id},\"name\":\"n{id}\"}}\n")).collect();
    fs::write(&rows, lines).expect("written");
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "record", "--key-field", "id"]);
    cluster.must(&["store", "push", "people", rows.to_str().expect("UTF-8")]);
    let (lines, code) = mget(&cluster, &["--stream"], &lines_of(0..3_000));
    assert_eq!((lines.len(), code), (3_001, Some(0)));
    for line in &lines[..3_000] {
        let key = line["key"].as_u64().expect("an id");
        assert_eq!(line["value"]["name"], format!("n{key}"), "{line}");
    }
}

#[test]
fn what_makes_no_sense_is_told() {
    let cluster = started(&["--nodes", "1"]);
    for way in [&["--stream"][..], &["--stream", "--transport", "grpc"], &["--stream", "--direct"]] {
        let told = |arguments: &[&str], input: &str| {
            let (lines, code) = mget(&cluster, &[way, arguments].concat(), input);
            (lines[0]["error"]["code"].as_str().unwrap_or_default().to_owned(), code)
        };
        assert_eq!(told(&["--policy", "best"], "1\n"), ("unknown_policy".to_owned(), Some(1)));
        assert_eq!(told(&[], "one\n"), ("wrong_key_type".to_owned(), Some(1)));
        assert_eq!(told(&[], &"1\n".repeat(100_001)), ("out_of_range".to_owned(), Some(1)));
    }
    let table =
        cluster.kith(&["mget", "people", "--keys-from", "-", "--stream"]).output().expect("kith runs");
    assert_eq!(table.status.code(), Some(2));
    let runtime = runtime();
    runtime.block_on(async {
        let router = connect(&cluster).await;
        let seen = read(&router, "nobody", 1, 0, &partial()).await;
        assert_eq!(seen.error.map(|error| error.code()), Some(ErrorCode::UnknownStore));
    });
}

#[test]
fn a_node_that_dies_or_stands_still_in_the_middle_costs_no_key() {
    let mut cluster = started(&["--processes", "--nodes", "2", "--groups", "2"]);
    let runtime = runtime();
    for (turn, stop) in ["KILL", "STOP", "KILL", "STOP"].into_iter().enumerate() {
        // Of one group alone: what its nodes hold the other's always do.
        let victim = cluster.node_pids(0)[turn % 2];
        runtime.block_on(async {
            let router = connect(&cluster).await;
            let session = Session::connect(vec![router.addr().to_owned()], SessionSettings::default());
            let session = session.await.expect("the cluster is up");
            let services: [&dyn Service; 2] = [&router, &session];
            let (asked, options) = (keys(ASKED), patient());
            let mut streams = services.map(|service| service.multi_get_stream("people", &asked, &options));
            let mut seen = [Seen::new(ASKED), Seen::new(ASKED)];
            for (seen, stream) in seen.iter_mut().zip(&mut streams) {
                assert!(seen.next(stream, PEOPLE).await && seen.footer.is_none(), "it has only begun");
            }
            // Nobody reads meanwhile: what is left is with the nodes.
            signal(victim, stop);
            for (seen, mut stream) in seen.into_iter().zip(streams) {
                let seen = seen.finish(&mut stream, PEOPLE).await;
                seen.assert_accounted();
                assert_eq!((seen.counts.found, seen.counts.absent), (PEOPLE, ASKED - PEOPLE));
                assert_eq!(seen.footer.map(|footer| footer.status), Some(StreamStatus::Ok));
            }
        });
        if stop == "STOP" {
            signal(victim, "CONT");
        }
        cluster.wait_until("all nodes are up", |cluster| {
            let status = cluster.must(&["cluster", "status", "-o", "json"]);
            let status: Value = serde_json::from_str(&status).expect("JSON");
            status["nodes"].as_array().expect("a list").iter().all(|node| node["state"] == "up")
        });
    }
}

#[test]
fn at_the_deadline_the_rest_is_unanswered_or_an_error() {
    let cluster = started(&["--processes", "--nodes", "2", "--groups", "1"]);
    let frozen = cluster.node_pids(0)[1];
    let runtime = runtime();
    let deadline = Some(Duration::from_secs(6));
    // A node stands still from the first piece on.
    let stopped = |options: &QueryOptions| {
        runtime.block_on(async {
            let router = connect(&cluster).await;
            let asked = keys(ASKED);
            let mut stream = router.multi_get_stream("people", &asked, options);
            let mut seen = Seen::new(ASKED);
            assert!(seen.next(&mut stream, PEOPLE).await && seen.footer.is_none());
            signal(frozen, "STOP");
            let seen = seen.finish(&mut stream, PEOPLE).await;
            signal(frozen, "CONT");
            assert!(0 < seen.counts.found);
            seen
        })
    };
    for turn in 0.. {
        let seen = stopped(&QueryOptions { deadline, ..partial() });
        seen.assert_accounted();
        let footer = seen.footer.expect("a footer");
        assert_eq!((footer.status, seen.counts.error), (StreamStatus::Partial, 0));
        assert!(0 < seen.counts.unanswered);
        if footer.crc32c.is_none() && turn < TRIES {
            // This machine is so busy that the router was given up before it could tell.
            continue;
        }
        for failure in &footer.failures {
            assert!(
                [ErrorCode::DeadlineExceeded, ErrorCode::NodeUnreachable].contains(&failure.code),
                "{failure:?}"
            );
            assert_eq!(failure.nodes, [1], "{failure:?}");
            assert!(!failure.partitions.is_empty(), "{failure:?}");
        }
        break;
    }
    let seen = stopped(&QueryOptions { deadline, ..QueryOptions::default() });
    let code = seen.error.as_ref().map(|error| error.code());
    let possible = [ErrorCode::DeadlineExceeded, ErrorCode::PartitionsUnavailable];
    assert!(code.is_some_and(|code| possible.contains(&code)), "{seen:?}");
    // On the command line: what came is printed, and the exit code tells.
    signal(frozen, "STOP");
    let all = lines_of(0..ASKED);
    let (lines, code) = mget(&cluster, &["--stream", "--partial", "--deadline-ms", "6000"], &all);
    let (whole, error) = mget(&cluster, &["--stream", "--deadline-ms", "6000"], &all);
    signal(frozen, "CONT");
    assert_eq!((lines.len() as u64, code), (ASKED + 1, Some(3)));
    assert_eq!(lines.last().expect("a footer")["footer"]["status"], "PARTIAL");
    assert_eq!(error, Some(1));
    assert!(whole.last().expect("an error")["error"]["code"].is_string());
}

#[test]
fn of_a_cluster_that_does_not_answer_there_is_no_footer() {
    let cluster = started(&["--processes", "--nodes", "1", "--groups", "1"]);
    let node = cluster.node_pids(0)[0];
    signal(node, "STOP");
    let (lines, code) = mget(&cluster, &["--stream", "--partial", "--deadline-ms", "700"], "1\n2\n");
    signal(node, "CONT");
    assert_eq!((lines.len(), code), (1, Some(1)), "{lines:?}");
    assert!(lines[0]["error"]["code"].is_string(), "{lines:?}");
}

/// Two groups of a node each, whose nodes cannot repair themselves out of what was built.
fn started_without_what_was_built() -> Cluster {
    let cluster = started(&["--nodes", "1", "--groups", "2", "--scrub-rate", "off"]);
    let data = cluster.ready_file.parent().expect("a folder").join("data");
    fs::rename(data.join("objects/people"), data.join("objects/away")).expect("moved");
    cluster
}

#[test]
fn damaged_records_come_from_a_replica() {
    let cluster = started_without_what_was_built();
    disk::flip(&disk::version_folder(&cluster, 0, "people", 1), "data");
    runtime().block_on(async {
        let router = connect(&cluster).await;
        for _ in 0..4 {
            let seen = read(&router, "people", ASKED, PEOPLE, &patient()).await;
            seen.assert_accounted();
            assert_eq!(seen.counts.found, PEOPLE);
        }
    });
}

#[test]
fn records_that_are_damaged_everywhere_come_as_errors() {
    let cluster = started_without_what_was_built();
    // Before anything is read: a node that finds damage repairs itself from the other.
    for node in 0..2 {
        disk::flip(&disk::version_folder(&cluster, node, "people", 1), "data");
    }
    runtime().block_on(async {
        let router = connect(&cluster).await;
        let seen = read(&router, "people", ASKED, PEOPLE, &partial()).await;
        seen.assert_accounted();
        assert!(0 < seen.counts.error && 0 < seen.counts.found, "{:?}", seen.counts);
        let footer = seen.footer.expect("a footer");
        assert_eq!(footer.status, StreamStatus::Partial);
        assert!(
            footer.failures.iter().all(|failure| failure.code == ErrorCode::Damaged),
            "{:?}",
            footer.failures
        );
        let seen = read(&router, "people", ASKED, PEOPLE, &patient()).await;
        assert_eq!(seen.error.map(|error| error.code()), Some(ErrorCode::Damaged));
    });
}

#[test]
fn no_stream_mixes_versions() {
    let cluster = started(&["--processes", "--nodes", "2", "--groups", "2"]);
    let runtime = runtime();
    runtime.block_on(async {
        let router = connect(&cluster).await;
        let (asked, options) = (keys(ASKED), patient());
        for version in 2..5 {
            let mut stream = router.multi_get_stream("people", &asked, &options);
            let mut seen = Seen::new(ASKED);
            assert!(seen.next(&mut stream, PEOPLE).await && seen.footer.is_none());
            // The stream stands still while another version takes over.
            tokio::task::block_in_place(|| push_version(&cluster, "people", PEOPLE, version));
            let seen = seen.finish(&mut stream, PEOPLE).await;
            seen.assert_accounted();
            assert_eq!((seen.counts.found, seen.versions), (PEOPLE, vec![version - 1]));
            let next = read(&router, "people", ASKED, PEOPLE, &options).await;
            next.assert_accounted();
            assert_eq!(next.versions, [version]);
        }
    });
}

/// Bytes of a process that are in memory.
fn resident(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).expect("a process of this test");
    let pages: u64 = statm.split(' ').nth(1).expect("a number").parse().expect("a number");
    pages * 4_096
}

#[test]
fn readers_that_stop_cost_their_router_little_and_others_nothing() {
    const STREAMS: usize = 32;
    let mut cluster = started_with(&["--processes", "--nodes", "2", "--groups", "2"], MANY);
    let pid = cluster.ready()["routers"][0]["pid"].as_u64().expect("a pid") as u32;
    let runtime = runtime();
    let asked = keys(MANY);
    let options = QueryOptions { deadline: Some(Duration::from_secs(15)), ..QueryOptions::default() };
    // A client of its own for each, half of them over gRPC.
    let clients = runtime.block_on(async {
        let mut clients = Vec::new();
        for number in 0..STREAMS {
            let kind = if number % 2 == 0 { TransportKind::Framed } else { TransportKind::Grpc };
            clients.push(connect(&cluster).await.with_transport(kind));
        }
        clients
    });
    let before = resident(pid);
    let streams = runtime.block_on(async {
        let mut streams = Vec::new();
        for client in &clients {
            let mut stream = client.multi_get_stream("people", &asked, &options);
            let mut seen = Seen::new(MANY);
            assert!(seen.next(&mut stream, MANY).await && seen.footer.is_none());
            streams.push(stream);
        }
        streams
    });
    // All of them stand still; nobody else does.
    let requests: Vec<Value> = (0..100)
        .map(|at| json!({"op": "mget", "store": "people", "keys": (at..at + 500).collect::<Vec<u64>>(), "deadline_ms": 50_000}))
        .collect();
    let (answers, exit) = cluster.run(&requests, 4);
    assert_eq!(exit, 0);
    assert!(answers.iter().all(|answer| answer["footer"]["found"] == 500));
    runtime.block_on(async {
        let other = connect(&cluster).await;
        read(&other, "people", MANY, MANY, &patient()).await.assert_accounted();
    });
    // Their answers are 640 MB together.
    let grown = resident(pid).saturating_sub(before);
    assert!(grown < 256 << 20, "the router has grown by {} MiB", grown >> 20);
    // And none of them stays for ever.
    cluster.wait_until("no stream is left", |cluster| cluster.metric("kith_router_streams") == Some(0.0));
    assert!(cluster.metric("kith_router_streams_cut_total").is_some_and(|cut| 0.0 < cut));
    drop(streams);
    let (_, exit) = cluster.run(&requests, 4);
    assert_eq!(exit, 0);
}

/// Far more than may lie between nodes and a reader: 60 MB in all, as much as an answer may have.
#[test]
fn large_records_that_nobody_reads_stay_where_they_are() {
    const RECORDS: u64 = 30;
    const RECORD_BYTES: usize = 2 << 20;
    let cluster = Cluster::start(&["--processes", "--nodes", "2", "--groups", "1"]);
    create(&cluster, "large", support::streams::TYPES.0, support::streams::TYPES.1);
    let rows = (0..RECORDS).map(|key| (key.to_le_bytes().to_vec(), vec![key as u8; RECORD_BYTES]));
    push(&cluster, "large", support::streams::TYPES, 1, rows);
    let deadline = Duration::from_secs(8);
    let options = QueryOptions { deadline: Some(deadline), partial: true, ..QueryOptions::default() };
    runtime().block_on(async {
        let mut services: Vec<Box<dyn Service>> = Vec::new();
        for kind in [TransportKind::Framed, TransportKind::Grpc] {
            let router = connect(&cluster).await.with_transport(kind);
            let addrs = vec![router.addr().to_owned()];
            let settings = SessionSettings { transport: kind, ..SessionSettings::default() };
            services.push(Box::new(Session::connect(addrs, settings).await.expect("the cluster is up")));
            services.push(Box::new(router));
        }
        let stopping = services.iter().map(|service| async {
            let asked = keys(RECORDS);
            let mut stream = service.multi_get_stream("large", &asked, &options);
            let mut counts = RecordCounts::default();
            while let Some(item) = stream.next().await {
                match item.expect("records came before the deadline") {
                    StreamItem::Piece(piece) if piece.records.counts().unanswered == 0 => {
                        assert_eq!(piece.records.len(), 1, "a piece is as large as one record");
                        if counts.found == 0 {
                            // Longer than the deadline and what is granted beyond it.
                            tokio::time::sleep(deadline + Duration::from_secs(1)).await;
                        }
                        counts.found += 1;
                    }
                    StreamItem::Piece(piece) => counts.unanswered += piece.records.counts().unanswered,
                    StreamItem::Footer(footer) => return (counts, footer),
                }
            }
            panic!("no footer");
        });
        for (place, (counts, footer)) in join_all(stopping).await.into_iter().enumerate() {
            assert_eq!((footer.counts, footer.status), (counts, StreamStatus::Partial), "{place}");
            assert_eq!(counts.found + counts.unanswered, RECORDS, "{place}");
            assert!(
                footer.failures.iter().all(|failure| failure.code == ErrorCode::DeadlineExceeded),
                "{footer:?}"
            );
            let lost: u64 = footer.failures.iter().map(|failure| failure.keys).sum();
            assert_eq!(lost, counts.unanswered, "{place}");
        }
        // Whoever reads has them all, whatever they weigh.
        for service in &services {
            let asked = keys(RECORDS);
            let options = patient();
            let items: Vec<_> = service.multi_get_stream("large", &asked, &options).collect().await;
            let Some(Ok(StreamItem::Footer(footer))) = items.last() else { panic!("no footer") };
            assert_eq!((footer.status, footer.counts.found), (StreamStatus::Ok, RECORDS));
        }
    });
}

/// HTTP/2 has a window for all that comes over a connection: streams that nobody reads must not fill it.
#[test]
fn streams_over_grpc_that_nobody_reads_stop_nobody() {
    const STREAMS: usize = 12;
    let folder = tempfile::tempdir().expect("a folder");
    let settings = folder.path().join("router.toml");
    fs::write(&settings, "[session]\ntransport = \"grpc\"\n").expect("written");
    let settings = settings.to_str().expect("UTF-8");
    let cluster = started_with(&["--processes", "--nodes", "1", "--groups", "1", "--config", settings], MANY);
    runtime().block_on(async {
        let router = connect(&cluster).await;
        let grpc = SessionSettings { transport: TransportKind::Grpc, ..SessionSettings::default() };
        let session =
            Session::connect(vec![router.addr().to_owned()], grpc).await.expect("the cluster is up");
        let over_grpc = connect(&cluster).await.with_transport(TransportKind::Grpc);
        // The router asks its node over gRPC too, over one connection for all of them.
        let services: [&dyn Service; 3] = [&router, &over_grpc, &session];
        let (asked, one, options) = (keys(MANY), keys(1), patient());
        for service in services {
            let mut streams = Vec::new();
            for _ in 0..STREAMS {
                let mut stream = service.multi_get_stream("people", &asked, &options);
                let mut seen = Seen::new(MANY);
                assert!(seen.next(&mut stream, MANY).await && seen.footer.is_none());
                streams.push(stream);
            }
            // As much as may come, has come.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let soon = QueryOptions { deadline: Some(PATIENCE / 5), ..QueryOptions::default() };
            let answer = service.multi_get("people", &one, &soon).await.expect("nobody waits for readers");
            assert_eq!(answer.counts().found, 1);
        }
    });
}

#[test]
fn a_router_that_dies_in_the_middle_leaves_the_rest_unanswered() {
    let mut cluster = started(&["--processes", "--nodes", "1", "--groups", "1"]);
    let runtime = runtime();
    for (options, is_partial) in [(partial(), true), (patient(), false)] {
        let pid = cluster.ready()["routers"][0]["pid"].as_u64().expect("a pid") as u32;
        runtime.block_on(async {
            let router = connect(&cluster).await;
            let asked = keys(ASKED);
            let mut stream = router.multi_get_stream("people", &asked, &options);
            let mut seen = Seen::new(ASKED);
            assert!(seen.next(&mut stream, PEOPLE).await && seen.footer.is_none());
            signal(pid, "KILL");
            let seen = seen.finish(&mut stream, PEOPLE).await;
            if is_partial {
                seen.assert_accounted();
                let footer = seen.footer.expect("a footer");
                assert_eq!((footer.status, footer.crc32c), (StreamStatus::Partial, None));
                assert_eq!(footer.failures[0].code, ErrorCode::Unreachable);
            } else {
                assert_eq!(seen.error.map(|error| error.code()), Some(ErrorCode::Unreachable));
            }
        });
        cluster.wait_until("another router is up", |cluster| {
            let found = cluster.ready()["routers"][0]["pid"].as_u64();
            found.is_some_and(|found| found != u64::from(pid))
                && cluster.kith(&["cluster", "status"]).output().is_ok_and(|it| it.status.success())
        });
    }
}

#[test]
fn where_answers_must_agree_a_stream_is_one_piece() {
    let cluster = Cluster::start(&["--nodes", "1", "--groups", "3"]);
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "bytes", "--required-reads", "2"]);
    push_version(&cluster, "people", 500, 1);
    let runtime = runtime();
    runtime.block_on(async {
        let router = connect(&cluster).await;
        let seen = read(&router, "people", 510, 500, &patient()).await;
        seen.assert_accounted();
        assert_eq!((seen.counts.found, seen.counts.absent), (500, 10));
    });
}

/// Results of 5,000 records arrive before the last of them is worked out.
#[test]
fn results_of_many_records_come_in_pieces() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = Cluster::start(&["--nodes", "2"]);
    let rows = folder.path().join("rows.f32le");
    let numbers: Vec<u8> = (0..5_000 * 4_u32).flat_map(|number| (number as f32).to_le_bytes()).collect();
    fs::write(&rows, numbers).expect("written");
    cluster.must(&["store", "create", "pages", "--key", "id", "--value", "record"]);
    let rows = rows.to_str().expect("UTF-8");
    cluster.must(&["store", "push", "pages", rows, "--format", "f32le", "--dims", "4"]);
    runtime().block_on(async {
        let router = connect(&cluster).await;
        let session = Session::connect(vec![router.addr().to_owned()], SessionSettings::default());
        let (session, keys) = (session.await.expect("it answers"), keys(5_000));
        for plan in [router.compute("pages"), session.compute("pages")] {
            let items: Vec<_> = plan.dot("vector", [1.0, 0.0, 0.0, 0.0]).stream(&keys).collect().await;
            let (mut pieces, mut seen) = (0, vec![None; 5_000]);
            for item in items {
                let Ok(StreamItem::Piece(piece)) = item else { continue };
                let result = piece.result.expect("its schema");
                pieces += 1;
                for (position, record) in piece.positions.iter().zip(piece.records.iter()) {
                    let Record::Found(bytes) = record else { panic!("{position} is there") };
                    let view = RecordView::new(&result, bytes).expect("a record");
                    let score = view.field("dot_vector").expect("decodes").and_then(|score| score.as_f64());
                    assert!(seen[*position as usize].replace(score).is_none(), "{position} came twice");
                }
            }
            assert!(2 < pieces, "{pieces} pieces of two nodes");
            assert!(seen.iter().zip(0..).all(|(score, key)| *score == Some(Some(f64::from(key * 4)))));
        }
    });
}
