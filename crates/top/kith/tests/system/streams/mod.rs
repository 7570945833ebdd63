//! Streams of records against real processes: every key once and the footer true of it, while nodes die, stand still or
//! fall apart in its middle, while versions change, and while readers do not read.

mod failures;
mod unread;

use crate::support;
use futures::StreamExt;
use kith_client::{ComputeBuilder, QueryOptions, StreamItem};
use kith_operators::Record;
use kith_schema::RecordView;
use kith_session::{Session, SessionSettings};
use kith_types::ErrorCode;
use serde_json::{Value, json};
use std::{fs, io::Write, process::Stdio, time::Duration};
use support::{
    cluster::Cluster,
    streams::{TYPES, begun, connect, keys, push_version, read},
    values::create,
};

/// Some 8 MB: more than is ever on its way of a stream in frames that nobody reads.
const PEOPLE: u64 = 8_000;
/// More than that over gRPC, whose windows are wider.
const MANY: u64 = 20_000;
/// The number of tries for an event that a test needs.
const TRIES: u32 = 5;
/// Far more than any read takes.
const TIMEOUT: Duration = Duration::from_secs(50);
/// Keys of a stream: some are absent.
const ASKED: u64 = PEOPLE + 100;

fn started(arguments: &[&str]) -> Cluster {
    started_with(arguments, PEOPLE)
}

fn started_with(arguments: &[&str], people: u64) -> Cluster {
    let cluster = Cluster::start(arguments);
    create(&cluster, "people", TYPES.0, TYPES.1);
    push_version(&cluster, "people", people, 1);
    cluster
}

fn patient() -> QueryOptions {
    QueryOptions { deadline: Some(TIMEOUT), ..QueryOptions::default() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}

fn partial() -> QueryOptions {
    QueryOptions { partial: true, ..patient() }
}

/// The output of `kith mget` for `input`, and its exit code.
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
fn what_makes_no_sense_is_reported() {
    let cluster = started(&["--nodes", "1"]);
    for way in [&["--stream"][..], &["--stream", "--transport", "grpc"], &["--stream", "--direct"]] {
        let refusal_of = |arguments: &[&str], input: &str| {
            let (lines, code) = mget(&cluster, &[way, arguments].concat(), input);
            (lines[0]["error"]["code"].as_str().unwrap_or_default().to_owned(), code)
        };
        assert_eq!(refusal_of(&["--policy", "best"], "1\n"), ("unknown_policy".to_owned(), Some(1)));
        assert_eq!(refusal_of(&[], "one\n"), ("wrong_key_type".to_owned(), Some(1)));
        assert_eq!(refusal_of(&[], &"1\n".repeat(100_001)), ("out_of_range".to_owned(), Some(1)));
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
fn no_stream_mixes_versions() {
    let cluster = started(&["--processes", "--nodes", "2", "--groups", "2"]);
    let runtime = runtime();
    runtime.block_on(async {
        let router = connect(&cluster).await;
        let options = patient();
        for version in 2..5 {
            let (mut stream, seen) = begun(&router, "people", ASKED, PEOPLE, &options).await;
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
        for plan in [ComputeBuilder::new(&router, "pages"), ComputeBuilder::new(&session, "pages")] {
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
