//! `kith import` and `kith export`: invalid files, interruptions, and round trips.

use super::site::{GRAPH, Site, Talk};
use crate::support::{
    cluster::{signal, text},
    wait_until,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    path::Path,
    process::{Child, Stdio},
};

const SHAPE: [&str; 6] = ["--groups", "1", "--nodes", "2", "--partitions", "4"];

fn json_of(output: &[u8]) -> Value {
    serde_json::from_slice(output).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(output)))
}

/// Runs an import that must succeed. Returns its JSON output.
fn import(site: &Site, arguments: &[&str]) -> Value {
    json_of(site.cluster.must(&[&["import", GRAPH, "-o", "json"], arguments].concat()).as_bytes())
}

/// Runs a command that must fail. Returns the code of its error and its whole output.
fn refused(site: &Site, arguments: &[&str]) -> (String, String) {
    let output = site.command(&[arguments, &["-o", "json"]].concat());
    assert!(!output.status.success(), "{arguments:?} must fail: {}", text(&output));
    let code = json_of(&output.stdout)["error"]["code"].as_str().expect("a code").to_owned();
    (code, text(&output))
}

fn count(talk: &mut Talk, id1: u64, kind: &str) -> u64 {
    let line = json!({"op": "assoc_count", "graph": GRAPH, "id1": id1, "type": kind, "critical": true});
    talk.must(&line)["count"].as_u64().expect("a count")
}

#[test]
fn files_that_make_no_sense_change_nothing() {
    let site = Site::start(&SHAPE);
    let mut talk = site.talk(4);
    let likes = site.file("likes.csv", "1,2,3,\"{\"\"note\"\":\"\"x\"\"}\"\n1,3,4,\n");
    for (content, kind, flag, code, said) in [
        ("1,2,3\n1,x,3\n", "likes", "--assocs", "bad_lines", "line 2: id2 is not a whole number"),
        ("1,2,3,\n1,2,3,{}x\n", "likes", "--assocs", "bad_lines", "line 2: data: "),
        ("1,2,3,\"{\"\"nope\"\":1}\"\n", "likes", "--assocs", "bad_lines", "nope"),
        ("1,2\n", "likes", "--assocs", "bad_input", "no column 3 for time"),
        ("1,2,3\n", "lieks", "--assocs", "unknown_type", "did you mean \\\"likes\\\"?"),
        ("1,2,3\n", "person", "--assocs", "unknown_type", "no association type"),
        ("5,\"{\"\"age\"\":3}\"\n", "person", "--objects", "bad_lines", "name"),
        ("5,\"{\"\"name\"\":3}\"\n", "person", "--objects", "bad_lines", "line 1: data: "),
    ] {
        let file = site.file("bad.csv", content);
        let (got, message) = refused(&site, &["import", GRAPH, flag, &file, "--type", kind]);
        assert!(
            got == code && message.contains(said),
            "{content:?}: expected {code} and {said:?}: {message}"
        );
    }
    assert_eq!(count(&mut talk, 1, "likes"), 0, "nothing was written");
    let file = ["--assocs", &likes, "--type", "likes"];
    let (code, message) = refused(&site, &[&["import", "nowhere"], &file[..]].concat());
    assert!(code == "unknown_graph" && message.contains(GRAPH), "{message}");
    let edges = site.file("edges.csv", "Target,since,Source\n1,5,2\n");
    let stdout = site.cluster.must(&["load", "graph", &edges, "--graph", "loaded"]);
    assert!(stdout.contains("edges: Source → Target"), "{stdout}");
    let unknown = site.file("unknown.csv", "a,b,c,d,e\n1,2,3,4,5\n");
    for (verb, flags) in [
        (&["load", "graph", &unknown, "--graph", "loaded"][..], "--src and --dst"),
        (&["import", GRAPH, "--assocs", &unknown, "--type", "likes"], "--columns"),
    ] {
        let (code, message) = refused(&site, verb);
        assert!(code == "bad_input" && message.contains(flags), "{code}: {message}");
    }
    for verb in [
        &["import", "loaded", "--assocs", &likes, "--type", "likes"][..],
        &["export", "loaded", "--assocs", "--type", "likes"],
    ] {
        assert_eq!(refused(&site, verb).0, "loaded_graph");
    }
    for wrong in [&["--columns", "a,b"][..], &["--columns", "1,2,1"]] {
        assert_eq!(refused(&site, &[&["import", GRAPH], &file[..], wrong].concat()).0, "usage");
    }
    assert_eq!(refused(&site, &["export", GRAPH, "--objects", "--type", "likes"]).0, "unknown_type");
    let dry = import(&site, &[&file[..], &["--dry-run"]].concat());
    assert_eq!((&dry["rows"], &dry["added"], &dry["dry_run"]), (&json!(2), &json!(0), &json!(true)));
    assert_eq!(count(&mut talk, 1, "likes"), 0);
    let some = site.file("some.csv", "1,2,3\n1,-3,4\n1,4,5\n");
    let said = import(&site, &["--assocs", &some, "--type", "likes", "--max-errors", "1"]);
    assert_eq!(
        (&said["rows"], &said["added"], &said["dropped"][0]["reason"]),
        (&json!(3), &json!(2), &json!("negative id"))
    );
    assert_eq!(count(&mut talk, 1, "likes"), 2);
    // A pipe is checked while it is written, so the error tells how much of it was written.
    let piped = ["import", GRAPH, "--assocs", "-", "--type", "likes", "-o", "json"];
    let mut command = site.cluster.kith(&piped);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kith starts");
    let mut input = child.stdin.take().expect("the input is piped");
    input.write_all(b"9,2,3\n9,3,4\n9,x,5\n").expect("the import reads");
    drop(input);
    let output = child.wait_with_output().expect("the import ends");
    let error = &json_of(&output.stdout)["error"];
    let said = error["message"].as_str().expect("a message");
    assert!(error["code"] == "bad_lines" && said.ends_with("; the first 2 rows are done"), "{error}");
    assert_eq!(count(&mut talk, 9, "likes"), 2);
}

#[test]
fn rows_that_exist_are_overwritten() {
    let site = Site::start(&SHAPE);
    let mut talk = site.talk(4);
    let object = |talk: &mut Talk, id: u64| {
        talk.must(&json!({"op": "object_get", "graph": GRAPH, "id": id, "critical": true}))["object"].clone()
    };
    let people = site.file(
        "people.csv",
        "id,data\n1,\"{\"\"name\"\":\"\"Ada\"\",\"\"age\"\":36}\"\n2,\"{\"\"name\"\":\"\"Bob\"\"}\"\n",
    );
    let arguments = ["--objects", &people, "--type", "person"];
    let said = import(&site, &arguments);
    assert_eq!((&said["added"], &said["existed"]), (&json!(2), &json!(0)));
    let before = object(&mut talk, 1);
    let said = import(&site, &arguments);
    assert_eq!((&said["added"], &said["existed"]), (&json!(0), &json!(2)));
    assert_eq!(object(&mut talk, 1), before, "an object that has the fields of the file is not written");
    let renamed = site.file("renamed.csv", "1,\"{\"\"name\"\":\"\"Ada L.\"\"}\"\n");
    import(&site, &["--objects", &renamed, "--type", "person"]);
    assert_eq!(object(&mut talk, 1)["data"], json!({"name": "Ada L.", "age": 36}));
    // A deleted object is written again, even while the cluster still remembers the write id of its first import.
    talk.must(&json!({"op": "object_delete", "graph": GRAPH, "id": 2}));
    let said = import(&site, &arguments);
    assert_eq!((&said["added"], &said["existed"]), (&json!(1), &json!(1)));
    let page = ["import", GRAPH, "--objects", &people, "--type", "page"];
    assert_eq!(refused(&site, &page).0, "bad_lines", "the fields do not fit the type page");
    let tags = site.file("tags.csv", "id\n9\n2\n");
    // The row that ends the import does not count as done, so the same command tries it again.
    for _ in 0..2 {
        let (code, message) = refused(&site, &["import", GRAPH, "--objects", &tags, "--type", "tag"]);
        let reason = "line 3: object 2 exists already, as type \\\"person\\\"";
        assert!(code == "bad_lines" && message.contains(reason), "{message}");
    }
    let said = import(&site, &["--objects", &tags, "--type", "tag", "--max-errors", "1"]);
    assert_eq!(said["dropped"][0]["reason"], "refused by the cluster");
    // If several lines name the same association, the last one counts, whichever end it names first.
    let mut rows = String::new();
    for time in 0..500 {
        rows += &format!("{},{},{time}\n", 7 + time % 2, 8 - time % 2);
    }
    import(&site, &["--assocs", &site.file("same.csv", &rows), "--type", "friend"]);
    let range = json!({"op": "assoc_range", "graph": GRAPH, "id1": 8, "type": "friend", "critical": true});
    assert_eq!(talk.must(&range), json!({"out": [[7, 499]], "more": false}));
}

/// Starts an import of associations.
fn start(site: &Site, file: &str) -> Child {
    let mut command = site.cluster.kith(&[
        "import",
        GRAPH,
        "--assocs",
        file,
        "--type",
        "follows",
        "--concurrency",
        "8",
        "-o",
        "json",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kith starts")
}

/// Returns the number of rows that are done according to the checkpoint; `None` if there is no checkpoint.
fn rows_done(checkpoint: &str) -> Option<u64> {
    let progress: Value = serde_json::from_str(&fs::read_to_string(checkpoint).ok()?).ok()?;
    progress["done"].as_u64()
}

/// Waits until the running import has done at least `rows` rows.
fn wait_for_rows(child: &mut Child, checkpoint: &str, rows: u64) {
    wait_until("some rows are done", || {
        assert!(
            child.try_wait().expect("the process can be queried").is_none(),
            "the import must not have ended yet"
        );
        rows_done(checkpoint).is_some_and(|done| rows <= done)
    });
}

#[test]
fn an_import_continues_after_it_was_interrupted() {
    let site = Site::start(&SHAPE);
    let mut talk = site.talk(4);
    let rows = |first: u64| (first..first + 2_000).map(|id2| format!("1,{id2},{id2}\n")).collect::<String>();
    let file = site.file("follows.csv", &rows(10));
    let checkpoint = format!("{file}.{GRAPH}.follows.kith-import");
    let mut first = start(&site, &file);
    wait_for_rows(&mut first, &checkpoint, 1);
    let (code, message) = refused(&site, &["import", GRAPH, "--assocs", &file, "--type", "follows"]);
    assert!(code == "load_running" && message.contains("another import"), "{message}");
    signal(first.id(), "KILL");
    first.wait().expect("the import ends");
    let done = rows_done(&checkpoint).expect("the checkpoint stays");
    let mut second = start(&site, &file);
    // Its own progress shows that the second import runs and handles signals.
    wait_for_rows(&mut second, &checkpoint, done + 100);
    signal(second.id(), "INT");
    let output = second.wait_with_output().expect("the import ends");
    let error = json_of(&output.stdout)["error"].clone();
    assert!(
        error["code"] == "cancelled" && error["help"].to_string().contains("continues after"),
        "{}",
        text(&output)
    );
    let said = import(&site, &["--assocs", &file, "--type", "follows"]);
    assert!(done + 100 <= said["resumed"].as_u64().expect("a number"), "{said}");
    assert_eq!(
        (&said["rows"], &said["added"], &said["existed"]),
        (&json!(2_000), &json!(2_000), &json!(0)),
        "{said}"
    );
    assert!(!Path::new(&checkpoint).exists());
    assert_eq!(count(&mut talk, 1, "follows"), 2_000);
    let inverse = json!({"op": "assoc_get", "graph": GRAPH, "id1": 2_009, "type": "followed_by", "ids": [1], "critical": true});
    assert_eq!(talk.must(&inverse), json!({"out": [[1, 2_009]]}));
    // If the file has changed, the import begins from the start.
    let mut third = start(&site, &file);
    wait_for_rows(&mut third, &checkpoint, 1);
    signal(third.id(), "KILL");
    third.wait().expect("the import ends");
    fs::write(&file, "1,5000000,1\n").expect("the file can be written");
    let said = import(&site, &["--assocs", &file, "--type", "follows"]);
    assert_eq!((&said["resumed"], &said["rows"], &said["added"]), (&json!(0), &json!(1), &json!(1)));
}

#[test]
fn an_import_waits_until_partitions_have_leaders_again() {
    let site = Site::start(&["--processes", "--groups", "2", "--nodes", "1", "--partitions", "4"]);
    let rows: String = (10..610).map(|id2| format!("{},{id2},{id2}\n", id2 % 50)).collect();
    let file = site.file("follows.csv", &rows);
    let mut running = start(&site, &file);
    wait_for_rows(&mut running, &format!("{file}.{GRAPH}.follows.kith-import"), 20);
    signal(site.cluster.node_pids(0)[0], "KILL");
    let output = running.wait_with_output().expect("the import ends");
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(
        (&json_of(&output.stdout)["added"], &json_of(&output.stdout)["dropped"]),
        (&json!(600), &json!([]))
    );
    let exported = export(&site, GRAPH, "--assocs", "followed_by");
    assert_eq!(exported.lines().count(), 601);
}

/// Exports a type into a file, and returns the content of the file.
fn export(site: &Site, graph: &str, what: &str, kind: &str) -> String {
    let file = site.file("exported", "");
    site.cluster.must(&["export", graph, what, "--type", kind, "--out", &file]);
    fs::read_to_string(&file).expect("the export was written")
}

#[test]
fn what_is_exported_can_be_imported_again() {
    let site = Site::start(&SHAPE);
    let data = |note: &str| format!("\"{}\"", json!({"note": note}).to_string().replace('"', "\"\""));
    let mut likes = "id1,id2,time,data\n".to_owned();
    for id in 0..3_000u64 {
        likes += &format!(
            "{},{},{},{}\n",
            id % 7,
            u64::MAX - id,
            id % 11,
            if id % 5 == 0 { String::new() } else { data("a \"b\",\n é") }
        );
    }
    let pairs: String = (1..200u64).map(|id| format!("{},{},{id}\n", id * 13 % 97, id)).collect();
    let people: String =
        (0..150u64).map(|id| format!("{},\"{{\"\"name\"\":\"\"P{id}\"\"}}\"\n", id * 3)).collect();
    let tags: String = (0..10u64).map(|id| format!("{}\n", 10_000 + id)).collect();
    for (what, kind, rows) in [
        ("--assocs", "likes", &likes),
        ("--assocs", "friend", &pairs),
        ("--assocs", "follows", &pairs),
        ("--objects", "person", &people),
        ("--objects", "tag", &tags),
    ] {
        import(&site, &[what, &site.file("rows.csv", rows), "--type", kind]);
    }
    site.create("copy", &[]);
    for (what, kind, rows) in [
        ("--objects", "person", 150),
        ("--objects", "tag", 10),
        ("--objects", "page", 0),
        ("--assocs", "likes", 3_000),
        ("--assocs", "friend", 199),
        ("--assocs", "follows", 199),
        ("--assocs", "loves", 0),
    ] {
        let exported = export(&site, GRAPH, what, kind);
        assert_eq!(exported.lines().count() - 1, rows, "{kind}");
        let file = site.file("again.csv", &exported);
        site.cluster.must(&["import", "copy", what, &file, "--type", kind]);
        assert_eq!(export(&site, "copy", what, kind), exported, "{kind}");
    }
    let header = |what: &str, kind: &str| export(&site, GRAPH, what, kind).lines().next().map(str::to_owned);
    assert_eq!(header("--objects", "tag").as_deref(), Some("id"));
    assert_eq!(header("--assocs", "knows").as_deref(), Some("id1,id2,time"));
    assert_eq!(header("--assocs", "likes").as_deref(), Some("id1,id2,time,data"));
    // The import of one direction has also written the inverse type.
    assert_eq!(
        export(&site, "copy", "--assocs", "followed_by"),
        export(&site, GRAPH, "--assocs", "followed_by")
    );
    let said = site.cluster.must(&["export", GRAPH, "--objects", "--type", "person"]);
    assert_eq!(said, export(&site, GRAPH, "--objects", "person"), "standard output is the file");
}

#[test]
fn a_page_far_into_a_list_is_read_by_its_index_and_beyond_the_bound_refused() {
    const LENGTH: u64 = 9_000;
    let site = Site::start(&SHAPE);
    let rows: String = (1..=LENGTH).map(|id2| format!("1,{id2},{id2}\n")).collect();
    let likes = site.file("likes.csv", &rows);
    import(&site, &["--assocs", &likes, "--type", "likes"]);
    let mut talk = site.talk(4);
    let mut page = |pos: u64, critical: bool| {
        let line = json!({"op": "assoc_range", "graph": GRAPH, "id1": 1, "type": "likes", "limit": 3});
        let options = json!({"pos": pos, "critical": critical});
        let (mut line, options) = (line, options.as_object().expect("an object").clone());
        line.as_object_mut().expect("an object").extend(options);
        talk.ask(&line)
    };
    for pos in [0, 8_000, 8_500, LENGTH - 2, LENGTH, 100_000] {
        // The newest association leads to the greatest id.
        let ids = (0..LENGTH).rev().map(|id| id + 1).skip(pos as usize).take(3);
        let expected: Vec<_> = ids.map(|id| json!([id, id])).collect();
        for critical in [true, false] {
            let answer = page(pos, critical);
            let more = pos + 3 < LENGTH;
            assert_eq!(answer, json!({"out": expected, "more": more}), "{pos}, critical: {critical}");
        }
    }
    let error = page(100_001, false)["error"].clone();
    assert_eq!(error["code"], "out_of_range", "{error}");
    assert!(error["message"].as_str().is_some_and(|it| it.contains("at most 100000")), "{error}");
    assert!(error["help"].as_str().is_some_and(|it| it.contains("`after`")), "{error}");
}

#[test]
fn the_ticket_of_an_import_shows_all_rows_at_once() {
    let site = Site::start(&["--groups", "2", "--nodes", "2", "--partitions", "8"]);
    let people: String = (1..=40).map(|id| format!("{id},\"{{\"\"name\"\":\"\"p\"\"}}\"\n")).collect();
    let people = site.file("people.csv", &people);
    let edges =
        |round: u64| -> String { (1..=40).map(|id| format!("{id},{},{round}\n", id % 40 + 1)).collect() };
    let objects = ["--objects", people.as_str(), "--type", "person"];
    let mut talk = site.talk(8);
    for round in 1..=4 {
        let follows = site.file("follows.csv", &edges(round));
        let tickets: Vec<Value> = match round {
            // The objects exist by then, so that nothing is written. Their ticket shows them all the same.
            1 | 2 => vec![import(&site, &objects)["ticket"].clone()],
            _ => Vec::new(),
        };
        let written = import(&site, &["--assocs", &follows, "--type", "follows"])["ticket"].clone();
        for group in [0, 1] {
            let shown = |fields: Value, ticket: &Value| {
                let mut line = json!({"graph": GRAPH, "ticket": ticket, "group": group});
                line.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
                line
            };
            for ticket in &tickets {
                let ids: Vec<u64> = (1..=40).collect();
                let found = talk.must(&shown(json!({"op": "object_get", "ids": ids}), ticket));
                assert!(found["objects"].as_array().expect("a list").iter().all(Value::is_object), "{found}");
            }
            for id in 1..=40 {
                let line = shown(json!({"op": "assoc_range", "id1": id, "type": "follows"}), &written);
                assert_eq!(talk.must(&line)["out"], json!([[id % 40 + 1, round]]));
                let line = shown(json!({"op": "connections", "id": id, "edge_type": "follows"}), &written);
                assert_eq!(talk.must(&line)["ids"], json!([id % 40 + 1]));
            }
        }
    }
    let text = site.cluster.must(&[&["import", GRAPH], &objects[..]].concat());
    assert!(text.lines().any(|line| line.starts_with("ticket ")), "{text}");
    let dry = import(&site, &[&objects[..], &["--dry-run"]].concat());
    assert_eq!(dry["ticket"], Value::Null);
    // A member that is not shown may have been written too recently; one that a critical read does not show was not.
    let unknown = json!({"op": "connections", "graph": GRAPH, "id": 4_711, "edge_type": "follows"});
    let mut critical = unknown.clone();
    critical["critical"] = json!(true);
    for (line, has_advice) in [(unknown, true), (critical, false)] {
        let error = talk.ask(&line)["error"].clone();
        assert_eq!(error["code"], "member_not_found", "{error}");
        let help = error["help"].as_str().expect("help");
        assert_eq!(help.contains("within 2 seconds") && help.contains("ticket"), has_advice, "{help}");
    }
}
