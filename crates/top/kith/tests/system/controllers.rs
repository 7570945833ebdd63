//! Who decides how many groups take part, on real clusters: controllers that a program brings, controllers that the settings
//! choose by operation, kind and workflow, and limits that a caller sets by kind of round.

#[allow(dead_code, reason = "its `main` is for the command line")]
#[path = "../../../../shell/kith-session/examples/own_controller.rs"]
mod own_controller;

use crate::support;
use serde_json::{Value, json};
use std::{fs, process::Stdio};
use support::{
    cluster::{Cluster, kith, run_lines, text},
    reference::Reference,
};

/// A member with many connections.
const HUB: u64 = 9_043;

/// Three groups of two nodes that serve the village, by routers with these settings.
fn village(settings: &str) -> Cluster {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("kith.toml");
    fs::write(&config, settings).expect("written");
    let config = config.to_str().expect("UTF-8");
    let cluster = Cluster::start(&["--groups", "3", "--nodes", "2", "--config", config]);
    let village = Reference::open("kith-village").expect("it comes with the project");
    cluster.must(&village.load_arguments().iter().map(String::as_str).collect::<Vec<_>>());
    cluster
}

/// A network query about the hub that reaches the nodes.
fn network(options: &Value) -> Value {
    with(json!({"op": "network", "graph": "kith-village", "id": HUB, "return": "size"}), options)
}

fn with(mut request: Value, options: &Value) -> Value {
    let fields = request.as_object_mut().expect("an object");
    fields.extend([("cache".to_owned(), json!("bypass")), ("profile".to_owned(), json!(true))]);
    fields.extend(options.as_object().cloned().unwrap_or_default());
    request
}

/// By kind of round: controller, selector, groups asked for, groups allowed.
type Decided = (String, String, String, u64, u64);

fn decided(profile: &Value) -> Vec<Decided> {
    let rounds = profile["rounds"].as_array().unwrap_or_else(|| panic!("no rounds: {profile}"));
    let word = |round: &Value, field: &str| round[field].as_str().unwrap_or_default().to_owned();
    let number = |round: &Value, field: &str| round[field].as_u64().expect("a number");
    rounds
        .iter()
        .map(|round| {
            (
                word(round, "kind"),
                word(round, "controller"),
                word(round, "selector"),
                number(round, "groups_asked"),
                number(round, "groups_allowed"),
            )
        })
        .collect()
}

fn round(kind: &str, controller: &str, selector: &str, asked: u64, allowed: u64) -> Decided {
    (kind.to_owned(), controller.to_owned(), selector.to_owned(), asked, allowed)
}

#[test]
fn the_example_s_controller_decides_and_plans_and_profiles_name_it() {
    let cluster = village("");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let router = cluster.ready()["router"].as_str().expect("an address").to_owned();
    let rounds =
        runtime.block_on(own_controller::rounds(&router, "kith-village", HUB)).expect("it is answered");
    let by = "by by-keys for network@interactive, which asked for";
    let expected = [
        format!("first degree: 1 keys, 1 groups {by} 1"),
        format!("second-degree union (planned, not run): 666 keys, 3 groups {by} 7"),
        format!("first degree: 1 keys, 1 groups {by} 1"),
        format!("second-degree union: 666 keys, 3 groups {by} 7"),
    ];
    assert_eq!(rounds, expected);
}

#[test]
fn settings_choose_controllers_by_operation_kind_and_workflow_and_the_most_specific_decides() {
    let cluster = village(
        r#"
[session.controllers]
network = "static(2)"
"network:single-key" = "minimum"
"network@background" = "static(3)"
"@background" = "static(2)"
"#,
    );
    let path = json!({"op": "path", "graph": "kith-village", "id": HUB, "to": 10_000});
    let requests = [
        network(&json!({})),
        network(&json!({"workflow": "background"})),
        with(path.clone(), &json!({"workflow": "background"})),
        with(path, &json!({})),
    ];
    let (answers, exit) = cluster.run(&requests, 1);
    assert_eq!(exit, 0, "{answers:?}");
    let single = round("single-key", "minimum", "network:single-key", 1, 1);
    let decided: Vec<Vec<Decided>> = answers.iter().map(|answer| decided(&answer["profile"])).collect();
    assert_eq!(decided[0], [single.clone(), round("sync-union", "static", "network", 2, 2)]);
    assert_eq!(decided[1], [single, round("async-union", "static", "network@background", 3, 3)]);
    for (rounds, controller, selector) in
        [(&decided[2], "static", "@background"), (&decided[3], "minimum", "")]
    {
        assert!(!rounds.is_empty());
        assert!(
            rounds.iter().all(|it| (it.1.as_str(), it.2.as_str()) == (controller, selector)),
            "{rounds:?}"
        );
    }
}

#[test]
fn settings_that_name_what_there_is_not_are_refused_with_what_there_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("kith.toml");
    let ready = folder.path().join("ready.json");
    for (selector, expected) in [
        (
            "netwrk",
            "operations: connections, entities, members, degree, edges, object_get, object_find, assoc_get",
        ),
        ("network:sync", "kinds: single-key, non-union, sync-union"),
        ("network@nightly", "workflows: interactive, background"),
        ("network:sync-union@background", "selects nothing"),
    ] {
        fs::write(&config, format!("[session.controllers]\n{selector:?} = \"static(2)\"\n"))
            .expect("written");
        let mut dev = kith(&["dev", "--end-with-stdin"]);
        dev.arg("--config").arg(&config).arg("--ready-file").arg(&ready);
        let output = dev.arg("--data").arg(folder.path().join("data")).stdin(Stdio::null()).output();
        let output = output.expect("kith runs");
        assert!(
            !output.status.success() && text(&output).contains(expected),
            "{selector}: {}",
            text(&output)
        );
    }
}

#[test]
fn reads_by_key_spread_over_the_groups_that_a_chosen_controller_allows() {
    let cluster = Cluster::start(&["--groups", "3", "--nodes", "1"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = folder.path().join("rows.jsonl");
    let lines: String = (0..300).map(|key| format!("{{\"key\":{key},\"value\":\"v{key}\"}}\n")).collect();
    fs::write(&rows, lines).expect("written");
    cluster.must(&["store", "create", "s", "--key", "id", "--value", "json"]);
    cluster.must(&["store", "push", "s", rows.to_str().expect("UTF-8")]);
    let keys: Vec<u64> = (0..300).collect();
    let request = json!({"op": "mget", "store": "s", "keys": keys, "profile": true});
    let ask = |arguments: &[&str]| {
        let mut run = cluster.kith(&["run", "--input", "-", "--direct"]);
        run.args(arguments);
        let (answers, exit) = run_lines(run, std::slice::from_ref(&request), usize::MAX, || ());
        assert_eq!(exit, 0, "{answers:?}");
        answers[0]["profile"].clone()
    };
    let by_default = ask(&[]);
    assert_eq!(decided(&by_default), [round("non-union", "minimum", "", 1, 1)]);
    assert_eq!(
        (&by_default["groups"], &by_default["rounds"][0]["policy"]),
        (&json!(1), &json!("least-loaded"))
    );
    let chosen = ask(&["--controller", "mget=static(2)", "--controller", "non-union=maximum"]);
    assert_eq!(decided(&chosen), [round("non-union", "static", "mget", 2, 2)]);
    assert_eq!((&chosen["groups"], &chosen["rounds"][0]["policy"]), (&json!(2), &json!("n-groups")));
}

#[test]
fn a_client_chooses_controllers_of_its_own_session_alone() {
    let through_a_router = kith(&["run", "--input", "-", "--controller", "network=static(2)"])
        .stdin(Stdio::null())
        .output()
        .expect("kith runs");
    assert_eq!(through_a_router.status.code(), Some(2), "{}", text(&through_a_router));
    assert!(text(&through_a_router).contains("add --direct"), "{}", text(&through_a_router));
    let unknown = kith(&["run", "--input", "-", "--direct", "--controller", "netwrk=static(2)"]).output();
    let unknown = unknown.expect("kith runs");
    assert!(text(&unknown).contains("operations: connections"), "{}", text(&unknown));
}

#[test]
fn a_caller_limits_groups_by_kind_of_round_and_learns_when_there_are_fewer() {
    let cluster = village("");
    let limits =
        ["sync-union=2", "max,single-key=1", "groups=99"].map(|limit| network(&json!({"fan_out": limit})));
    let (answers, exit) = cluster.run(&limits, 1);
    assert_eq!(exit, 0, "{answers:?}");
    let decided: Vec<Vec<Decided>> = answers.iter().map(|answer| decided(&answer["profile"])).collect();
    let caller = |kind, asked, allowed| round(kind, "the caller", "", asked, allowed);
    assert_eq!(decided[0], [round("single-key", "minimum", "", 1, 1), caller("sync-union", 2, 2)]);
    assert_eq!(decided[1], [caller("single-key", 1, 1), caller("sync-union", 3, 3)]);
    assert_eq!(decided[2], [caller("single-key", 99, 3), caller("sync-union", 99, 3)]);
    let hub = HUB.to_string();
    let note = "3 groups by the caller (99 asked for, but there are no more)";
    let question =
        ["network-size", &hub, "-g", "kith-village", "--fan-out", "groups=99", "--cache", "bypass"];
    for (command, flags) in [(&["graph"][..], &["--profile"][..]), (&["explain"], &[])] {
        let printed = cluster.must(&[command, &question, flags].concat());
        assert!(printed.contains(note), "{printed}");
    }
    let (refused, exit) = cluster.run(&[network(&json!({"fan_out": "first-degree=1"}))], 1);
    let message = refused[0]["error"]["message"].as_str().expect("a message");
    assert!(exit == 3 && message.contains("kinds: single-key, non-union"), "{message}");
}

#[test]
fn explain_names_the_controller_and_its_inputs_and_profiles_say_what_names_mean() {
    let cluster = village("[session.controllers]\nnetwork = \"client-qps(900)\"\n");
    let hub = HUB.to_string();
    let question = ["network-size", &hub, "-g", "kith-village", "--cache", "bypass"];
    let explained = cluster.must(&[&["explain"][..], &question].concat());
    for expected in [
        "decided by client-qps(900), which the settings choose for network\n",
        "inputs: operation network, kind sync-union, workflow interactive, 666 keys; 3 groups of 2 nodes\n",
        "load: this client makes ",
        "controller client-qps: as many groups as keep this client within its requests per second\n",
        "policy n-groups: keys in turn over as many groups as the limit says\n",
    ] {
        assert!(explained.contains(expected), "no {expected:?} in\n{explained}");
    }
    let mixed = cluster.kith(&[&["explain", "--fan-out", "max"][..], &question].concat()).output();
    let mixed = mixed.expect("kith runs");
    let stderr = String::from_utf8_lossy(&mixed.stderr);
    assert!(!mixed.status.success() && stderr.contains("follow its name"), "{stderr}");
    let json: Value =
        serde_json::from_str(&cluster.must(&[&["explain", "-o", "json"][..], &question].concat()))
            .expect("JSON");
    let inputs = &json["plan"]["rounds"][1]["inputs"];
    let named =
        |field: &str| inputs[field].as_str().unwrap_or_else(|| panic!("no {field}: {json}")).to_owned();
    assert_eq!((named("controller"), named("operation")), ("client-qps(900)".into(), "network".into()));
    assert_eq!((named("workflow"), &inputs["groups"]), ("interactive".into(), &json!(3)));
    assert!(inputs["client_requests_per_second"].is_number() && inputs["clients"].is_number(), "{inputs}");
    let profile = cluster.must(&[&["graph"][..], &question, &["--profile"]].concat());
    assert!(profile.contains("by client-qps for network, policy n-groups"), "{profile}");
    assert!(profile.contains("\npolicy n-groups: keys in turn over"), "{profile}");
}
