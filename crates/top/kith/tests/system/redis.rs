//! Redis clients against a real cluster: redis-cli, redis-py and redis-benchmark as they are, contents, faults, metrics.

use crate::support;
use kith_engine::{KeyType, ValueType};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, io::Write, process::Stdio};
use support::{
    cluster::{Cluster, signal},
    redis::Redis,
    values::{create, push},
};

const WORDS: u64 = 3_000;
const PEOPLE: u64 = 500;

fn word(key: u64) -> String {
    // What redis-benchmark asks for with `-r`: `key:000000000042` is this key of the store `key`.
    format!("{key:012}")
}

fn value(key: u64) -> String {
    if key == 7 { String::new() } else { format!("value {key}") }
}

/// Texts by text in `key`, bytes by id in `raw`, records by id in `people`.
fn started(arguments: &[&str]) -> Cluster {
    let cluster = Cluster::start(arguments);
    create(&cluster, "key", KeyType::String, ValueType::Text);
    let rows = (0..WORDS).map(|key| (word(key).into_bytes(), value(key).into_bytes()));
    push(&cluster, "key", (KeyType::String, ValueType::Text), 1, rows);
    create(&cluster, "raw", KeyType::Id, ValueType::Bytes);
    let rows = (0..WORDS).map(|key| (key.to_le_bytes().to_vec(), vec![0xff, b'\r', b'\n', key as u8]));
    push(&cluster, "raw", (KeyType::Id, ValueType::Bytes), 1, rows);
    cluster
}

fn push_people(cluster: &Cluster) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("people.jsonl");
    let rows = (0..PEOPLE).map(|id| json!({"id": id, "name": format!("member \"{id}\""), "score": id as f64 / 3.0, "tags": ["a", "é"]}));
    fs::write(&file, rows.map(|row| format!("{row}\n")).collect::<String>()).expect("written");
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "record", "--key-field", "id"]);
    cluster.must(&["store", "push", "people", file.to_str().expect("UTF-8")]);
}

/// The values of keys as `kith mget` has them.
fn mget(cluster: &Cluster, store: &str, keys: &[String]) -> Vec<Value> {
    let mut command = cluster.kith(&["mget", store, "--keys-from", "-", "-o", "json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kith runs");
    let mut stdin = child.stdin.take().expect("its input is piped");
    let lines = keys.iter().map(|key| format!("{key}\n")).collect::<String>();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("it ends").expect("it reads");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = lines.lines().take(keys.len());
    lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON")["value"].clone()).collect()
}

#[test]
fn what_redis_clients_read_is_what_mget_reads() {
    let cluster = started(&["--groups", "2", "--nodes", "2"]);
    push_people(&cluster);
    let redis = Redis::of_router(&cluster.ready());
    let texts: Vec<String> = (0..WORDS + 50).map(word).collect();
    let people: Vec<String> = (0..PEOPLE + 50).map(|id| id.to_string()).collect();
    // All keys in one command, one store or two, and one by one in a pipeline: the same, repeats included.
    let script = "
both = client.mget(['key:' + key for key in keys['texts']] + ['people:' + key for key in keys['people']])
texts = client.mget(['key:' + key for key in keys['texts']])
pipeline = client.pipeline(transaction=False)
for key in keys['texts'][:1000]:
    pipeline.get('key:' + key)
single = pipeline.execute()
assert single == texts[:1000] and both[:len(texts)] == texts
assert client.get('raw:5') == b'\\xff\\r\\n\\x05', client.get('raw:5')
assert client.exists('raw:1', 'raw:1', 'raw:999999', 'people:3') == 3
assert client.strlen('key:' + keys['texts'][12]) == 8
result = [None if value is None else value.decode() for value in both]
";
    let read = redis.python(script, &json!({"texts": texts, "people": people}));
    let read = read.as_array().expect("a list");
    assert_eq!(read[..texts.len()], mget(&cluster, "key", &texts));
    let records = read[texts.len()..].iter().map(|text| match text.as_str() {
        Some(text) => serde_json::from_str(text).expect("a record is JSON text"),
        None => Value::Null,
    });
    assert_eq!(records.collect::<Vec<Value>>(), mget(&cluster, "people", &people));
}

#[test]
fn redis_cli_is_answered_as_by_redis() {
    let cluster = started(&["--groups", "1", "--nodes", "2"]);
    let redis = Redis::of_router(&cluster.ready());
    assert_eq!(redis.cli(&["get", "key:000000000042"]), "value 42\n");
    assert_eq!(redis.cli(&["--no-raw", "get", "key:nothing"]), "(nil)\n");
    assert_eq!(redis.cli(&["--no-raw", "get", "key:000000000007"]), "\"\"\n");
    assert_eq!(
        redis.cli(&["-3", "--no-raw", "mget", "key:000000000001", "raw:99999"]),
        "1) \"value 1\"\n2) (nil)\n"
    );
    assert_eq!(redis.cli(&["ping"]), "PONG\n");
    let hello = redis.cli(&["-3", "hello"]);
    assert!(hello.starts_with("server kith\nversion "), "{hello}");
    assert!(redis.cli(&["info", "replication"]).contains("role:master"));
    assert_eq!(redis.cli(&["--no-auth-warning", "--user", "default", "--pass", "x", "ping"]), "PONG\n");
    assert_eq!(redis.cli(&["-3", "client", "tracking", "on"]), "OK\n");
    // What redis-py makes of all sections.
    let info = redis.python("result = client.info()", &json!(null));
    assert!(
        info["role"] == "master" && info["redis_version"].is_string() && info["key"] == "version=1",
        "{info}"
    );
    assert!(redis.cli(&["info", "stores"]).contains("key:version=1"));
    assert!(redis.cli(&["command", "docs", "mget"]).contains("the values of keys of any stores"));
    let refused = redis.cli(&["set", "key:1", "x"]);
    assert!(refused.contains("stores are read-only") && refused.contains("kith store push"), "{refused}");
    let unknown = redis.cli(&["get", "nowhere:1"]);
    assert!(
        unknown.starts_with("ERR unknown_store: there is no store \"nowhere\" (stores of values: key, raw)"),
        "{unknown}"
    );
    let auth = redis.cli(&["auth", "secret"]);
    assert!(auth.contains("without any password configured"), "{auth}");
    // Further slots, databases, modules: what is not there is said.
    assert!(redis.cli(&["select", "1"]).contains("DB index is out of range"));
    assert!(redis.cli(&["-n", "0", "get", "key:000000000001"]).contains("value 1"));
    let pushed = cluster.must(&["store", "list", "-o", "json"]);
    assert!(pushed.contains("\"key\""), "{pushed}");
}

#[test]
fn redis_benchmark_runs_unchanged_and_is_counted() {
    let cluster = started(&["--processes", "--groups", "2", "--nodes", "2"]);
    let redis = Redis::of_router(&cluster.ready());
    let output = redis.benchmark(&["-t", "ping,get", "-n", "5000", "-c", "50", "-r", "3000", "-q"]);
    for test in ["PING_INLINE", "PING_MBULK", "GET"] {
        assert!(output.contains(&format!("{test}: ")), "{output}");
    }
    redis.benchmark(&["-t", "get", "-n", "5000", "-c", "20", "-P", "50", "-r", "3000", "-q"]);
    redis.benchmark(&[
        "-n",
        "200",
        "-r",
        "3000",
        "-q",
        "MGET",
        "key:__rand_int__",
        "key:__rand_int__",
        "raw:1",
    ]);
    let command = |name: &str| {
        cluster
            .metric(&format!("kith_resp_commands_total{{role=\"router\",command=\"{name}\"}}"))
            .unwrap_or(0.0)
    };
    let counted = [command("get"), command("mget"), command("ping"), command("unknown")];
    assert_eq!(counted, [10_000.0, 200.0, 10_000.0, 0.0]);
    let fan_outs = cluster.metric("kith_router_query_seconds_count{op=\"resp\"}").expect("they are counted");
    assert!(fan_outs < command("get") / 2.0, "{fan_outs} fan-outs for {} commands", command("get"));
    let connections =
        cluster.metric("kith_resp_connections_total{role=\"router\"}").expect("they are counted");
    assert!(100.0 <= connections, "{connections}");
}

#[test]
fn a_node_answers_for_what_it_holds_and_says_who_answers_for_the_rest() {
    let cluster = started(&["--groups", "1", "--nodes", "2"]);
    push_people(&cluster);
    let ready = cluster.ready();
    let router = ready["resp"].as_str().expect("an address");
    let mut held = [0, 0];
    for key in 0..60 {
        let asked =
            [0, 1].map(|node| Redis::of_node(&ready, node).cli(&["get", &format!("key:{}", word(key))]));
        let (mine, other) = match asked[0].starts_with("ERR not_owner") {
            true => (1, 0),
            false => (0, 1),
        };
        held[mine] += 1;
        assert_eq!(asked[mine], format!("{}\n", value(key)));
        let refusal = format!("does not hold the partition of this key (ask a router: {router})");
        assert!(asked[other].contains(&refusal), "{}", asked[other]);
    }
    assert!(held.iter().all(|held| 10 < *held), "{held:?}");
    let people = [0, 1].map(|node| Redis::of_node(&ready, node).cli(&["get", "people:3"]));
    assert!(people.iter().any(|text| text.contains(r#""name":"member \"3\"""#)), "{people:?}");
    let script = "
try:
    client.mget(['key:' + key for key in keys])
except redis.ResponseError as error:
    result = str(error)
";
    let words: Vec<String> = (0..60).map(word).collect();
    let reply = Redis::of_node(&ready, 0).python(script, &json!(words));
    assert!(reply.as_str().expect("never a part of an answer").starts_with("not_owner: "), "{reply}");
}

#[test]
fn keys_that_cannot_be_read_are_errors_and_never_nil() {
    let cluster = started(&["--processes", "--groups", "1", "--nodes", "2"]);
    let redis = Redis::of_router(&cluster.ready());
    let frozen = cluster.node_pids(0)[0];
    signal(frozen, "STOP");
    let script = "
result = {}
pipeline = client.pipeline(transaction=False)
for key in keys:
    pipeline.get('key:' + key)
for key, value in zip(keys, pipeline.execute(raise_on_error=False)):
    result[key] = str(value) if isinstance(value, Exception) else value.decode()
";
    let words: Vec<String> = (100..140).map(word).collect();
    let read = redis.python(script, &json!(words));
    let batch = redis.cli(&[
        "--no-raw",
        "mget",
        "key:000000000100",
        "key:000000000101",
        "key:000000000102",
        "key:000000000103",
        "key:000000000104",
        "key:000000000105",
    ]);
    signal(frozen, "CONT");
    let read: BTreeMap<String, String> = serde_json::from_value(read).expect("texts");
    let failed =
        read.values().filter(|text| text.starts_with("partitions_unavailable: no replica of partition "));
    let failed = failed.count();
    let found = (100..140).filter(|key| read[&word(*key)] == value(*key)).count();
    assert_eq!((found + failed, read.len()), (40, 40), "{read:?}");
    assert!(0 < failed && 0 < found, "{read:?}");
    assert!(batch.starts_with("(error) ERR partitions_unavailable"), "{batch}");
}

#[test]
fn bytes_that_are_none_close_their_connection_and_no_other() {
    let cluster = started(&["--groups", "1", "--nodes", "1"]);
    let redis = Redis::of_router(&cluster.ready());
    let mut other = redis.connect();
    other.send(b"PING\r\n");
    for (bytes, expected) in [
        (&b"*1\r\n:1\r\n"[..], "expected '$', got ':'"),
        (b"*2000000000\r\n", "invalid multibulk length"),
        (b"*1\r\n$536870912\r\n", "invalid bulk length"),
    ] {
        let mut raw = redis.connect();
        raw.send(b"PING\r\n");
        raw.send(bytes);
        let replies = String::from_utf8(raw.rest()).expect("text");
        assert_eq!(replies, format!("+PONG\r\n-ERR Protocol error: {expected}\r\n"));
    }
    // Cut in the middle of a command: nothing is answered, nothing hangs.
    let mut raw = redis.connect();
    raw.send(b"*2\r\n$3\r\nGET\r\n$16\r\nkey:0000");
    assert_eq!(raw.end(), b"");
    other.send(b"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000042\r\n");
    assert_eq!(other.receive(21), b"+PONG\r\n$8\r\nvalue 42\r\n");
    assert_eq!(cluster.metric("kith_resp_malformed_connections_total{role=\"router\"}"), Some(3.0));
    // The end of the cluster is the end of the connection, in order.
    drop(cluster);
    assert_eq!(other.rest(), b"");
}

#[test]
fn a_router_that_comes_back_serves_redis_clients_where_it_did() {
    let mut cluster = started(&["--processes", "--groups", "1", "--nodes", "1"]);
    let ready = cluster.ready();
    let redis = Redis::of_router(&ready);
    signal(ready["routers"][0]["pid"].as_u64().expect("a pid") as u32, "KILL");
    cluster.wait_until("the router is back", |cluster| {
        cluster.ready()["routers"][0]["pid"] != ready["routers"][0]["pid"]
    });
    assert_eq!(cluster.ready()["resp"], ready["resp"]);
    assert_eq!(redis.cli(&["get", "key:000000000042"]), "value 42\n");
}
