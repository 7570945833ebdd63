//! The command-line contract against a real cluster: shapes, codes, exit codes, the ready file.

mod lives;
mod loads;

use crate::support;
use serde_json::{Value, json};
use std::fs;
use support::{
    cluster::{Cluster, run_lines, signal, text},
    reference::Reference,
};

fn village(arguments: &[&str]) -> Cluster {
    let cluster = Cluster::start(arguments);
    let reference = Reference::open("kith-village").expect("it comes with the project");
    let load = reference.load_arguments();
    cluster.must(&load.iter().map(String::as_str).collect::<Vec<_>>());
    cluster
}

fn one(cluster: &Cluster, request: Value) -> Value {
    cluster.run(&[request], 1).0.remove(0)
}

#[test]
fn answers_have_the_fields_of_the_contract() {
    let cluster = village(&[]);
    let network = one(
        &cluster,
        json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "ids", "profile": true}),
    );
    let fields: Vec<&String> = network.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["degree", "first", "fof", "id", "n2", "net", "profile", "second"]);
    assert_eq!(network["first"].as_array().expect("ids").len() as u64, network["degree"]);
    assert_eq!(network["second"].as_array().expect("ids").len() as u64, network["n2"]);
    for field in ["requests", "groups", "nodes"] {
        assert!(network["profile"][field].is_u64(), "{field} in {}", network["profile"]);
    }
    let entities =
        one(&cluster, json!({"op": "entities", "graph": "kith-village", "id": 9043, "kind": "region"}));
    let region = entities["entities"][0].clone();
    let members =
        one(&cluster, json!({"op": "members", "graph": "kith-village", "kind": "region", "entity": region}));
    assert!(members["ids"].as_array().expect("ids").contains(&json!(9043)), "{members}");
    let suggest = one(&cluster, json!({"op": "suggest", "graph": "kith-village", "id": 9043, "k": 3}));
    let counts: Vec<u64> = suggest["suggestions"]
        .as_array()
        .expect("pairs")
        .iter()
        .map(|pair| pair[1].as_u64().expect("a count"))
        .collect();
    assert!(counts.len() == 3 && counts.is_sorted_by(|a, b| a >= b), "{suggest}");
}

#[test]
fn a_list_is_asked_of_the_nodes_once_and_again_where_a_line_says_so() {
    // Room for a list and not for all: then none is fetched before somebody asks.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("kith.toml");
    fs::write(&config, "[cache]\nlist-bytes = 524288\n").expect("written");
    let cluster = village(&["--config", config.to_str().expect("UTF-8")]);
    let ask = |cache: &str| {
        let request = json!({"op": "connections", "graph": "kith-village", "id": 9043, "profile": true, "cache": cache});
        let answer = one(&cluster, request);
        (answer["profile"]["requests"].as_u64().expect("a number"), answer["ids"].clone())
    };
    let (requests, ids) = ask("use");
    assert_eq!(requests, 1);
    for (cache, requests) in [("use", 0), ("bypass", 1), ("refresh", 1), ("use", 0)] {
        assert_eq!(ask(cache), (requests, ids.clone()), "{cache}");
    }
}

#[test]
fn a_failed_line_is_reported_and_the_rest_goes_on() {
    let cluster = village(&[]);
    let good = json!({"op": "connections", "graph": "kith-village", "id": 9043});
    let requests = [
        good.clone(),
        json!({"op": "connections", "graph": "kith-village", "id": 1}),
        json!({"op": "connections", "graph": "hamlet", "id": 9043}),
        json!({"op": "entities", "graph": "kith-village", "id": 9043, "kind": "guild"}),
        json!({"op": "distance", "graph": "kith-village", "id": 9043, "to": [1007, 1]}),
        json!({"op": "connections", "graph": "kith-village", "id": 9043, "policy": "magic"}),
        json!({"op": "reticulate", "graph": "kith-village"}),
        json!({"op": "path", "graph": "kith-village", "id": 9043, "to": 1007, "max": 7}),
        json!({"op": "connections", "graph": "kith-village", "id": 9043, "colour": "red"}),
        good,
    ];
    let (answers, exit) = cluster.run(&requests, 4);
    let codes: Vec<&str> =
        answers.iter().map(|answer| answer["error"]["code"].as_str().unwrap_or("ok")).collect();
    assert_eq!(
        codes,
        [
            "ok",
            "member_not_found",
            "unknown_graph",
            "unknown_kind",
            "member_not_found",
            "unknown_policy",
            "unsupported_operation",
            "out_of_range",
            "bad_request",
            "ok"
        ]
    );
    assert_eq!(exit, 3);
    assert!(answers[1]["error"]["help"].as_str().is_some_and(|help| !help.is_empty()));
}

#[test]
fn losing_every_replica_fails_or_is_reported_as_partial() {
    let cluster = village(&["--processes", "--groups", "1", "--nodes", "2"]);
    let pid = cluster.node_pids(0)[0];
    signal(pid, "STOP");
    let ask = |extra: Value| {
        let mut request = json!({"op": "network", "graph": "kith-village", "id": 9043, "cache": "bypass", "deadline_ms": 3000});
        request.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        request
    };
    // The first degree of some members lies on the node that still answers.
    let ids = [9043u64, 7739, 1007, 1005, 10000, 8323];
    let whole: Vec<Value> = ids.iter().map(|id| ask(json!({"id": id}))).collect();
    let (answers, exit) = cluster.run(&whole, 6);
    assert_eq!(exit, 3);
    for answer in &answers {
        let code = answer["error"]["code"].as_str().expect("an error");
        assert!(["partitions_unavailable", "deadline_exceeded"].contains(&code), "{answer}");
    }
    let partial: Vec<Value> = ids.iter().map(|id| ask(json!({"id": id, "partial": true}))).collect();
    let (answers, _) = cluster.run(&partial, 6);
    signal(pid, "CONT");
    let incomplete = answers.iter().filter(|answer| answer["complete"] == false);
    let named = incomplete
        .filter(|answer| answer["missing_partitions"].as_array().is_some_and(|list| !list.is_empty()));
    assert!(0 < named.count(), "{answers:?}");
}

#[test]
fn recorded_queries_can_be_replayed_and_slow_ones_are_logged_with_their_plan() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (record, config) = (folder.path().join("queries.jsonl"), folder.path().join("router.toml"));
    let data = folder.path().join("data").display().to_string();
    fs::write(&config, format!("record = {record:?}\n[slow-log]\nthreshold-ms = 0\n")).expect("written");
    let cluster = village(&[
        "--processes",
        "--nodes",
        "1",
        "--data",
        &data,
        "--config",
        config.to_str().expect("UTF-8"),
    ]);
    let graph = "kith-village";
    let requests = [
        json!({"op": "connections", "graph": graph, "id": 9043, "fan_out": "groups=2", "policy": "set-cover"}),
        json!({"op": "network", "graph": graph, "id": 9043, "return": "size", "cache": "bypass"}),
        json!({"op": "distance", "graph": graph, "id": 9043, "to": [1007, 10000]}),
        json!({"op": "path", "graph": graph, "id": 9043, "to": 10000, "max": 4}),
        json!({"op": "common", "graph": graph, "id": 9043, "to": 7739, "kind": "school", "return": "exists"}),
        json!({"op": "common", "graph": graph, "id": 9043, "to": 7739, "kind": "connection", "return": "ids", "plan": "push"}),
        json!({"op": "entities", "graph": graph, "id": 9043, "kind": "region"}),
        json!({"op": "suggest", "graph": graph, "id": 9043, "k": 3, "workflow": "background", "direction": "both"}),
    ];
    let (answers, exit) = cluster.run(&requests, 1);
    assert_eq!(exit, 0, "{answers:?}");
    let mut cluster = cluster;
    let lines = || fs::read_to_string(&record).unwrap_or_default();
    cluster.wait_until("the record is written", |_| lines().lines().count() == requests.len());
    let recorded: Vec<Value> =
        lines().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(cluster.run(&recorded, 1), (answers, 0), "the record asks the same");
    let log = fs::read_to_string(folder.path().join("data/router-000.log")).expect("the router's log");
    let slow =
        log.lines().find(|line| line.contains("kith::slow_query") && line.contains("\"op\":\"network\""));
    let slow = slow.unwrap_or_else(|| panic!("no slow query in\n{log}"));
    assert!(slow.contains("\"rounds\":[{") && slow.contains("\"service_us\""), "{slow}");
}

#[test]
fn a_deadline_is_kept_while_nobody_answers() {
    let cluster = village(&["--processes", "--groups", "1", "--nodes", "1"]);
    let pid = cluster.node_pids(0)[0];
    signal(pid, "STOP");
    let request = json!({"op": "connections", "graph": "kith-village", "id": 9043, "deadline_ms": 2000, "cache": "bypass"});
    let answer = one(&cluster, request);
    signal(pid, "CONT");
    // By then its node is known to be silent: more time would not help, and the answer says so.
    assert_eq!(answer["error"]["code"], "partitions_unavailable", "{answer}");
}

#[test]
fn a_frozen_router_costs_no_query_and_no_deadline() {
    let cluster = village(&["--processes", "--routers", "2", "--nodes", "1"]);
    let ready = cluster.ready();
    let (frozen, well) = (&ready["routers"][0], &ready["routers"][1]);
    let (frozen_addr, well_addr) =
        (frozen["addr"].as_str().expect("addr"), well["addr"].as_str().expect("addr"));
    signal(frozen["pid"].as_u64().expect("a pid") as u32, "STOP");
    let ask = |router: &str| {
        let arguments =
            ["graph", "network-size", "9043", "-g", "kith-village", "-o", "json", "--router", router];
        support::cluster::kith(&arguments).output().expect("kith runs")
    };
    let both = ask(&format!("{frozen_addr},{well_addr}"));
    let alone = ask(frozen_addr);
    // Members that the frozen router owns are served by the other one.
    let owned = [9043u64, 7739, 1007, 1005, 10000, 8323, 4005, 5386];
    let lines: String = owned
        .iter()
        .map(|id| {
            json!({"op": "network", "graph": "kith-village", "id": id, "return": "size"}).to_string() + "\n"
        })
        .collect();
    let input = tempfile::NamedTempFile::new().expect("a file");
    fs::write(input.path(), lines).expect("written");
    let path = input.path().to_str().expect("UTF-8");
    let run =
        support::cluster::kith(&["run", "--input", path, "--router", well_addr]).output().expect("kith runs");
    signal(frozen["pid"].as_u64().expect("a pid") as u32, "CONT");
    assert!(both.status.success() && run.status.success(), "{}\n{}", text(&both), text(&run));
    assert_eq!(alone.status.code(), Some(1), "{}", text(&alone));
    assert!(String::from_utf8_lossy(&alone.stderr).contains("error[unreachable]"), "{}", text(&alone));
}

#[test]
fn a_router_that_dies_under_queries_costs_none_while_another_is_named() {
    let cluster = village(&["--processes", "--routers", "2", "--nodes", "1"]);
    let ready = cluster.ready();
    let (first, second) = (&ready["routers"][0], &ready["routers"][1]);
    let addr = |router: &Value| router["addr"].as_str().expect("an address").to_owned();
    let request = json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"});
    let requests = vec![request; 2_000];
    let run = |routers: &str| {
        let arguments = ["run", "--input", "-", "--concurrency", "16", "--router", routers];
        support::cluster::kith(&arguments)
    };
    // While it stands still, the supervisor starts nobody again: the dead stay dead.
    signal(cluster.pid(), "STOP");
    let (answers, exit) =
        run_lines(run(&format!("{},{}", addr(first), addr(second))), &requests, 500, || {
            signal(first["pid"].as_u64().expect("a pid") as u32, "KILL");
        });
    // With nobody else to ask, the error names who is gone.
    let (alone, alone_exit) = run_lines(run(&addr(second)), &requests, 500, || {
        signal(second["pid"].as_u64().expect("a pid") as u32, "KILL");
    });
    signal(cluster.pid(), "CONT");
    let wrong: Vec<&Value> = answers.iter().filter(|answer| answer["net"] != 4842).collect();
    assert!(wrong.is_empty() && exit == 0, "{} of {}, as {}", wrong.len(), answers.len(), wrong[0]);
    let last = alone.last().expect("an answer a line");
    assert_eq!((last["error"]["code"].as_str(), alone_exit), (Some("unreachable"), 3), "{last}");
}

#[test]
fn reciprocal_members_are_those_of_loaded_and_of_live_graphs() {
    let cluster = Cluster::start(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let follows = [(1, 2), (2, 1), (1, 3), (3, 1), (1, 4), (5, 1)];
    let rows: String = follows.iter().map(|(from, to)| format!("{from},{to}\n")).collect();
    let rows = file("follows.csv", &format!("src,dst\n{rows}"));
    cluster.must(&["load", "graph", &rows, "--graph", "loaded", "--edge-type", "follows", "--directed"]);
    let types = "[object.person]\n[association.follows]\ninverse = \"followed_by\"\n\
                 [association.friend]\nsymmetric = true\n[association.rates]\n";
    cluster.must(&["schema", "apply", &file("types.toml", types), "--graph", "live"]);
    let add = |kind: &str, from: u64, to: u64| json!({"op": "assoc_add", "graph": "live", "id1": from, "type": kind, "id2": to});
    let mut writes: Vec<Value> = follows.iter().map(|&(from, to)| add("follows", from, to)).collect();
    writes.extend([add("friend", 1, 9), add("rates", 1, 9)]);
    let (written, exit) = cluster.run(&writes, 1);
    assert_eq!(exit, 0, "{written:?}");

    let ask = |graph: &str, more: Value| {
        let mut line = json!({"op": "reciprocal", "graph": graph, "id": 1, "edge_type": "follows"});
        line.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        if graph == "live" {
            line["critical"] = json!(true);
        }
        one(&cluster, line)
    };
    for graph in ["loaded", "live"] {
        assert_eq!(ask(graph, json!({})), json!({"ids": [2, 3], "truncated": false}), "{graph}");
        assert_eq!(ask(graph, json!({"limit": 1})), json!({"ids": [2], "truncated": true}), "{graph}");
        assert_eq!(ask(graph, json!({"limit": 2})), json!({"ids": [2, 3], "truncated": false}), "{graph}");
        assert_eq!(ask(graph, json!({"id": 5})), json!({"ids": [], "truncated": false}), "{graph}");
        assert_eq!(ask(graph, json!({"id": 77}))["error"]["code"], "member_not_found", "{graph}");
        assert_eq!(ask(graph, json!({"limit": 0}))["error"]["code"], "out_of_range", "{graph}");
        assert_eq!(ask(graph, json!({"after": 2}))["error"]["code"], "bad_request", "{graph}");
    }
    let inverse = json!({"edge_type": "followed_by"});
    assert_eq!(ask("live", inverse), json!({"ids": [2, 3], "truncated": false}));
    let symmetric = json!({"edge_type": "friend"});
    assert_eq!(ask("live", symmetric), json!({"ids": [9], "truncated": false}));
    assert_eq!(ask("live", json!({"edge_type": "rates"}))["error"]["code"], "direction_not_kept");

    let command = |verb: &str, more: &[&str]| {
        cluster.must(&[&[verb, "reciprocal", "1", "--graph", "loaded", "--limit", "1"], more].concat())
    };
    for transport in ["framed", "grpc"] {
        let json = command("graph", &["--transport", transport, "-o", "json"]);
        assert_eq!(json, "{\"ids\":[2],\"truncated\":true}\n");
    }
    assert!(command("graph", &[]).contains("--limit"), "the table says that there are more");
    assert!(command("explain", &[]).contains("intersection of both directions"));
    assert!(command("graph", &["--profile"]).contains("intersection of both directions"));
    let asked = cluster.metric("kith_router_query_seconds_count{op=\"reciprocal\"}").unwrap_or_default();
    assert!(10.0 <= asked, "{asked} queries were counted");
}
