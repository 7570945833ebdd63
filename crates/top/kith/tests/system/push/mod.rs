//! Stores of values against a real cluster: built, pushed, refused, killed, rolled back.

mod builds;
mod deltas;
mod fields;
mod refusals;

use crate::support;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
    time::SystemTime,
};
use support::cluster::{Cluster, kith, text};

/// The configuration of every cluster of these tests.
const PARTITIONS: &str = "24";

struct People {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

/// Runs a command that must fail; its error.
fn refusal(output: &Output) -> Value {
    assert!(!output.status.success(), "{}", text(output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(output)));
    assert!(answer["error"]["help"].as_str().is_some_and(|help| !help.is_empty()), "{answer}");
    answer["error"].clone()
}

fn code(error: &Value) -> &str {
    error["code"].as_str().expect("a code")
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    fs::write(&path, content).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// `count` rows as CSV.
fn csv(count: u64) -> String {
    let rows: String = (0..count).map(|row| format!("member:{row},value {row}\n")).collect();
    format!("key,value\n{rows}")
}

fn json_of(printed: &str) -> Value {
    serde_json::from_str(printed.lines().last().expect("a last line")).expect("JSON")
}

impl People {
    fn start(create: &[&str]) -> Self {
        let cluster = Cluster::start(&["--nodes", "1"]);
        let people = Self { cluster, folder: tempfile::tempdir().expect("a temporary folder") };
        people.cluster.must(&[&["store", "create", "people"], create].concat());
        people
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        write(self.folder.path(), name, content)
    }

    fn push(&self, arguments: &[&str]) -> Output {
        let all = [&["store", "push", "people", "-o", "json"], arguments].concat();
        self.cluster.kith(&all).output().expect("kith runs")
    }

    /// Pushes; what it ends with.
    fn pushed(&self, arguments: &[&str]) -> Value {
        let output = self.push(arguments);
        assert!(output.status.success(), "{}", text(&output));
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        serde_json::from_str(printed.lines().last().expect("a last line")).expect("JSON")
    }

    fn assert_states(&self, expected: &[(u64, &str)]) {
        let states = self.states();
        let states: Vec<(u64, &str)> =
            states.iter().map(|(version, state)| (*version, state.as_str())).collect();
        assert_eq!(states, expected);
    }

    fn refused(&self, arguments: &[&str]) -> Value {
        refusal(&self.push(arguments))
    }

    fn versions(&self) -> Value {
        let printed = self.cluster.must(&["store", "versions", "people", "-o", "json"]);
        serde_json::from_str(&printed).expect("JSON")
    }

    fn states(&self) -> Vec<(u64, String)> {
        let versions = self.versions();
        let versions = versions.as_array().expect("a list").iter();
        versions
            .map(|it| {
                (it["version"].as_u64().expect("a number"), it["state"].as_str().expect("text").to_owned())
            })
            .collect()
    }

    /// The folder of the store's built versions.
    fn values(&self) -> PathBuf {
        self.cluster.ready_file.parent().expect("a folder").join("data/objects/people/values")
    }

    /// The numbers of the versions that lie in the object store.
    fn built(&self) -> Vec<u64> {
        let Ok(entries) = fs::read_dir(self.values()) else { return Vec::new() };
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut built: Vec<u64> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
        built.sort_unstable();
        built
    }
}

/// Builds without a cluster.
fn build(out: &Path, arguments: &[&str]) -> Output {
    let out = out.to_str().expect("UTF-8");
    let all =
        [&["store", "build", "people", "--partitions", PARTITIONS, "--out", out, "-o", "json"], arguments];
    kith(&all.concat()).output().expect("kith runs")
}

fn built(out: &Path, arguments: &[&str]) -> Value {
    let output = build(out, arguments);
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The entries of a folder that could be taken for a version, or are left of one.
fn left(out: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(out) else { return Vec::new() };
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name != ".lock").collect()
}

/// Pushes rows after a first version: the schema that was inferred from that holds for them. The number of their version.
fn push_what_follows(people: &People, first: u64) -> u64 {
    let lines = people.write("people.jsonl", "{\"id\":1,\"name\":\"Eve\",\"age\":1}\n");
    let second = people.pushed(&[&lines]);
    assert_eq!(
        (&second["before"], &second["undo"]),
        (&json!(first), &json!("kith store rollback people")),
        "{second}"
    );
    let odd = people.write("odd.jsonl", "{\"id\":1,\"name\":3,\"age\":1}\n");
    let refused = people.refused(&[&odd]);
    let help = refused["help"].as_str().expect("text");
    assert!(
        code(&refused) == "bad_rows" && help.contains("schema") && !help.contains("--max-errors"),
        "{help}"
    );
    let ahead = people.refused(&[&lines, "--version", "9007199254740991"]);
    assert_eq!(code(&ahead), "version_too_great", "{ahead}");
    let narrow = people
        .write("narrow.json", r#"{"fields":[{"name":"name","type":"text"},{"name":"age","type":"bool"}]}"#);
    assert_eq!(code(&people.refused(&[&lines, "--schema", &narrow])), "incompatible_schema");
    second["version"].as_u64().expect("a version")
}

#[test]
fn rows_of_every_format_are_pushed_listed_and_rolled_back() {
    let people = People::start(&["--key", "id", "--value", "record", "--key-field", "id"]);
    let csv = people.write("people.csv", "id,name,age\n7,Ada,36\n9,Bob,\n");
    let first = people.pushed(&[&csv]);
    let version = first["version"].as_u64().expect("a version");
    assert!(1_700_000_000_000 < version && first["bytes"].as_u64().is_some_and(|bytes| 0 < bytes), "{first}");
    let summary = (&first["store"], &first["records"], &first["swapped"], &first["before"], &first["undo"]);
    assert!(first["flip_us"].as_u64().is_some_and(|us| 0 < us), "{first}");
    assert_eq!(summary, (&json!("people"), &json!(2), &json!(true), &Value::Null, &Value::Null), "{first}");
    let second = push_what_follows(&people, version);
    people.assert_states(&[(version, "retained"), (second, "current")]);
    let versions = people.versions();
    for (index, records) in [2, 1].into_iter().enumerate() {
        let entry = &versions[index];
        assert_eq!(entry["records"], records, "{versions}");
        assert!(entry["bytes"].as_u64().is_some_and(|bytes| 0 < bytes), "{versions}");
        assert!(entry["pushed_at"].as_u64().is_some_and(|at| 1_700_000_000_000 < at), "{versions}");
    }
    people.cluster.must(&["store", "rollback", "people"]);
    people.assert_states(&[(version, "current"), (second, "blocked")]);
    assert_eq!(people.built(), [version, second]);
}

#[test]
fn rows_of_parquet_are_pushed() {
    let people = People::start(&[]);
    let create = ["store", "create", "typed", "--key", "id", "--value", "record", "--key-field", "id"];
    people.cluster.must(&create);
    let parquet = concat!(env!("CARGO_MANIFEST_DIR"), "/../../files/kith-build/testdata/pyarrow.parquet");
    let reply = people.cluster.must(&["store", "push", "typed", parquet, "-o", "json"]);
    let reply: Value = serde_json::from_str(&reply).expect("JSON");
    assert!(reply["records"].as_u64().is_some_and(|records| 0 < records), "{reply}");
}

#[test]
fn a_schema_that_a_store_is_made_with_holds_from_its_first_push_on() {
    let people = People::start(&[]);
    let cluster = &people.cluster;
    let schema = people.write(
        "schema.json",
        r#"{"fields":[{"name":"age","type":"i64","default":1},{"name":"name","type":"text"}]}"#,
    );
    let create = ["store", "create", "typed", "--key", "id", "--value", "record", "--schema", &schema];
    let answer = json_of(&cluster.must(&[&create[..], &["-o", "json"]].concat()));
    assert!(answer["schema"].as_str().is_some_and(|text| text.contains("\"age\"")), "{answer}");
    let push = |rows: &str| {
        let push = cluster.kith(&["store", "push", "typed", rows, "-o", "json"]).output();
        push.expect("kith runs")
    };
    let odd = people.write("odd.csv", "key,name,age\n1,Ada,old\n");
    assert_eq!(code(&refusal(&push(&odd))), "bad_rows");
    let rows = people.write("rows.csv", "key,name\n1,Ada\n");
    let lacking = refusal(&push(&rows));
    assert_eq!(code(&lacking), "bad_input");
    assert!(lacking.to_string().contains("lacks field"), "{lacking}");
    let filled = json_of(&cluster.must(&["store", "push", "typed", &rows, "--fill-missing", "-o", "json"]));
    assert!(filled["schema_changes"].to_string().contains("age"), "{filled}");
    assert_eq!(cluster.must(&["get", "typed", "1"]).trim(), r#"{"age":1,"name":"Ada"}"#);
    for (arguments, expected) in [
        (["a", "--value", "text", "--schema", &schema], "usage"),
        (["b", "--value", "record", "--schema", "/nowhere"], "bad_schema"),
        (["c", "--value", "record", "--schema", &rows], "bad_schema"),
    ] {
        let all = [&["store", "create", "-o", "json"], &arguments[..]].concat();
        assert_eq!(code(&refusal(&cluster.kith(&all).output().expect("kith runs"))), expected);
    }
}

#[test]
fn a_chosen_number_leaves_room_for_those_that_come_after_it() {
    let people = People::start(&[]);
    let (few, more) = (people.write("few.csv", csv(3)), people.write("more.csv", csv(5)));
    let last: u64 = (1 << 53) - 1;
    for far in [last, now_ms() + 2 * 24 * 3_600_000] {
        let error = people.refused(&[&few, "--version", &far.to_string()]);
        assert_eq!(code(&error), "version_too_great", "{far}: {error}");
    }
    for beyond in [last + 1, u64::MAX] {
        let output = people.push(&[&more, "--version", &beyond.to_string()]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    }
    assert_eq!((people.built(), people.states()), (vec![], vec![]), "a refused push leaves nothing");
    let ahead = now_ms() + 3_600_000;
    assert_eq!(people.pushed(&[&few, "--version", &ahead.to_string()])["version"], ahead);
    assert_eq!(people.pushed(&[&more])["version"], ahead + 1);
    assert_eq!(people.cluster.must(&["get", "people", "member:4"]).trim_end(), "value 4");
}

#[test]
fn a_folder_is_named_as_it_is_from_where_one_is() {
    let people = People::start(&[]);
    people.write("rows.csv", csv(7));
    let rows = people.folder.path().join("rows");
    fs::create_dir(&rows).expect("a folder");
    fs::rename(people.folder.path().join("rows.csv"), rows.join("a.csv")).expect("moved");
    for (name, records) in [("rows", 7), ("rows/", 7), ("./rows", 7)] {
        let mut push = people.cluster.kith(&["store", "push", "people", name, "-o", "json"]);
        let output = push.current_dir(people.folder.path()).output().expect("kith runs");
        assert!(output.status.success(), "{name}: {}", text(&output));
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        let reply: Value = serde_json::from_str(printed.lines().last().expect("a line")).expect("JSON");
        assert_eq!(reply["records"], records, "{name}");
    }
}

/// Milliseconds since 1970, as versions are numbered.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("it fits")
}
