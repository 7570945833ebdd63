//! Real data: the social networks of LDBC, imported into live graphs, with reference answers and a stream of updates.
//!
//! By default, the tests import only a part of the data, check one association answer in five, and apply a part of the
//! updates. With `KITH_TEST_FULL=1` (`make test-full`), they import and check everything.

use super::site::Site;
use crate::support::{
    data, is_full,
    reference::{Reference, differences, lines},
};
use serde_json::{Value, json};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

const GRAPH: &str = "ldbc-sf0.1";
const CONCURRENCY: u32 = 32;

const TYPES: &str = r#"
[object.person]
[association.knows]
symmetric = true
[association.likes_post]
inverse = "liked_by_post"
adjacency = false
[association.liked_by_post]
adjacency = false
[association.likes_comment]
inverse = "liked_by_comment"
adjacency = false
[association.liked_by_comment]
adjacency = false
"#;

/// Imports a file. Returns the number of new rows.
fn import(site: &Site, graph: &str, file: &str, rest: &[&str]) -> u64 {
    let checkpoint = site.file("checkpoint", "");
    let arguments = [&["import", graph, "--checkpoint", &checkpoint, "-o", "json"], rest, &[file]].concat();
    let said: Value = serde_json::from_str(&site.cluster.must(&arguments)).expect("the output is JSON");
    assert_eq!((&said["existed"], &said["dropped"]), (&json!(0), &json!([])), "{said}");
    said["added"].as_u64().expect("a count")
}

#[test]
fn the_reference_answers_are_reproduced() {
    let Some(data) = data() else { return };
    // With one partition, a two-sided write takes one commit, which is fast enough for every run. Other tests use more
    // partitions.
    let partitions = if is_full() { "8" } else { "1" };
    let site = Site::start_empty(&["--groups", "1", "--nodes", "2", "--partitions", partitions]);
    assert!(site.apply(GRAPH, TYPES, &[]).status.success());
    let file = |name: &str| data.join("ldbc-sf0.1").join(name).display().to_string();
    let added = import(&site, GRAPH, &file("edges.csv.gz"), &["--type", "knows", "--assocs"]);
    assert_eq!(added, 14_073);
    let added =
        import(&site, GRAPH, &file("nodes.csv.gz"), &["--type", "person", "--columns", "id", "--objects"]);
    assert_eq!(added, 1_528);
    graph_answers(&site);
    let answers = lines(&data.join("answers/ldbc-sf0.1.assoc.jsonl.gz"));
    let records: Vec<Value> = answers.map(|line| serde_json::from_str(&line).expect("a record")).collect();
    let records: Vec<Value> = records.into_iter().step_by(if is_full() { 1 } else { 5 }).collect();
    for kind in ["post", "comment"] {
        let rows = likes(&data, kind, &records);
        let csv = site.file(&format!("{kind}.csv"), &rows);
        import(&site, GRAPH, &csv, &["--type", &format!("likes_{kind}"), "--assocs"]);
    }
    association_answers(&site, &records);
}

/// Returns the likes of posts or comments as CSV; by default only those in the lists that `records` describe.
fn likes(data: &Path, kind: &str, records: &[Value]) -> String {
    let ids = |name: String| -> BTreeSet<u64> {
        let records = records.iter().filter(|record| record["type"] == *name);
        records.map(|record| record["id1"].as_u64().expect("an id")).collect()
    };
    let (members, objects) = (ids(format!("likes_{kind}")), ids(format!("liked_by_{kind}")));
    let mut rows = "id1,id2,time\n".to_owned();
    for line in lines(&data.join("ldbc-sf0.1/likes.csv.gz")).skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [member, _, object, time] = fields[..] else { panic!("four columns: {line}") };
        let id = |text: &str| text.parse::<u64>().expect("an id");
        let is_wanted = is_full() || members.contains(&id(member)) || objects.contains(&id(object));
        if fields[1] == kind && is_wanted {
            rows += &format!("{member},{object},{time}\n");
        }
    }
    rows
}

fn graph_answers(site: &Site) {
    let reference = Reference::open(GRAPH).expect("the data is there");
    let extra = json!({"edge_type": "knows", "critical": true});
    let mut cases = reference.cases(if is_full() { 100 } else { 12 }, &extra);
    // A live graph has no entities.
    cases.retain(|case| case.request.get("kind").is_none_or(|kind| kind == "connection"));
    // The reference answers call associations of this type connections.
    let of_connections = cases.iter_mut().filter(|case| case.request.get("kind").is_some());
    of_connections.for_each(|case| case.request["kind"] = json!("knows"));
    let requests: Vec<Value> = cases.iter().map(|case| case.request.clone()).collect();
    let (answers, _) = site.cluster.run(&requests, CONCURRENCY);
    let wrong = differences(&cases, &answers, &reference.edges());
    assert!(
        wrong.is_empty(),
        "{} of {} differ, as {:#?}",
        wrong.len(),
        cases.len(),
        &wrong[..wrong.len().min(5)]
    );
}

fn association_answers(site: &Site, records: &[Value]) {
    let mut cases = Vec::new();
    for record in records {
        let ask = |op: &str, fields: &Value| {
            let mut line = json!({"op": op, "graph": GRAPH, "id1": record["id1"], "type": record["type"], "critical": true});
            let fields = fields.as_object().expect("fields").iter().filter(|(name, _)| *name != "out");
            line.as_object_mut()
                .expect("an object")
                .extend(fields.map(|(name, value)| (name.clone(), value.clone())));
            line
        };
        cases.push((ask("assoc_count", &json!({})), "count", &record["count"]));
        for (op, field) in
            [("assoc_range", "range"), ("assoc_time_range", "time_range"), ("assoc_get", "get")]
        {
            cases.push((ask(op, &record[field]), "out", &record[field]["out"]));
        }
    }
    let requests: Vec<Value> = cases.iter().map(|(request, _, _)| request.clone()).collect();
    let (answers, _) = site.cluster.run(&requests, CONCURRENCY);
    for ((request, field, expected), answer) in cases.iter().zip(&answers) {
        assert_eq!(&answer[*field], *expected, "{request}: {answer}");
    }
}

/// The kinds of objects. In the data, each kind has its own ids, but all objects of a graph share one id space.
#[derive(Clone, Copy)]
enum Kind {
    Person,
    Post,
    Comment,
    Forum,
}

impl Kind {
    /// Returns the id in the graph of the object with this id in the data.
    fn id(self, text: &str) -> u64 {
        text.parse::<u64>().expect("an id") * 4 + self as u64
    }
}

/// The times and ids of an association list, in the order of the list.
type List = BTreeSet<(Reverse<u64>, u64)>;

/// The expected content of the graph.
#[derive(Default)]
struct Network {
    objects: BTreeMap<u64, (&'static str, Value)>,
    /// The lists, by type and `id1`.
    lists: BTreeMap<(&'static str, u64), List>,
}

const NETWORK: &str = "network";
const NETWORK_TYPES: &str = r#"
[object.person]
fields = { name = "text", created = "timestamp" }
[object.post]
fields = { content = { type = "text", nullable = true }, created = "timestamp" }
[object.comment]
fields = { content = { type = "text", nullable = true }, created = "timestamp" }
[object.forum]
fields = { title = "text", created = "timestamp" }
[association.knows]
symmetric = true
[association.likes_post]
inverse = "liked_by_post"
[association.likes_comment]
inverse = "liked_by_comment"
[association.member]
inverse = "member_of"
[association.wrote]
inverse = "written_by"
[association.replies]
"#;

impl Network {
    /// Adds an object. Returns the line that adds it to the graph.
    fn object(&mut self, kind: &'static str, id: u64, data: Value) -> Value {
        let line = json!({"op": "object_add", "graph": NETWORK, "type": kind, "id": id, "data": data});
        assert!(self.objects.insert(id, (kind, data)).is_none(), "object {id} is new");
        line
    }

    /// Adds an association and its inverse. Returns the line that adds them to the graph.
    fn association(&mut self, kind: &'static str, id1: u64, id2: u64, time: &str) -> Value {
        let time: u64 = time.parse().expect("a time");
        let inverse = match kind {
            "knows" => Some("knows"),
            "likes_post" => Some("liked_by_post"),
            "likes_comment" => Some("liked_by_comment"),
            "member" => Some("member_of"),
            "wrote" => Some("written_by"),
            _ => None,
        };
        let directions = [Some((kind, id1, id2)), inverse.map(|kind| (kind, id2, id1))];
        for (kind, id1, id2) in directions.into_iter().flatten() {
            let list = self.lists.entry((kind, id1)).or_default();
            list.retain(|(_, other)| *other != id2);
            list.insert((Reverse(time), id2));
        }
        json!({"op": "assoc_add", "graph": NETWORK, "id1": id1, "type": kind, "id2": id2, "time": time})
    }

    /// Applies an update of the stream. Returns the lines that apply it to the graph.
    fn update(&mut self, update: &str) -> Vec<Value> {
        use Kind::{Comment, Forum, Person, Post};
        let fields: Vec<&str> = update.split('|').collect();
        let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
        let created = |time: &str| json!(time.parse::<u64>().expect("a time"));
        let f = &fields[3..];
        match fields[2] {
            "1" => {
                let data = json!({"name": format!("{} {}", f[1], f[2]), "created": created(f[5])});
                vec![self.object("person", Person.id(f[0]), data)]
            }
            "2" => vec![self.association("likes_post", Person.id(f[0]), Post.id(f[1]), f[2])],
            "3" => vec![self.association("likes_comment", Person.id(f[0]), Comment.id(f[1]), f[2])],
            "4" => {
                vec![self.object("forum", Forum.id(f[0]), json!({"title": f[1], "created": created(f[2])}))]
            }
            "5" => vec![self.association("member", Forum.id(f[0]), Person.id(f[1]), f[2])],
            "6" => {
                let (id, data) = (Post.id(f[0]), json!({"content": text(f[6]), "created": created(f[2])}));
                vec![self.object("post", id, data), self.association("wrote", Person.id(f[8]), id, f[2])]
            }
            "7" => {
                let (id, data) = (Comment.id(f[0]), json!({"content": text(f[4]), "created": created(f[1])}));
                let to = if f[8] == "-1" { Comment.id(f[9]) } else { Post.id(f[8]) };
                vec![
                    self.object("comment", id, data),
                    self.association("wrote", Person.id(f[6]), id, f[1]),
                    self.association("replies", id, to, f[1]),
                ]
            }
            "8" => vec![self.association("knows", Person.id(f[0]), Person.id(f[1]), f[2])],
            other => panic!("an update of type {other}"),
        }
    }
}

#[test]
fn the_updates_of_a_network_are_applied_in_time_order() {
    let Some(data) = data() else { return };
    let site = Site::start_empty(&["--groups", "1", "--nodes", "2", "--partitions", "4"]);
    assert!(site.apply(NETWORK, NETWORK_TYPES, &[]).status.success());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = data.join("ldbc-sf0.003.tar.gz");
    let unpacked = Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(unpacked.expect("tar runs").success());
    let folder = folder.path().join("ldbc-sf0.003");
    let mut network = Network::default();
    base(&site, &folder, &mut network);
    let mut updates = Vec::new();
    for name in ["person", "forum"] {
        updates.extend(plain(&folder.join(format!("update_streams/updateStream_0_0_{name}.csv"))));
    }
    updates.sort_by_key(|update| update.split('|').next().and_then(|time| time.parse::<u64>().ok()));
    assert_eq!(updates.len(), 28 + 818 + 656 + 155 + 2_507 + 1_271 + 1_296 + 189);
    let is_kept = |(index, update): &(usize, &String)| {
        is_full() || index % 10 == 0 || matches!(update.split('|').nth(2), Some("1" | "2" | "3" | "8"))
    };
    let kept = updates.iter().enumerate().filter(is_kept);
    let writes: Vec<Value> = kept.flat_map(|(_, update)| network.update(update)).collect();
    let (answers, exit) = site.cluster.run(&writes, CONCURRENCY);
    let failed: Vec<&Value> = answers.iter().filter(|answer| answer.get("error").is_some()).collect();
    assert!(
        exit == 0 && failed.is_empty(),
        "{} of {} failed: {:?}",
        failed.len(),
        writes.len(),
        failed.first()
    );
    verify(&site, &network);
}

/// Returns the lines of a file without the header.
fn plain(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

/// Imports the network as it is before the updates; by default only persons, friendships and likes.
fn base(site: &Site, folder: &Path, network: &mut Network) {
    use Kind::{Comment, Forum, Person, Post};
    let file = |name: &str| plain(&folder.join(format!("vanilla/dynamic/{name}_0_0.csv")));
    let parts = if is_full() { 4 } else { 1 };
    let objects = [("person", Person), ("post", Post), ("comment", Comment), ("forum", Forum)];
    for (kind, ids) in objects.into_iter().take(parts) {
        let mut rows = "id,data\n".to_owned();
        for line in file(kind) {
            let f: Vec<&str> = line.split('|').collect();
            let created = |time: &str| json!(time.parse::<u64>().expect("a time"));
            let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
            let data = match kind {
                "person" => json!({"name": format!("{} {}", f[1], f[2]), "created": created(f[5])}),
                "post" => json!({"content": text(f[6]), "created": created(f[2])}),
                "comment" => json!({"content": text(f[4]), "created": created(f[1])}),
                _ => json!({"title": f[1], "created": created(f[2])}),
            };
            rows += &format!("{},\"{}\"\n", ids.id(f[0]), data.to_string().replace('"', "\"\""));
            network.object(kind, ids.id(f[0]), data);
        }
        import(site, NETWORK, &site.file("rows.csv", &rows), &["--type", kind, "--objects"]);
    }
    let associations = [
        ("person_knows_person", "knows", Person, Person),
        ("person_likes_post", "likes_post", Person, Post),
        ("person_likes_comment", "likes_comment", Person, Comment),
        ("forum_hasMember_person", "member", Forum, Person),
    ];
    for (name, kind, from, to) in associations.into_iter().take(if is_full() { 4 } else { 3 }) {
        let mut rows = "id1,id2,time\n".to_owned();
        for line in file(name) {
            let f: Vec<&str> = line.split('|').collect();
            let (id1, id2) = (from.id(f[0]), to.id(f[1]));
            rows += &format!("{id1},{id2},{}\n", f[2]);
            network.association(kind, id1, id2, f[2]);
        }
        import(site, NETWORK, &site.file("rows.csv", &rows), &["--type", kind, "--assocs"]);
    }
}

/// Compares lists and objects with the graph; by default one in four, with `KITH_TEST_FULL=1` all of them.
fn verify(site: &Site, network: &Network) {
    let step = if is_full() { 1 } else { 4 };
    let mut cases = Vec::new();
    for ((kind, id1), list) in network.lists.iter().step_by(step) {
        let out: Vec<Value> = list.iter().map(|(Reverse(time), id2)| json!([id2, time])).collect();
        let ask = |op: &str| json!({"op": op, "graph": NETWORK, "id1": id1, "type": kind, "critical": true});
        cases.push((ask("assoc_count"), json!({"count": out.len()})));
        cases.push((ask("assoc_range"), json!({"out": out, "more": false})));
    }
    for (id, (kind, data)) in network.objects.iter().step_by(step) {
        let ask = json!({"op": "object_get", "graph": NETWORK, "id": id, "critical": true});
        cases.push((ask, json!({"type": kind, "data": data})));
    }
    let requests: Vec<Value> = cases.iter().map(|(request, _)| request.clone()).collect();
    let (answers, _) = site.cluster.run(&requests, CONCURRENCY);
    for ((request, expected), answer) in cases.iter().zip(&answers) {
        let found = match answer.get("object") {
            Some(object) => json!({"type": object["type"], "data": object["data"]}),
            None => answer.clone(),
        };
        assert_eq!(&found, expected, "{request}");
    }
}
