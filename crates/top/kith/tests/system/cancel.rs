//! Pushes and loads that somebody ends before they serve: by `--cancel`, Ctrl-C, a rollback, a swap or a freeze.

use crate::support;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Output, Stdio},
};
use support::cluster::{Cluster, signal, text};

const STORE: &str = "people";
const ROWS: u64 = 200;

/// A cluster that serves a version of a store; what is fetched after it would take a week.
struct World {
    cluster: Cluster,
    folder: tempfile::TempDir,
    first: u64,
}

impl World {
    fn start() -> Self {
        let cluster = Cluster::start(&["--groups", "1", "--nodes", "2", "--partitions", "8"]);
        cluster.must(&["store", "create", STORE, "--key", "id", "--value", "text"]);
        let mut world = Self { cluster, folder: tempfile::tempdir().expect("a folder"), first: 0 };
        world.first = world.pushed("first");
        world.rate("1");
        world
    }

    fn rate(&self, rate: &str) {
        self.cluster.must(&["cluster", "fetch-rate", rate]);
    }

    fn rows(&self, word: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{word}.csv"));
        let lines = (0..ROWS).map(|id| format!("{id},{word} {id} {}\n", "x".repeat(400)));
        fs::write(&path, format!("key,value\n{}", lines.collect::<String>())).expect("written");
        path
    }

    /// Pushes to the end.
    fn pushed(&self, word: &str) -> u64 {
        let rows = self.rows(word);
        let output = self.cluster.must(&["store", "push", STORE, path(&rows), "-o", "json"]);
        number(&parsed(output.as_bytes())["version"])
    }

    /// Begins a push that both nodes wait in.
    fn pushing(&mut self, word: &str) -> Child {
        let rows = self.rows(word);
        self.begin(&["store", "push", STORE, path(&rows), "-o", "json"])
    }

    fn begin(&mut self, arguments: &[&str]) -> Child {
        let mut command = self.cluster.kith(arguments);
        command.env("KITH_WHO", "ada").stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("kith runs");
        self.wait_until_waiting(2);
        child
    }

    fn wait_until_waiting(&mut self, nodes: usize) {
        self.cluster.wait_until("so many nodes wait for their fetch", |cluster| {
            let answer = parsed(cluster.must(&["cluster", "fetch-rate", "-o", "json"]).as_bytes());
            let waiting = answer["nodes"].as_array().expect("a list").iter();
            waiting.filter(|node| node["waiting"] != 0).count() == nodes
        });
    }

    fn as_bob(&self, arguments: &[&str]) -> Output {
        let mut command = self.cluster.kith(arguments);
        command.env("KITH_WHO", "bob").output().expect("kith runs")
    }

    fn described(&self, store: &str) -> Value {
        parsed(self.cluster.must(&["store", "describe", store, "-o", "json"]).as_bytes())
    }

    /// The end of the last push in the history: its id, version and result.
    fn last_push(&self, store: &str) -> (String, u64, String) {
        let history = parsed(self.cluster.must(&["store", "history", store, "-o", "json"]).as_bytes());
        let mut history = history.as_array().expect("a list").iter().rev();
        let push = history.find(|entry| entry["action"] == "push").expect("there was a push");
        let text = |field: &str| push[field].as_str().expect("text").to_owned();
        (text("push"), number(&push["version"]), text("result"))
    }

    /// The push ended as cancelled, for this reason; nothing of it is left anywhere, and the next one is not in its way.
    fn assert_cancelled(&mut self, push: Child, why: &str) {
        let output = push.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let error = &parsed(&output.stdout)["error"];
        assert_eq!(error["code"], "push_cancelled", "{}", text(&output));
        let (id, version, result) = self.last_push(STORE);
        assert_eq!(result, format!("cancelled: {why}"));
        let message = error["message"].as_str().expect("text");
        assert!(message.contains(&id) && message.contains(why), "{message}");
        self.wait_until_waiting(0);
        let data = self.cluster.data();
        self.cluster.wait_until("nothing of the version is left", |_| {
            !folders(&data).iter().any(|folder| folder.ends_with(version.to_string()))
        });
        assert_eq!(self.described(STORE)["running"], Value::Null);
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn parsed(json: &[u8]) -> Value {
    serde_json::from_slice(json).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// All folders below one.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    below.flat_map(|path| folders(&path).into_iter().chain([path])).collect()
}

#[test]
fn a_push_that_is_cancelled_leaves_nothing_and_is_in_nobodys_way() {
    let mut world = World::start();
    let none = world.as_bob(&["store", "push", STORE, "--cancel", "-o", "json"]);
    assert_eq!(parsed(&none.stdout)["error"]["code"], "no_push");

    let push = world.pushing("second");
    let running = world.described(STORE)["running"].clone();
    let answer = world.as_bob(&["store", "push", STORE, "--cancel", "-o", "json"]);
    assert!(answer.status.success(), "{}", text(&answer));
    assert_eq!(
        parsed(&answer.stdout),
        json!({"store": STORE, "push": running["push"], "version": running["version"], "cancelled": true,
            "serves": world.first})
    );
    world.assert_cancelled(push, "bob cancelled it");

    // By its id, twice.
    let push = world.pushing("third");
    let id = world.described(STORE)["running"]["push"].as_str().expect("text").to_owned();
    let cancel = format!("--cancel={id}");
    for _ in 0..2 {
        let answer = world.as_bob(&["store", "push", STORE, &cancel, "-o", "json"]);
        assert_eq!(parsed(&answer.stdout)["push"], *id, "{}", text(&answer));
    }
    world.assert_cancelled(push, "bob cancelled it");
    assert_eq!(number(&world.described(STORE)["version"]), world.first);

    // Those who look after the cluster see it too.
    let status = parsed(world.cluster.must(&["cluster", "status", "-o", "json"]).as_bytes());
    let store = &status["stores"][0];
    assert_eq!((&store["store"], &store["last_push"]), (&json!(STORE), &json!("cancelled")), "{status}");
    assert!(store["version_age_ms"].is_u64() && status["nodes"][0]["disk_free"].is_u64(), "{status}");
    let cancelled = world.cluster.metric("kith_router_pushes_total{store=\"people\",outcome=\"cancelled\"}");
    assert_eq!(cancelled, Some(2.0));

    world.rate("off");
    let fourth = world.pushed("fourth");
    let (id, _, result) = world.last_push(STORE);
    assert_eq!((number(&world.described(STORE)["version"]), result.as_str()), (fourth, "done"));
    let late = world.as_bob(&["store", "push", STORE, &format!("--cancel={id}"), "-o", "json"]);
    assert_eq!(parsed(&late.stdout)["error"]["code"], "push_served", "{}", text(&late));
}

#[test]
fn a_push_is_cancelled_by_its_id_before_it_begins() {
    let world = World::start();
    let cancelled = world.as_bob(&["store", "push", STORE, "--cancel=push-not-yet", "-o", "json"]);
    assert_eq!(
        parsed(&cancelled.stdout),
        json!({"store": STORE, "push": "push-not-yet", "version": null, "cancelled": true, "serves": world.first}),
        "{}",
        text(&cancelled)
    );
}

#[test]
fn ctrl_c_and_sigterm_cancel_what_was_handed_over() {
    let mut world = World::start();
    let push = world.pushing("second");
    signal(push.id(), "INT");
    world.assert_cancelled(push, "ada cancelled it");

    let edges = world.folder.path().join("edges.csv");
    fs::write(&edges, "src,dst\n1,2\n2,3\n").expect("written");
    let load = world.begin(&["load", "graph", path(&edges), "--graph", "village", "-o", "json"]);
    signal(load.id(), "TERM");
    let output = load.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert_eq!(parsed(&output.stdout)["error"]["code"], "push_cancelled", "{}", text(&output));
    assert_eq!(world.described("village")["version"], Value::Null);
    assert_eq!(world.last_push("village").2, "cancelled: ada cancelled it");
    world.rate("off");
    world.cluster.must(&["load", "graph", path(&edges), "--graph", "village"]);
}

#[test]
fn a_rollback_a_swap_and_a_freeze_end_the_push_that_began_before_them() {
    let mut world = World::start();
    world.rate("off");
    let second = world.pushed("second");
    world.rate("1");
    let first = world.first;

    let push = world.pushing("third");
    assert!(world.as_bob(&["store", "rollback", STORE]).status.success());
    world.assert_cancelled(push, &format!("bob rolled the store back to version {first}"));
    assert_eq!(number(&world.described(STORE)["version"]), first);

    let push = world.pushing("fourth");
    assert!(world.as_bob(&["store", "swap", STORE, &second.to_string(), "--force"]).status.success());
    world.assert_cancelled(push, &format!("bob swapped version {second} in"));
    assert_eq!(number(&world.described(STORE)["version"]), second);

    let push = world.pushing("fifth");
    let frozen = world.as_bob(&["store", "freeze", STORE, "-o", "json"]);
    assert_eq!(parsed(&frozen.stdout)["frozen"]["who"], "bob", "{}", text(&frozen));
    world.assert_cancelled(push, "bob froze the store");
    world.rate("off");
    let rows = world.rows("sixth");
    let refused = world.as_bob(&["store", "push", STORE, path(&rows), "-o", "json"]);
    assert_eq!(parsed(&refused.stdout)["error"]["code"], "store_frozen", "{}", text(&refused));
    let refused = world.as_bob(&["store", "drop", STORE, "--yes", "-o", "json"]);
    assert_eq!(parsed(&refused.stdout)["error"]["code"], "store_frozen", "{}", text(&refused));
    assert!(
        world.as_bob(&["store", "rollback", STORE]).status.success(),
        "a frozen store can be rolled back"
    );
    assert!(world.cluster.must(&["store", "versions", STORE]).contains("frozen by bob"));

    world.cluster.must(&["store", "thaw", STORE]);
    assert_eq!(world.described(STORE)["frozen"], Value::Null);
    let sixth = world.pushed("sixth");
    assert_eq!(number(&world.described(STORE)["version"]), sixth);
}
