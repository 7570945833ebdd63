//! Tests of whole loads: their results, the files that remain, and their messages.

use super::*;
use crate::rows::graph::ColumnSpec;
use kith_schema::ColumnKind;
use kith_types::{ErrorCode, PartitionCount, StoreVersion};
use std::path::PathBuf;
use tempfile::TempDir;

fn options(dir: &TempDir, version: u64) -> LoadOptions {
    let partitions = PartitionCount::new(4).unwrap();
    LoadOptions::new("people", StoreVersion(version), partitions, dir.path().join("out"))
}

fn file(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn load(options: &LoadOptions) -> Result<LoadReport, LoadError> {
    load_graph(options, &mut |_| {})
}

/// The folders and files under a folder, without those whose names begin with a dot.
fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// The social test data; `None`, with a message, if it is not installed.
fn social(name: &str) -> Option<PathBuf> {
    let data = std::env::var_os("KITH_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"), PathBuf::from);
    let path = data.join("social").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not installed (see KITH_DATA)", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn a_load_builds_every_component_of_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&dir, 7);
    options.edges = vec![
        file(&dir, "a.csv", "src,dst,created_ms\n1,2,10\n2,1,20\n3,3,0\n"),
        file(&dir, "b.tsv", "src\tdst\tcreated_ms\n2\t9\t30\n2\t9\t30\n"),
    ];
    options.edge_columns.columns = vec!["created_ms:time".parse().unwrap()];
    options.entities = vec![file(
        &dir,
        "e.csv",
        "member,kind,entity,year\n1,school,5,2017\n2,school,5,2019\n7,company,5,0\n",
    )];
    options.entity_columns = vec![ColumnSpec {
        name: "year".into(),
        kind: ColumnKind::U64,
        unit: crate::rows::graph::TimeUnit::Millis,
        position: None,
    }];
    options.members = vec![file(&dir, "m.csv", "name,id\n\"B, A\",1\nC,100\n")];
    let mut events = Vec::new();
    let report = load_graph(&options, &mut |progress| {
        events.push(match progress {
            LoadProgress::Reading(now) => now.path.file_name().unwrap().to_str().unwrap().to_owned(),
            LoadProgress::Building { component, progress } => {
                format!("{component} {}", progress.partitions_done)
            }
        });
    })
    .unwrap();

    let built: Vec<(&str, u64, u64, u64)> = report
        .components
        .iter()
        .map(|(manifest, built)| (manifest.component.as_str(), built.members, built.edges, built.entities))
        .collect();
    assert_eq!(
        built,
        [("connection", 3, 2, 0), ("company", 1, 1, 1), ("school", 2, 2, 1), ("members", 2, 0, 0)]
    );
    let connection = report.components[0].1;
    assert_eq!((connection.self_loops, connection.both_orders, connection.duplicates), (1, 1, 1));
    let rows: Vec<(FileRole, u64, u64)> =
        report.files.iter().map(|file| (file.role, file.report.rows, file.self_loops)).collect();
    assert_eq!(
        rows,
        [
            (FileRole::Edges, 3, 1),
            (FileRole::Edges, 2, 0),
            (FileRole::Entities, 3, 0),
            (FileRole::Members, 2, 0)
        ]
    );
    let graph = dir.path().join("out/people");
    assert_eq!(names(&graph), ["company", "connection", "members", "school"]);
    for (manifest, _) in &report.components {
        let dir = version_dir(&options.component_dir(&manifest.component), StoreVersion(7));
        assert_eq!(&Manifest::read(&dir).unwrap(), manifest);
    }
    assert!(events.contains(&"a.csv".to_owned()) && events.contains(&"members 4".to_owned()), "{events:?}");
}

#[test]
fn a_dry_run_checks_everything_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&dir, 1);
    options.dry_run = true;
    options.edges = vec![file(&dir, "a.csv", "1,2\n2,2\n")];
    options.entities = vec![file(&dir, "e.csv", "1,school,5\n")];
    options.members = vec![file(&dir, "m.csv", "id\n1\n")];
    let report = load(&options).unwrap();
    assert_eq!((report.components.len(), report.files.len()), (0, 3));
    assert_eq!((report.files[0].report.rows, report.files[0].self_loops), (2, 1));
    options.members = vec![file(&dir, "m.csv", "id\n1\nx\n")];
    assert_eq!(load(&options).unwrap_err().code(), ErrorCode::BadLines);
    assert!(!options.out_dir.exists());
}

#[test]
fn a_load_that_fails_late_leaves_the_old_version_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut good = options(&dir, 1);
    good.edges = vec![file(&dir, "a.csv", "1,2\n")];
    let old = load(&good).unwrap();
    let mut bad = options(&dir, 2);
    bad.edges.clone_from(&good.edges);
    bad.entities = vec![file(&dir, "e.csv", "1,school,5\n1,school,-5\n")];
    let error = load(&bad).unwrap_err();
    assert!(error.to_string().ends_with("line 2: entity is negative: \"1,school,-5\""), "{error}");
    let connection = bad.component_dir("connection");
    assert_eq!((names(&connection), names(&bad.component_dir("school"))), (vec!["1".to_owned()], vec![]));
    assert_eq!(Manifest::read(&version_dir(&connection, StoreVersion(1))).unwrap(), old.components[0].0);
    bad.entities = vec![file(&dir, "e.csv", "1,school,5\n")];
    load(&bad).unwrap();
    assert_eq!(names(&connection), ["1", "2"]);
}

#[test]
fn a_killed_load_is_cleared_away_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&dir, 2);
    options.edges = vec![file(&dir, "a.csv", "1,2\n")];
    let staging = options.component_dir("connection").join(".staging");
    std::fs::create_dir_all(&staging).unwrap();
    std::fs::write(staging.join("p00000.both.data"), "half").unwrap();
    load(&options).unwrap();
    assert!(!staging.exists());
    let error = load(&options).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.help()),
        ("cannot build \"connection\"", "build under the next version number")
    );
    assert_eq!(names(&options.component_dir("connection")), ["2"], "what was there before stays");
}

#[test]
fn a_load_that_was_killed_before_its_commit_can_be_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = options(&dir, 1);
    let next = || next_version(&first.out_dir, "people", StoreVersion(0)).unwrap();
    assert_eq!(next(), StoreVersion(1));
    first.members = vec![file(&dir, "m.csv", "1\n")];
    load(&first).unwrap();
    assert_eq!(next_version(&first.out_dir, "people", StoreVersion(0)).unwrap(), StoreVersion(2));
    assert_eq!(next_version(&first.out_dir, "people", StoreVersion(8)).unwrap(), StoreVersion(9));
    assert_eq!(next_version(&first.out_dir, "others", StoreVersion(8)).unwrap(), StoreVersion(9));
}

#[test]
fn a_load_that_is_stopped_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&dir, 1);
    options.edges = vec![file(&dir, "a.csv", "1,2\n2,3\n")];
    options.entities = vec![file(&dir, "e.csv", "1,school,5\n")];
    let stop = options.stop.clone();
    let stopped = load_graph(&options, &mut |progress| {
        if let LoadProgress::Building { .. } = progress {
            stop.stop();
        }
    });
    let error = stopped.unwrap_err();
    assert!(matches!(&error, LoadError::Build { source: BuildError::Stopped, .. }), "{error}");
    assert_eq!((names(&options.component_dir("connection")), error.code()), (vec![], ErrorCode::BuildFailed));
}

#[test]
fn contradictory_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = |options: &LoadOptions| load(options).unwrap_err().to_string();
    let mut options = options(&dir, 1);
    assert_eq!(text(&options), "nothing to load: no file of edges, entities or members");
    options.entities = vec![file(&dir, "e.csv", "1,members,5\n")];
    assert_eq!(text(&options), "\"members\" is the name of the list of members already");
    options.edges = vec![file(&dir, "a.csv", "1,2\n")];
    options.entities = vec![file(&dir, "e.csv", "1,connection,5\n")];
    assert_eq!(text(&options), "\"connection\" is the name of an edge type already");
    options.edge_type = "members".to_owned();
    assert_eq!(text(&options), "\"members\" is the name of the list of members already");
    options.edge_type = "a b".to_owned();
    assert_eq!(text(&options), "\"a b\" cannot name an edge type (1 to 64 letters, digits, '_' or '-')");
    let kinds: Vec<String> = (0..300).map(|kind| format!("1,kind{kind},5\n")).collect();
    options.edge_type = "connection".to_owned();
    options.entities = vec![file(&dir, "e.csv", &kinds.concat())];
    assert!(text(&options).ends_with("e.csv has more than 256 entity kinds"));
    assert_eq!(names(&dir.path().join("out/people/connection")), [""; 0]);
}

#[test]
fn an_importer_s_file_with_self_loops_gives_the_normal_component() {
    let Some(folder) = social("facebook-pages") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut options = LoadOptions { edge_type: "likes".to_owned(), ..options(&dir, 1) };
    options.edges = vec![folder.join("edges.csv.gz")];
    let clean = load(&options).unwrap();
    options.out_dir = dir.path().join("raw");
    options.memory_bytes = 1 << 20;
    options.edges = vec![folder.join("raw-with-self-loops.csv.gz")];
    let raw = load(&options).unwrap();
    let (clean_summary, raw_summary) = (clean.components[0].1, raw.components[0].1);
    assert_eq!((clean_summary.members, clean_summary.edges), (22_470, 170_823));
    assert_eq!((raw_summary.self_loops, raw.files[0].report.rows), (179, 171_002));
    assert!(raw_summary.spilled_runs > 1);
    assert_eq!(clean.components[0].0.hash(), raw.components[0].0.hash());
}

#[test]
fn the_graphs_of_the_test_data_load_whole() {
    let Some(folder) = social("ldbc-sf0.1") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(&dir, 1);
    options.edges = vec![folder.join("edges.csv.gz")];
    options.edge_columns.columns = vec!["created_ms:time".parse().unwrap()];
    options.entities = vec![folder.join("entities.csv.gz")];
    options.members = vec![folder.join("nodes.csv.gz")];
    let report = load(&options).unwrap();
    let built =
        |name: &str| report.components.iter().find(|(manifest, _)| manifest.component == name).unwrap().1;
    assert_eq!((built("connection").edges, built("connection").members), (14_073, 1_528 - 171));
    assert_eq!(built("members").members, 1_528);
    assert_eq!(
        names(&dir.path().join("out/people")),
        ["company", "connection", "interest", "members", "place", "university"]
    );

    let Some(folder) = social("facebook-pages") else { return };
    options.out_dir = dir.path().join("pages");
    options.edges = vec![folder.join("edges.csv.gz")];
    options.edge_columns.columns.clear();
    options.entities = vec![folder.join("entities.csv.gz")];
    options.members = vec![folder.join("nodes.csv.gz")];
    let report = load(&options).unwrap();
    let kinds: Vec<(&str, u64, u64)> = report
        .components
        .iter()
        .map(|(manifest, built)| (manifest.component.as_str(), built.members, built.entities))
        .collect();
    assert_eq!(kinds[0], ("connection", 22_470, 0));
    assert_eq!(kinds[1], ("page_type", 22_470, 4));
    assert_eq!((kinds[2].0, kinds[2].2), ("word", 4_714));
    assert_eq!(kinds[3], ("members", 22_470, 0));
}
