//! Nodes and routers that die, stand still or have damaged records in the middle of a stream.

use super::{ASKED, PEOPLE, TRIES, lines_of, mget, partial, patient, runtime, started};
use crate::support::{
    cluster::{Cluster, signal},
    disk,
    streams::{ReceivedStream, begun, connect, keys, read},
};
use kith_client::{QueryOptions, Service, StreamFooter, StreamStatus};
use kith_session::{Session, SessionSettings};
use kith_types::ErrorCode;
use serde_json::Value;
use std::{fs, time::Duration};

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
            let mut seen = [ReceivedStream::new(ASKED), ReceivedStream::new(ASKED)];
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

/// Reads a stream whose node `frozen` stands still from the first piece on.
fn read_beside_frozen(cluster: &Cluster, frozen: u32, options: &QueryOptions) -> ReceivedStream {
    runtime().block_on(async {
        let router = connect(cluster).await;
        let (mut stream, seen) = begun(&router, "people", ASKED, PEOPLE, options).await;
        signal(frozen, "STOP");
        let seen = seen.finish(&mut stream, PEOPLE).await;
        signal(frozen, "CONT");
        assert!(0 < seen.counts.found);
        seen
    })
}

/// Panics unless all failures are of partitions that node 1, and nobody else, did not answer in time for.
fn assert_only_node_1_failed(footer: &StreamFooter) {
    for failure in &footer.failures {
        assert!(
            [ErrorCode::DeadlineExceeded, ErrorCode::NodeUnreachable].contains(&failure.code),
            "{failure:?}"
        );
        assert_eq!(failure.nodes, [1], "{failure:?}");
        assert!(!failure.partitions.is_empty(), "{failure:?}");
    }
}

#[test]
fn at_the_deadline_the_rest_is_unanswered_or_an_error() {
    let cluster = started(&["--processes", "--nodes", "2", "--groups", "1"]);
    let frozen = cluster.node_pids(0)[1];
    let deadline = Some(Duration::from_secs(6));
    for turn in 0.. {
        let seen = read_beside_frozen(&cluster, frozen, &QueryOptions { deadline, ..partial() });
        seen.assert_accounted();
        let footer = seen.footer.expect("a footer");
        assert_eq!((footer.status, seen.counts.error), (StreamStatus::Partial, 0));
        assert!(0 < seen.counts.unanswered);
        if footer.crc32c.is_none() && turn < TRIES {
            // This machine is so busy that the router was given up before it could tell.
            continue;
        }
        assert_only_node_1_failed(&footer);
        break;
    }
    let seen = read_beside_frozen(&cluster, frozen, &QueryOptions { deadline, ..QueryOptions::default() });
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
fn a_router_that_dies_in_the_middle_leaves_the_rest_unanswered() {
    let mut cluster = started(&["--processes", "--nodes", "1", "--groups", "1"]);
    let runtime = runtime();
    for (options, is_partial) in [(partial(), true), (patient(), false)] {
        let pid = cluster.ready()["routers"][0]["pid"].as_u64().expect("a pid") as u32;
        runtime.block_on(async {
            let router = connect(&cluster).await;
            let (mut stream, seen) = begun(&router, "people", ASKED, PEOPLE, &options).await;
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
