//! The command-line contract against a real cluster: shapes, codes, exit codes, the ready file.

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};
use support::{
    cluster::{Cluster, is_alive, run_lines, signal, text},
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
fn the_ready_file_names_distinct_processes_and_follows_them() {
    let mut cluster = Cluster::start(&["--processes", "--routers", "2", "--nodes", "2"]);
    let ready = cluster.ready();
    let fields: Vec<&String> = ready.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["data", "http", "nodes", "pid", "resp", "router", "routers"]);
    assert_eq!(ready["routers"][0]["addr"], ready["router"]);
    assert_eq!(ready["routers"][0]["resp"], ready["resp"]);
    let mut pids: Vec<u64> = [&ready["nodes"], &ready["routers"]]
        .iter()
        .flat_map(|list| {
            list.as_array().expect("a list").iter().map(|entry| entry["pid"].as_u64().expect("a pid"))
        })
        .collect();
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 4 + 2);

    let victim = &ready["nodes"][1];
    signal(victim["pid"].as_u64().expect("a pid") as u32, "KILL");
    let (before, addr) = (victim["pid"].clone(), victim["addr"].clone());
    cluster.wait_until("the node is back", |cluster| cluster.ready()["nodes"][1]["pid"] != before);
    assert_eq!(cluster.ready()["nodes"][1]["addr"], addr, "a restarted node keeps its address");
}

#[test]
fn children_end_with_their_supervisor_however_it_ends() {
    let mut cluster = Cluster::start(&["--processes", "--nodes", "1"]);
    let pids: Vec<u32> = [cluster.node_pids(0), cluster.node_pids(1)].concat();
    signal(cluster.pid(), "KILL");
    cluster.wait_until("the children are gone", |_| !pids.iter().any(|pid| is_alive(*pid)));
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
fn a_list_is_asked_of_the_nodes_once_and_again_where_told() {
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
fn a_failed_line_is_told_and_the_rest_goes_on() {
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
fn losing_every_replica_fails_or_is_told_as_partial() {
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
    let told = answers.iter().filter(|answer| answer["complete"] == false);
    let told =
        told.filter(|answer| answer["missing_partitions"].as_array().is_some_and(|list| !list.is_empty()));
    assert!(0 < told.count(), "{answers:?}");
}

#[test]
fn a_load_replaces_its_edge_type_and_leaves_the_others() {
    let cluster = village(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let follows = folder.path().join("follows.tsv");
    fs::write(&follows, "src\tdst\tsince\n9043\t1007\t5\n9043\t42\t9\n42\t42\t1\n9043\t1007\t7\n")
        .expect("written");
    let follows = follows.to_str().expect("UTF-8");
    let load = ["load", "graph", follows, "--graph", "kith-village", "--edge-type", "follows"];
    let load = [&load[..], &["--directed", "--columns", "since:time", "-o", "json"]].concat();
    let summary: Value = serde_json::from_str(&cluster.must(&load)).expect("JSON");
    let component = &summary["components"][0];
    assert_eq!(
        (&component["edges"], &component["self_loops"], &component["duplicates"]),
        (&json!(2), &json!(1), &json!(1)),
        "{summary}"
    );
    let follows = |direction: &str, id: u64| {
        one(
            &cluster,
            json!({"op": "connections", "graph": "kith-village", "id": id, "edge_type": "follows", "direction": direction}),
        )
    };
    assert_eq!(follows("out", 9043)["ids"], json!([42, 1007]));
    assert_eq!(follows("in", 42)["ids"], json!([9043]));
    assert_eq!(follows("both", 42)["ids"], json!([9043]));
    let degree =
        one(&cluster, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(degree["degree"], 666, "the first edge type is untouched");
    let unasked = cluster.kith(&["graph", "drop", "kith-village"]).stdin(Stdio::null()).output();
    let unasked = unasked.expect("kith runs");
    assert_eq!(unasked.status.code(), Some(2), "{}", text(&unasked));
    assert!(cluster.must(&["graph", "list"]).contains("kith-village"), "nothing was dropped");
    cluster.must(&["graph", "drop", "kith-village", "--yes"]);
    let gone = one(&cluster, json!({"op": "connections", "graph": "kith-village", "id": 9043}));
    assert_eq!(gone["error"]["code"], "unknown_graph");
}

#[test]
fn bad_input_loads_nothing() {
    let cluster = village(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        path.display().to_string()
    };
    let gz = fs::read(support::root().join("testdata/kith-village/edges.csv.gz")).expect("it is there");
    let files = [
        file("negative.csv", b"src,dst\n1,2\n-3,4\n"),
        file("words.csv", b"src,dst\n1,two\n"),
        file("columns.csv", b"src,dst\n1\n"),
        file("large.csv", b"src,dst\n1,18446744073709551616\n"),
        file("half.csv.gz", &gz[..gz.len() / 2]),
        folder.path().join("absent.csv").display().to_string(),
    ];
    for path in &files {
        let output =
            cluster.kith(&["load", "graph", path, "--graph", "kith-village"]).output().expect("kith runs");
        assert_eq!(output.status.code(), Some(1), "{path}: {}", text(&output));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("error[") && stderr.contains("help:"), "{path}: {stderr}");
    }
    let degree =
        one(&cluster, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(degree["degree"], 666, "the graph before still serves");
}

#[test]
fn a_load_that_is_killed_leaves_the_old_state_and_can_run_again() {
    let cluster = village(&[]);
    let load = Reference::open("kith-village").expect("it comes with the project").load_arguments();
    let load: Vec<&str> = load.iter().map(String::as_str).collect();
    for pause_ms in [5, 30, 80, 160] {
        let mut child = cluster
            .kith(&load)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("kith runs");
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        let _ = child.kill();
        child.wait().expect("it ended");
        let size = one(
            &cluster,
            json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size", "cache": "bypass"}),
        );
        assert_eq!(size["net"], 4842, "{size}");
    }
    cluster.must(&load);
    let size = one(&cluster, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(size["net"], 4842, "{size}");
}

#[test]
fn reloading_under_load_never_fails_or_mixes_versions() {
    let cluster = Cluster::start(&["--processes", "--nodes", "2"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Two versions of one graph: a star of 40 or of 60. Any mixture has another size.
    let star = |rays: u64| {
        let lines: String =
            (1..=rays).flat_map(|ray| [format!("0,{ray}\n"), format!("{ray},{}\n", 1_000 + ray)]).collect();
        let path = folder.path().join(format!("star{rays}.csv"));
        fs::write(&path, format!("src,dst\n{lines}")).expect("written");
        path.display().to_string()
    };
    let (small, large) = (star(40), star(60));
    let load = |file: &str| cluster.must(&["load", "graph", file, "--graph", "star"]);
    load(&small);
    let request = json!({"op": "network", "graph": "star", "id": 0, "return": "size", "fan_out": "max"});
    let requests: Vec<Value> = (0..400)
        .map(|index| {
            let mut request = request.clone();
            request["cache"] = json!(if index % 2 == 0 { "use" } else { "bypass" });
            request
        })
        .collect();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| (0..3).flat_map(|_| cluster.run(&requests, 8).0).collect::<Vec<Value>>());
        for file in [&large, &small, &large] {
            load(file);
        }
        for answer in asking.join().expect("it ends") {
            let sizes = (answer["degree"].as_u64(), answer["n2"].as_u64());
            assert!(sizes == (Some(40), Some(40)) || sizes == (Some(60), Some(60)), "{answer}");
        }
    });
}

/// Starts a cluster that must not start, with arguments of `kith dev`; what it says on standard error.
fn refused_to_start(arguments: &[&str]) -> String {
    let output =
        support::cluster::dev(arguments).stdin(std::process::Stdio::null()).output().expect("kith runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn data_is_kept_across_restarts_and_the_directory_has_one_owner() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data").display().to_string();
    let first = village(&["--data", &data]);
    let ready = folder.path().join("r.json").display().to_string();
    let second = refused_to_start(&["--data", &data, "--ready-file", &ready]);
    assert!(second.contains("error[data_directory_in_use]"), "{second}");
    drop(first);
    let again = Cluster::start(&["--data", &data, "--processes"]);
    let size = one(&again, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(size["net"], 4842, "{size}");
    drop(again);
    let other_shape = refused_to_start(&["--data", &data, "--groups", "5"]);
    assert!(other_shape.contains("error[topology_mismatch]"), "{other_shape}");
    fs::write(folder.path().join("data/kith.json"), r#"{"format":9,"cluster_id":"x","owner":"supervisor"}"#)
        .expect("written");
    let newer = refused_to_start(&["--data", &data]);
    assert!(newer.contains("error[data_directory_format]"), "{newer}");
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
fn a_second_cluster_does_not_take_the_first_ones_ready_file() {
    let cluster = Cluster::start(&["--nodes", "1"]);
    let ready = cluster.ready_file.to_str().expect("UTF-8").to_owned();
    let second = support::cluster::dev(&["--ready-file", &ready]).stdin(std::process::Stdio::null()).output();
    let second = second.expect("kith runs");
    assert!(
        String::from_utf8_lossy(&second.stderr).contains("error[ready_file_in_use]"),
        "{}",
        text(&second)
    );
    assert!(cluster.ready_file.exists());
    cluster.must(&["cluster", "status"]);
}

#[test]
fn a_file_without_an_edge_does_not_empty_an_edge_type() {
    let cluster = village(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, content) in
        [("empty.csv", ""), ("header.csv", "src,dst\n"), ("cr.csv", "src,dst\r1,2\r"), ("loops.csv", "1,1\n")]
    {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        let load = ["load", "graph", path.to_str().expect("UTF-8"), "--graph", "kith-village"];
        let output = cluster.kith(&load).output().expect("kith runs");
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output));
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("error[no_edges]"),
            "{name}: {}",
            text(&output)
        );
    }
    let wrong = folder.path().join("wrong.csv");
    fs::write(&wrong, "a,b,c\nd,e,f\n".repeat(500)).expect("written");
    let wrong = wrong.to_str().expect("UTF-8");
    let lenient = ["--graph", "kith-village", "--no-header", "--max-errors", "100000"];
    for (file, code) in [
        (&[wrong][..], "no_edges"),
        (&["--members", wrong], "no_members"),
        (&["--entities", wrong], "no_entities"),
    ] {
        let output =
            cluster.kith(&[&["load", "graph"], file, &lenient].concat()).output().expect("kith runs");
        assert_eq!(output.status.code(), Some(1), "{code}: {}", text(&output));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            told.contains(&format!("error[{code}]")) && told.contains("1000 of which are wrong"),
            "{told}"
        );
    }
    let degree =
        one(&cluster, json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size"}));
    assert_eq!(degree["degree"], 666, "{degree}");
}

#[test]
fn a_load_names_the_node_it_waits_for() {
    let cluster = village(&["--processes", "--groups", "1", "--nodes", "2"]);
    let frozen = cluster.node_pids(0)[1];
    signal(frozen, "STOP");
    let load = Reference::open("kith-village").expect("it comes with the project").load_arguments();
    let load: Vec<&str> = load.iter().map(String::as_str).chain(["-o", "json"]).collect();
    let mut child =
        cluster.kith(&load).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kith runs");
    let stderr = BufReader::new(child.stderr.take().expect("its errors are piped"));
    let mut lines = stderr.lines().map(|line| line.expect("they are text"));
    // Ends, with nothing found, when the load does.
    let told = lines.find(|line| line.contains("waiting for node 1, which cannot be reached"));
    signal(frozen, "CONT");
    lines.for_each(drop);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && told.is_some(), "{told:?} {}", text(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("progress does not touch the JSON");
    assert!(summary["version"].is_u64(), "{summary}");
}

/// The versions of each component in a cluster's object store.
fn built(store: &Path) -> Vec<String> {
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).expect("a folder").flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let mut names: Vec<String> = folders(store)
        .iter()
        .flat_map(|component| folders(component))
        .map(|version| version.display().to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn a_load_that_cannot_be_published_leaves_no_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let cluster = village(&["--nodes", "1", "--data", data.to_str().expect("UTF-8")]);
    let before = built(&data.join("objects/kith-village"));
    assert!(!before.is_empty());
    // A file where a node wants a folder: it cannot pull what it is told to.
    let component = data.join("node-001/components/kith-village/connection");
    assert!(component.is_dir(), "{}", component.display());
    let aside = data.join("aside");
    fs::rename(&component, &aside).expect("renamed");
    fs::write(&component, "in the way").expect("written");
    let load = Reference::open("kith-village").expect("it comes with the project").load_arguments();
    let load: Vec<&str> = load.iter().map(String::as_str).collect();
    let output = cluster.kith(&load).output().expect("kith runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert_eq!(built(&data.join("objects/kith-village")), before, "{}", text(&output));
    let size =
        json!({"op": "network", "graph": "kith-village", "id": 9043, "return": "size", "cache": "bypass"});
    assert_eq!(one(&cluster, size.clone())["net"], 4842, "the version before serves");
    fs::remove_file(&component).expect("removed");
    fs::rename(&aside, &component).expect("renamed");
    cluster.must(&load);
    assert_eq!(one(&cluster, size)["net"], 4842);
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
    // With nobody else to ask, it is told who is gone.
    let (alone, alone_exit) = run_lines(run(&addr(second)), &requests, 500, || {
        signal(second["pid"].as_u64().expect("a pid") as u32, "KILL");
    });
    signal(cluster.pid(), "CONT");
    let wrong: Vec<&Value> = answers.iter().filter(|answer| answer["net"] != 4842).collect();
    assert!(wrong.is_empty() && exit == 0, "{} of {}, as {}", wrong.len(), answers.len(), wrong[0]);
    let told = alone.last().expect("an answer a line");
    assert_eq!((told["error"]["code"].as_str(), alone_exit), (Some("unreachable"), 3), "{told}");
}
