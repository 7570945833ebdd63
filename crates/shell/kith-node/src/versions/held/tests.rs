//! Tests of which versions and files are kept, and for how long.

use super::{open_versions::VERSION_GRACE, *};
use crate::versions::throttle::Throttle;
use kith_files::objects::Objects;
use kith_net::security::Dialer;
use kith_wire::documents::{
    ClusterDocument, DOCUMENT_FORMAT, DefinitionDocument, HoldsDocument, KeptDocument,
};
use std::{fs, path::Path, time::Instant};
use tokio_util::sync::CancellationToken;

fn topology(revision: u64, stores: Vec<ServedDocument>, kept: Vec<ServedDocument>) -> TopologyDocument {
    let cluster = ClusterDocument {
        format: DOCUMENT_FORMAT,
        cluster_id: String::new(),
        epoch: 1,
        partitions: 24,
        groups: vec![],
        object_store: String::new(),
        strategy: String::new(),
        listed: vec![],
        partition_epochs: vec![],
    };
    TopologyDocument {
        format: DOCUMENT_FORMAT,
        revision,
        cluster,
        nodes: vec![],
        routers: vec![],
        stores,
        kept: kept.into_iter().map(|at| KeptDocument { is_whole: true, at }).collect(),
        live: vec![],
        types: Default::default(),
        leaders: vec![],
        databases: vec![],
        rebalance: None,
    }
}

fn village(version: u64, components: &[u64]) -> ServedDocument {
    let component = |version: &u64| ComponentDocument {
        name: "connection".into(),
        role: "undirected".into(),
        version: *version,
        manifest_hash: String::new(),
        columns: vec![],
        members: 0,
        edges: 0,
        bytes: 0,
        loaded_at: 0,
        schema: None,
        folder: None,
        url: None,
    };
    ServedDocument {
        format: DOCUMENT_FORMAT,
        name: "village".into(),
        definition: DefinitionDocument::new(HoldsDocument::Graph),
        version,
        components: components.iter().map(component).collect(),
        excluded: vec![],
    }
}

fn held(folder: &Path) -> HeldStores {
    let partition_count = PartitionCount::new(24).unwrap();
    HeldStores::new(
        ComponentFolders::new(folder.to_owned(), partition_count),
        Origins::new(
            Objects::named("nowhere").unwrap(),
            Throttle::new(None, CancellationToken::new()),
            Dialer::default(),
        ),
        partition_count,
        PartitionOwnership::of(&topology(1, vec![], vec![]).cluster, 0),
    )
}

#[test]
fn files_that_the_topology_names_are_kept_also_if_they_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let paths =
        ["village/connection/7", "village/connection/6", "village/connection/5", "hamlet/connection/1"];
    for path in paths {
        fs::create_dir_all(folder.path().join(path)).unwrap();
    }
    held(folder.path())
        .remover
        .retire(&topology(1, vec![village(9, &[7])], vec![village(8, &[6])]), Instant::now());
    let there = paths.map(|path| folder.path().join(path).exists());
    assert_eq!(there, [true, true, false, false]);
}

#[test]
fn what_is_half_fetched_stays_while_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let held = held(folder.path());
    let there = |paths: &[&str]| paths.iter().map(|it| folder.path().join(it).exists()).collect::<Vec<_>>();
    let paths = ["village/connection/.7.fetching", "village/connection/.7.aside"];
    let begin = || paths.map(|path| fs::create_dir_all(folder.path().join(path)).unwrap());
    let pushed = |revision| {
        let mut topology = topology(revision, vec![], vec![village(8, &[7])]);
        topology.kept[0].is_whole = false;
        topology
    };
    begin();
    held.remover.retire(&pushed(5), Instant::now());
    assert_eq!(there(&paths), [true, true], "the push will ask for the version again");
    held.remover.retire(&topology(6, vec![], vec![]), Instant::now());
    assert_eq!(there(&paths), [false, false], "the push has ended");
    // The version is open, so no file of it is missing unless a rebalance copies partitions.
    held.opener.prepare(&village(8, &[]), 7, &PrepareOptions::default(), &mut |_, _, _| {}).unwrap();
    begin();
    let mut rebalanced = topology(8, vec![village(8, &[7])], vec![]);
    rebalanced.rebalance = Some("r".to_owned());
    held.remover.retire(&rebalanced, Instant::now());
    assert_eq!(there(&paths), [true, true]);
    held.remover.retire(&topology(9, vec![village(8, &[7])], vec![]), Instant::now());
    assert_eq!(there(&paths), [false, false]);
}

#[test]
fn a_version_is_held_while_it_is_named_and_for_a_grace_after() {
    let folder = tempfile::tempdir().unwrap();
    let (held, start) = (held(folder.path()), Instant::now());
    for version in [1, 2, 3] {
        held.opener
            .prepare(&village(version, &[]), 5, &PrepareOptions::default(), &mut |_, _, _| {})
            .unwrap();
    }
    let here = || [1, 2, 3].map(|version| held.open.get("village", version).is_some());
    let late = start + VERSION_GRACE;
    // After a rollback from 3 to 2, version 2 is served, 3 is kept and 1 is not.
    let rolled_back = topology(9, vec![village(2, &[])], vec![village(3, &[])]);
    held.remover.retire(&rolled_back, start);
    assert_eq!(here(), [true, true, true]);
    assert_eq!(held.served(&rolled_back), [("village".to_owned(), 2)]);
    held.remover.retire(&rolled_back, late);
    assert_eq!(here(), [false, true, true]);
}

#[test]
fn a_version_that_the_topology_cannot_know_yet_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (held, start) = (held(folder.path()), Instant::now());
    held.opener.prepare(&village(4, &[]), 8, &PrepareOptions::default(), &mut |_, _, _| {}).unwrap();
    for now in [start, start + VERSION_GRACE * 2] {
        held.remover.retire(&topology(7, vec![], vec![]), now);
        assert!(held.open.get("village", 4).is_some());
    }
    held.remover.retire(&topology(8, vec![], vec![]), start);
    held.remover.retire(&topology(8, vec![], vec![]), start + VERSION_GRACE);
    assert!(held.open.get("village", 4).is_none());
}
