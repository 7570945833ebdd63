//! Tests of locks, version numbers, and the files of killed loads.

use super::*;
use kith_types::ErrorCode;
use kith_wire::documents::{
    ClusterDocument, ComponentDocument, DOCUMENT_FORMAT, DefinitionDocument, HoldsDocument, StoreDocument,
    VersionDocument,
};

fn store(folder: &Path) -> ObjectStore {
    ObjectStore { objects: open_objects(folder.to_str().unwrap()).unwrap() }
}

fn graph(version: u64) -> StoreDocument {
    let component = ComponentDocument {
        name: "connection".to_owned(),
        role: "undirected".to_owned(),
        version,
        manifest_hash: String::new(),
        columns: Vec::new(),
        members: 0,
        edges: 0,
        bytes: 0,
        loaded_at: 0,
        schema: None,
        folder: None,
        url: None,
    };
    let version = VersionDocument {
        version,
        state: "retained".to_owned(),
        components: vec![component],
        records: 0,
        bytes: 0,
        pushed_at: 0,
        held: false,
        excluded: Vec::new(),
    };
    StoreDocument {
        format: DOCUMENT_FORMAT,
        name: "v".to_owned(),
        charged_to: String::new(),
        definition: DefinitionDocument::new(HoldsDocument::Graph),
        version_last: version.version,
        versions: vec![version],
        running: None,
        frozen: None,
        cancelled: Vec::new(),
        history: Vec::new(),
    }
}

#[test]
fn two_loads_of_one_graph_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let held = store(folder.path()).lock("v", Work::Load("load-1")).unwrap();
    assert_eq!(
        store(folder.path()).lock("v", Work::Load("load-1")).unwrap_err().code,
        ErrorCode::LoadRunning
    );
    store(folder.path()).lock("w", Work::Load("load-1")).unwrap();
    drop(held);
    store(folder.path()).lock("v", Work::Load("load-1")).unwrap();
}

#[test]
fn a_second_push_learns_the_id_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let held = store(folder.path()).lock("people", Work::Push("push-1")).unwrap();
    let error = store(folder.path()).lock("people", Work::Push("push-2")).unwrap_err();
    assert_eq!(error.code, ErrorCode::PushRunning);
    assert_eq!(error.message, "push-1 of store \"people\" is under way");
    drop(held);
    store(folder.path()).lock("people", Work::Push("push-2")).unwrap();
}

#[test]
fn what_a_killed_load_built_is_removed_and_what_serves_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let locked = store(folder.path()).lock("v", Work::Load("load-1")).unwrap();
    let built = |version: u64| folder.path().join("v/connection").join(version.to_string());
    for version in [5, 9] {
        fs::create_dir_all(built(version)).unwrap();
    }
    let staging = folder.path().join("v/school/.staging");
    fs::create_dir_all(&staging).unwrap();
    locked.mark_unfinished(9).unwrap();
    locked.clear_unfinished(Some(&graph(5))).unwrap();
    assert!(built(5).exists() && !built(9).exists() && !staging.exists());
    // The load was killed between its commit and its end, so its version is served.
    locked.mark_unfinished(5).unwrap();
    locked.clear_unfinished(Some(&graph(5))).unwrap();
    assert!(built(5).exists());
    // Without a marker nothing is removed, because the topology may lag behind a commit.
    locked.clear_unfinished(None).unwrap();
    assert!(built(5).exists());
}

#[test]
fn versions_grow_whatever_the_clock_says() {
    let folder = tempfile::tempdir().unwrap();
    let locked = store(folder.path()).lock("v", Work::Load("load-1")).unwrap();
    let now = locked.next_version(None).unwrap();
    assert!(1_700_000_000_000 < now, "milliseconds since 1970: {now}");
    let ahead = now + 1_000_000_000;
    assert_eq!(locked.next_version(Some(&graph(ahead))), Ok(ahead + 1));
    fs::create_dir_all(folder.path().join("v/school").join((ahead + 5).to_string())).unwrap();
    assert_eq!(locked.next_version(Some(&graph(ahead))), Ok(ahead + 6));
}

#[test]
fn an_object_store_elsewhere_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = ClusterDocument {
        format: DOCUMENT_FORMAT,
        cluster_id: String::new(),
        epoch: 1,
        partitions: 24,
        groups: Vec::new(),
        object_store: folder.path().join("objects").display().to_string(),
        strategy: String::new(),
        listed: Vec::new(),
        partition_epochs: Vec::new(),
    };
    ObjectStore::open(&cluster, |_| Ok(())).unwrap();
    ObjectStore::open(&cluster, |_| Ok(())).unwrap();
    cluster.object_store = folder.path().join("not/here").display().to_string();
    assert_eq!(ObjectStore::open(&cluster, |_| Ok(())).unwrap_err().code, ErrorCode::ObjectStoreUnreachable);
}
