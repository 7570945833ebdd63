//! Pushes that are refused, and leave what was.

use super::{People, built, code, csv, json_of, left, now_ms, refusal};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::Write,
    process::{Command, Stdio},
};

#[test]
fn what_does_not_fit_the_store_is_refused_before_anything_changes() {
    let people = People::start(&["--key", "string", "--value", "text"]);
    let rows = people.write("rows.csv", csv(20));
    let folder = people.folder.path();
    let other = |name: &str, arguments: &[&str]| {
        let out = folder.join(name);
        built(&out, &[&[rows.as_str(), "--version", "5"], arguments].concat())["folder"]
            .as_str()
            .expect("a folder")
            .to_owned()
    };
    let json_values = people.write("json.jsonl", "{\"key\":\"a\",\"value\":{}}\n");
    let of_json = folder.join("json");
    built(&of_json, &[&json_values, "--value", "json"]);
    assert_eq!(code(&people.refused(&[of_json.to_str().unwrap()])), "other_store");
    let whole = other("whole", &[]);
    assert_eq!(code(&people.refused(&[&whole, "--max-errors", "3"])), "usage");
    // One flipped byte in the last pack.
    let damaged = other("damaged", &[]);
    let pack = fs::read_dir(&damaged).unwrap().map(|entry| entry.unwrap().path());
    let pack = pack
        .filter(|path| path.file_name().is_some_and(|name| name != "manifest.json"))
        .max()
        .expect("a pack");
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&pack, bytes).unwrap();
    assert_eq!(code(&people.refused(&[&damaged])), "version_damaged");
    fs::remove_file(&pack).unwrap();
    assert_eq!(code(&people.refused(&[&damaged])), "version_damaged");
    assert_eq!(
        code(&people.refused(&[&people.write("twice.csv", "key,value\na,b\na,c\n")])),
        "duplicate_key"
    );
    assert_eq!(code(&people.refused(&[folder.join("nothing").to_str().unwrap()])), "bad_input");
    assert_eq!(people.versions(), json!([]));
    assert_eq!((people.built(), left(&people.values())), (vec![], vec![]));
    let unknown = people.cluster.kith(&["store", "push", "nobody", &rows, "-o", "json"]).output().unwrap();
    assert_eq!(code(&refusal(&unknown)), "unknown_store");
    assert!(!people.values().ancestors().nth(2).unwrap().join("nobody").exists());
}

#[test]
fn a_second_push_of_a_store_is_refused_with_the_id_of_the_first() {
    let people = People::start(&[]);
    let pipe = people.folder.path().join("slow.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let slow = ["store", "push", "people", "--format", "csv", pipe.to_str().expect("UTF-8")];
    let mut child =
        people.cluster.kith(&slow).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kith starts");
    let mut writer = File::options().write(true).open(&pipe).expect("the push opens the pipe");
    writer.write_all(b"key,value\n").expect("the push reads");
    while !people.values().join(".staging").exists() {
        assert!(child.try_wait().expect("it can be waited for").is_none(), "the push ended");
        std::thread::yield_now();
    }
    let rows = people.write("rows.csv", csv(20));
    let error = people.refused(&[&rows]);
    assert_eq!(code(&error), "push_running");
    let running = fs::read_to_string(people.values().parent().unwrap().join(".lock")).unwrap();
    assert!(running.starts_with("push-") && error["message"].as_str().unwrap().contains(&running), "{error}");
    child.kill().expect("killed");
    child.wait().expect("it ends");
    assert!(people.values().join(".staging").exists());
    // What the killed one left is cleared away, also by a push that then fails.
    assert_eq!(
        code(&people.refused(&[&people.write("twice.csv", "key,value\na,b\na,c\n")])),
        "duplicate_key"
    );
    assert_eq!((people.built(), left(&people.values())), (vec![], vec![]));
}

#[test]
fn a_push_that_a_node_or_a_guard_refuses_leaves_what_was() {
    let people = People::start(&["--records-min", "15", "--retain", "1"]);
    let (few, enough) = (people.write("few.csv", csv(14)), people.write("enough.csv", csv(15)));
    let error = people.refused(&[&few]);
    assert_eq!(code(&error), "too_few_records", "{error}");
    assert_eq!((people.built(), people.states()), (vec![], vec![]));
    // Files where the nodes want to put the version.
    let data = people.cluster.ready_file.parent().expect("a folder").join("data");
    // An hour ahead of the clock: no push that chooses its number itself takes it meanwhile.
    let ahead = now_ms() + 3_600_000;
    for node in ["node-000", "node-001"] {
        let folder = data.join(node).join("components/people/values");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(ahead.to_string()), "in the way").unwrap();
    }
    let version = ahead.to_string();
    let error = people.refused(&[&few, "--force", "--version", &version]);
    assert_eq!(code(&error), "prepare_failed", "the guards were passed: {error}");
    assert_eq!((people.built(), people.states()), (vec![], vec![(ahead, "failed".to_owned())]));
    assert!(!people.values().parent().unwrap().join(".unfinished").exists());
    let error = people.refused(&[&enough, "--version", &version]);
    assert_eq!(code(&error), "version_not_newer", "{error}");
    let history = people.cluster.must(&["store", "history", "people", "-o", "json"]);
    let history: Value = serde_json::from_str(&history).expect("JSON");
    let last = history.as_array().expect("a list").last().expect("the push is noted").clone();
    assert!(last["push"].as_str().is_some_and(|push| push.starts_with("push-")), "{last}");
    assert!(last["result"].as_str().is_some_and(|result| result.starts_with("failed: ")), "{last}");
}

#[test]
fn a_graph_is_not_pushed_to_and_only_owners_push() {
    let people = People::start(&["--owner", "somebody else"]);
    let rows = people.write("rows.csv", csv(5));
    assert_eq!(code(&people.refused(&[&rows])), "store_owner");
    assert_eq!((people.built(), people.states()), (vec![], vec![]));
    let edges = people.write("edges.csv", "src,dst\n1,2\n");
    people.cluster.must(&["load", "graph", &edges, "--graph", "village"]);
    let push = people.cluster.kith(&["store", "push", "village", &rows, "-o", "json"]).output().unwrap();
    assert_eq!(code(&refusal(&push)), "not_values");
}

#[test]
fn a_store_of_records_is_pushed_to_again_after_its_served_version_has_lost_objects() {
    let people = People::start(&["--key", "string", "--value", "record"]);
    let rows = |version: u32| {
        let lines: String = (0..200).map(|row| format!("member:{row},{row},{version}\n")).collect();
        people.write(&format!("rows-{version}.csv"), format!("key,score,version\n{lines}"))
    };
    let schema = people.write(
        "schema.json",
        r#"{"fields":[{"name":"score","type":"i64"},{"name":"version","type":"text"}]}"#,
    );
    people.pushed(&[&rows(1)]);
    // Each version loses one or all of its objects; the nodes still have them.
    let lose = |version: u64, is_lost: &dyn Fn(&str) -> bool| {
        let folders = fs::read_dir(people.values()).unwrap().map(|entry| entry.unwrap());
        let folders = folders.filter(|folder| folder.file_type().unwrap().is_dir());
        let folder = folders.max_by_key(|folder| folder.metadata().unwrap().modified().unwrap());
        let folder = folder.expect("a version").path();
        let mut lost = 0;
        for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            if is_lost(file.file_name().to_str().unwrap()) {
                fs::remove_file(file.path()).unwrap();
                lost += 1;
            }
        }
        assert!(0 < lost, "version {version}");
    };
    let verified = || {
        let output = people.cluster.kith(&["store", "verify", "people"]).output().unwrap();
        output.status.code()
    };
    let losses: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name == "manifest.json", &|name| name != "manifest.json", &|_| true];
    let ways: [&[&str]; 3] = [&[], &["--schema", &schema, "--force"], &[]];
    for (version, (is_lost, more)) in (1..).zip(losses.into_iter().zip(ways)) {
        lose(version, is_lost);
        assert_eq!(verified(), Some(3), "version {version}");
        let rows = rows(version as u32 + 1);
        people.pushed(&[&[rows.as_str()], more].concat());
        assert_eq!(verified(), Some(0), "the version after {version}");
        let answer = json_of(&people.cluster.must(&["get", "people", "member:7", "-o", "json"]));
        assert!(answer.to_string().contains(&(version + 1).to_string()), "{answer}");
    }
    // Another schema is compared with the served one, which the nodes have.
    lose(4, &|name| name == "manifest.json");
    let field = r#"{"name":"score","type":"i64"},{"name":"version","type":"text"}"#;
    let schema = |more: &str| people.write("next.json", format!(r#"{{"fields":[{field},{more}]}}"#));
    let rows = people.write("rows-5.csv", "key,score,version,extra\nmember:7,7,5,1\n");
    let required = schema(r#"{"name":"extra","type":"i64"}"#);
    assert_eq!(people.refused(&["--schema", &required, &rows])["code"], "incompatible_schema");
    let nullable = schema(r#"{"name":"extra","type":"i64","nullable":true}"#);
    people.pushed(&["--schema", &nullable, &rows]);
    assert_eq!(verified(), Some(0), "the version with another schema");
    // Changes are made to the version before, so they need it.
    lose(5, &|_| true);
    let refused = people.refused(&["--delta", &rows]);
    assert!(refused["message"].as_str().is_some_and(|message| message.contains("manifest")), "{refused}");
}
