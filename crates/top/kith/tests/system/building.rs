//! A program builds by the library the same files as the command line does from the same rows, to the byte.

use crate::support;
use kith_build::{
    BuildSummary, ColumnValue, Destination, Duplicates, Failure, GraphBuilder, GraphOptions, LoadOptions,
    LoadReport, RowKey, RowSettings, RowValue, Rows, SchemaFrom, Shape, StoreBuilder, Target, load_graph,
    open_objects,
};
use kith_schema::{KeyType, KindRole, ValueType};
use kith_types::{ErrorCode, PartitionCount, StoreVersion};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use support::cluster::{Cluster, kith, text};

const PARTITIONS: u32 = 8;
const SCHEMA: &str = r#"{"fields":[{"name":"title","type":"text"},{"name":"score","type":"f64","nullable":true},{"name":"embed","type":"vector<f32,3>"}]}"#;

fn partitions() -> PartitionCount {
    PartitionCount::new(PARTITIONS).expect("it is not 0")
}

/// Every file below a folder by its name, but those whose name begins with a dot: locks and marks.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())) {
            let path = entry.expect("an entry").path();
            let is_mark = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if is_mark {
                continue;
            }
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder).expect("it lies in it").to_owned();
                    found.insert(name, fs::read(&path).expect("it can be read"));
                }
            }
        }
    }
    found
}

/// Compares without printing files.
fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    assert!(!one.is_empty(), "nothing was built");
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{} is another file", name.display());
    }
}

fn build(arguments: &[&str]) -> Value {
    let output = kith(arguments).args(["-o", "json"]).output().expect("kith runs");
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

/// A store of 500 rows, in a file and in memory, built by both.
fn check_store(
    (key, value): (KeyType, ValueType),
    settings: RowSettings,
    flags: &[&str],
    put: impl Fn(u64, &mut StoreBuilder) -> Result<String, Failure>,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let shape = Shape::stated(Some(key), Some(value), partitions());
    let library = folder.path().join("library");
    let target = Target { store: "pages", version: StoreVersion(7), out_dir: library.clone() };
    let mut builder = StoreBuilder::new(&target, &shape, &settings).expect("it begins");
    let lines: String = (0..500).map(|id| put(id, &mut builder).expect("a good row") + "\n").collect();
    let built = builder.finish(&mut |_| {}).expect("it is built");

    let (rows, command) = (folder.path().join("rows.jsonl"), folder.path().join("command"));
    fs::write(&rows, lines).expect("written");
    let (rows, out) = (rows.to_str().expect("text"), command.to_str().expect("text"));
    let (partitions, key, value) = (PARTITIONS.to_string(), key.to_string(), value.to_string());
    let mut arguments = vec!["store", "build", "pages", rows, "--out", out, "--version", "7"];
    arguments.extend(["--partitions", &partitions, "--key", &key, "--value", &value]);
    arguments.extend(flags);
    let reply = build(&arguments);
    assert_same(&library.join("7"), &command.join("7"));
    assert!(!library.join(".scratch").exists(), "nothing is left of the sort");
    assert_eq!(reply["manifest_hash"], built.manifest.hash());
    assert_eq!(
        (reply["records"].as_u64(), reply["bytes"].as_u64()),
        (Some(built.records()), Some(built.bytes()))
    );
    assert_eq!(reply["duplicates"].as_u64(), Some(built.duplicates));

    // By files, in the library.
    let files = folder.path().join("files");
    let out = open_objects(files.to_str().expect("text")).expect("a folder");
    let opened = Rows::open(&[rows.to_owned()], &settings, &shape, false).expect("it is there");
    let into = Destination { store: "pages", version: Some(StoreVersion(7)), objects: &out };
    opened.build_into(&into, None, &mut |_| {}).expect("it is built");
    assert_same(&files.join("7"), &command.join("7"));
}

#[test]
fn stores_of_text_are_built_alike_whatever_is_asked_of_them() {
    let settings = RowSettings { duplicates: Duplicates::Last, compress: Some(3), ..RowSettings::default() };
    let flags = ["--duplicates", "last", "--compress"];
    check_store((KeyType::String, ValueType::Text), settings, &flags, |id, builder| {
        let (key, value) =
            (format!("page:{}", id % 400), format!("the text of page {id} {}", "x".repeat(100)));
        builder.put(RowKey::Text(&key), RowValue::Text(&value))?;
        Ok(format!(r#"{{"key":"{key}","value":"{value}"}}"#))
    });
}

#[test]
fn stores_of_records_are_built_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("schema.json");
    fs::write(&file, SCHEMA).expect("written");
    let schema = SchemaFrom::Given(SCHEMA.parse().expect("a schema"));
    let settings = RowSettings { schema: Some(schema), ..RowSettings::default() };
    let flags = ["--schema", file.to_str().expect("text")];
    check_store((KeyType::Id, ValueType::Record), settings, &flags, |id, builder| {
        let score = if id % 3 == 0 { "null".to_owned() } else { format!("{id}.25") };
        let record = format!(r#"{{"title":"Page {id}","score":{score},"embed":[0.5,-1,{id}]}}"#);
        builder.put(RowKey::Id(id), RowValue::Json(&record))?;
        Ok(format!(r#"{{"key":{id},"value":{record}}}"#))
    });
}

#[test]
fn wrong_rows_of_a_program_are_refused_in_the_words_of_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let shape = Shape::stated(Some(KeyType::Id), None, partitions());
    let target = Target { store: "pages", version: StoreVersion(1), out_dir: folder.path().join("out") };
    let build = |settings: &RowSettings, rows: &[(RowKey<'_>, RowValue<'_>)]| {
        let mut builder = StoreBuilder::new(&target, &shape, settings)?;
        rows.iter().try_for_each(|(key, value)| builder.put(*key, *value))?;
        builder.finish(&mut |_| {})
    };
    let rows = [
        (RowKey::Id(1), RowValue::Text("one")),
        (RowKey::Text("x"), RowValue::Text("two")),
        (RowKey::Id(1), RowValue::Text("three")),
    ];
    let failure = build(&RowSettings::default(), &rows).unwrap_err();
    assert_eq!(
        (failure.code, failure.help.as_str()),
        (ErrorCode::BadRows, "correct them, or drop some with --max-errors")
    );
    assert_eq!(failure.wrong, ["rows row 2: key \"x\" is no id: it is not a number"]);
    let lenient = RowSettings { errors_max: 1, ..RowSettings::default() };
    assert_eq!(build(&lenient, &rows).unwrap_err().code, ErrorCode::DuplicateKey);
    assert_eq!(build(&lenient, &rows[1..2]).unwrap_err().code, ErrorCode::NoRows);
    assert!(
        files(&folder.path().join("out")).is_empty(),
        "nothing that could be taken for a version is left"
    );
    assert_eq!(build(&lenient, &rows[..2]).expect("one wrong row is allowed").records(), 1);
    assert_eq!(build(&lenient, &rows[..1]).unwrap_err().code, ErrorCode::BuildFailed, "it exists already");
    let records = Shape::stated(None, Some(ValueType::Record), partitions());
    let unknown = StoreBuilder::new(&target, &records, &lenient).err().expect("no schema");
    assert_eq!(unknown.code, ErrorCode::BadSchema);
}

#[test]
fn a_build_that_is_stopped_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (rows, out) = (folder.path().join("rows.csv"), folder.path().join("out"));
    fs::write(&rows, "key,value\na,b\n").expect("written");
    let settings = RowSettings::default();
    let inputs = [rows.to_str().expect("text").to_owned()];
    let shape = Shape::stated(None, None, partitions());
    let opened = Rows::open(&inputs, &settings, &shape, false).expect("it is there");
    settings.stop.stop();
    let target = Target { store: "pages", version: StoreVersion(1), out_dir: out.clone() };
    let failure = opened.build(&target, &mut |_| {}).unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), (ErrorCode::BuildFailed, "the build was stopped"));
    assert!(files(&out).is_empty());
}

/// Members 0 to 199 in a ring with a few chords, as lines and as rows.
fn edges() -> Vec<(u64, u64, u64)> {
    let ring = (0..200).map(|id| (id, (id + 1) % 200, 1_700_000_000_000 + id));
    ring.chain((0..50).map(|id| (id, id * 7 % 200, id))).chain([(5, 5, 1)]).collect()
}

/// The files of a graph: edges with a time, entities, and members without edges.
struct GraphFiles {
    edges: PathBuf,
    entities: PathBuf,
    members: PathBuf,
}

impl GraphFiles {
    fn write(folder: &Path) -> Self {
        let file = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let lines: String =
            edges().iter().map(|(src, dst, since)| format!("{src},{dst},{since}\n")).collect();
        Self {
            edges: file("edges.csv", format!("src,dst,since\n{lines}")),
            entities: file("entities.csv", "1,school,70\n2,school,70\n9,company,3\n".to_owned()),
            members: file("members.csv", "500\n501\n".to_owned()),
        }
    }

    /// Loads them with `kith load graph`; what it says.
    fn load(&self, cluster: &Cluster) -> Value {
        let [edges, entities, members] =
            [&self.edges, &self.entities, &self.members].map(|path| path.to_str().expect("text"));
        let load = ["load", "graph", edges, "--graph", "village", "--columns", "since:time"];
        let more = ["--entities", entities, "--members", members, "-o", "json"];
        serde_json::from_str(&cluster.must(&[&load[..], &more].concat())).expect("JSON")
    }

    /// Builds them as a program does.
    fn build(self, version: StoreVersion, out: &Path) -> LoadReport {
        let mut options = LoadOptions::new("village", version, partitions(), out.to_owned());
        options.edges = vec![self.edges];
        options.entities = vec![self.entities];
        options.members = vec![self.members];
        options.edge_columns.columns = vec!["since:time".parse().expect("a column")];
        load_graph(&options, &mut |_| {}).expect("it is built")
    }
}

/// Builds the same graph from rows, in another order; what became of its edges.
fn build_by_rows(version: StoreVersion, out: &Path) -> BuildSummary {
    let mut graph = GraphBuilder::new(GraphOptions::new("village", version, partitions(), out.to_owned()))
        .expect("a name");
    let since = ["since:time".parse().expect("a column")];
    let mut rows = graph.component("connection", KindRole::Undirected, &since).expect("it begins");
    for (src, dst, since) in edges().into_iter().rev() {
        rows.edge(src, dst, &[ColumnValue::Unsigned(since)]).expect("a good row");
    }
    let summary = rows.finish(&mut |_| {}).expect("it is built");
    for (kind, pairs) in [("school", &[(1, 70), (2, 70)][..]), ("company", &[(9, 3)][..])] {
        let mut rows = graph.component(kind, KindRole::Entity, &[]).expect("it begins");
        pairs.iter().for_each(|(member, entity)| rows.edge(*member, *entity, &[]).expect("a good row"));
        rows.finish(&mut |_| {}).expect("it is built");
    }
    let mut rows = graph.component("members", KindRole::MembersOnly, &[]).expect("it begins");
    [501, 500].iter().for_each(|id| rows.member(*id).expect("a good row"));
    rows.finish(&mut |_| {}).expect("it is built");
    graph.finish().expect("four components");
    summary
}

#[test]
fn graphs_are_built_alike_by_a_load_by_files_and_by_rows() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1", "--partitions", "8"]);
    let folder = tempfile::tempdir().expect("a folder");
    let files = GraphFiles::write(folder.path());
    let loaded = files.load(&cluster);
    let served = cluster.data().join("objects").join("village");
    let version = fs::read_dir(served.join("connection"))
        .expect("a component")
        .filter_map(|entry| entry.expect("an entry").file_name().to_str()?.parse::<u64>().ok());
    let version = StoreVersion(version.max().expect("a version"));

    let by_files = folder.path().join("files");
    let report = files.build(version, &by_files);
    assert_same(&by_files.join("village"), &served);
    assert_eq!(report.components.len(), loaded["components"].as_array().expect("components").len());

    let by_rows = folder.path().join("rows");
    let summary = build_by_rows(version, &by_rows);
    assert_eq!(loaded["components"][0]["edges"].as_u64(), Some(summary.edges));
    assert_eq!(loaded["components"][0]["self_loops"].as_u64(), Some(summary.self_loops));
    assert_same(&by_rows.join("village"), &served);
}

#[test]
fn a_graph_that_is_not_finished_leaves_no_component() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = GraphOptions::new("village", StoreVersion(1), partitions(), folder.path().to_owned());
    let mut graph = GraphBuilder::new(options.clone()).expect("a name");
    let mut rows = graph.component("follows", KindRole::Directed, &[]).expect("it begins");
    rows.edge(1, 2, &[]).expect("a good row");
    rows.finish(&mut |_| {}).expect("it is built");
    assert!(folder.path().join("village/follows/1").is_dir());

    let code = |failed: Result<_, Failure>| failed.err().map(|failure: Failure| failure.code);
    assert_eq!(code(graph.component("follows", KindRole::Entity, &[]).map(drop)), Some(ErrorCode::NameTaken));
    assert_eq!(
        code(graph.component("members", KindRole::Directed, &[]).map(drop)),
        Some(ErrorCode::NameTaken)
    );
    assert_eq!(code(graph.component("a b", KindRole::Directed, &[]).map(drop)), Some(ErrorCode::InvalidName));
    let mut loops = graph.component("loops", KindRole::Directed, &[]).expect("it begins");
    loops.edge(3, 3, &[]).expect("it is dropped");
    assert_eq!(code(loops.finish(&mut |_| {}).map(drop)), Some(ErrorCode::NoEdges));
    let mut dated = graph
        .component("dated", KindRole::Directed, &["since:time".parse().expect("a column")])
        .expect("it begins");
    let wrong = dated.edge(1, 2, &[ColumnValue::Text("yesterday")]).unwrap_err();
    assert_eq!(
        (wrong.code, wrong.message.as_str()),
        (ErrorCode::BadLines, "dated row 1: since is not of kind time")
    );
    drop(dated);
    drop(graph);
    assert!(files(folder.path()).is_empty());
    let named = GraphBuilder::new(GraphOptions { graph: "Village".to_owned(), ..options.clone() });
    assert_eq!(named.err().map(|failure| failure.code), Some(ErrorCode::InvalidName));
    let nothing = GraphBuilder::new(options).expect("a name").finish();
    assert_eq!(nothing.err().map(|failure| failure.code), Some(ErrorCode::NothingToLoad));
}
