//! Compares components with a naive twin that consists of maps.

use super::*;
use kith_engine::{ColumnFilter, ComponentReader, decode_list, list_count, lists_of};
use kith_schema::ColumnKind;
use kith_types::{Direction, PartitionId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn column(name: &str) -> Column {
    Column { name: name.to_owned(), kind: ColumnKind::U64 }
}

#[derive(Clone, Debug)]
enum Line {
    Edge(u64, u64, Vec<u64>),
    Member(u64),
}

/// The columns by neighbour, by (list, key).
type NaiveLists = BTreeMap<(&'static str, u64), BTreeMap<u64, Vec<u64>>>;

/// The content of a component, in maps.
#[derive(Debug, Default, PartialEq, Eq)]
struct Naive {
    lists: NaiveLists,
    members: BTreeSet<u64>,
    entities: u64,
    edges: u64,
    self_loops: u64,
    duplicates: u64,
    both_orders: u64,
}

fn naive(role: KindRole, lines: &[Line]) -> Naive {
    let mut twin = Naive::default();
    let mut orders: BTreeMap<(u64, u64), BTreeSet<bool>> = BTreeMap::new();
    for line in lines {
        let (src, dst, columns) = match line {
            Line::Member(id) => {
                twin.members.insert(*id);
                continue;
            }
            Line::Edge(src, dst, columns) => (*src, *dst, columns.clone()),
        };
        if src == dst && role != KindRole::Entity {
            twin.self_loops += 1;
            continue;
        }
        let undirected = role == KindRole::Undirected;
        let key = if undirected { (src.min(dst), src.max(dst)) } else { (src, dst) };
        let seen = orders.entry(key).or_default();
        match (seen.is_empty(), seen.insert(undirected && dst < src)) {
            (true, _) => twin.edges += 1,
            (false, true) => twin.both_orders += 1,
            (false, false) => twin.duplicates += 1,
        }
        let names = if undirected { ["both", "both"] } else { ["out", "in"] };
        for (name, from, to) in [(names[0], src, dst), (names[1], dst, src)] {
            let kept = twin.lists.entry((name, from)).or_default().entry(to).or_default();
            *kept = columns.clone().max(std::mem::take(kept));
        }
        twin.members.extend([src].into_iter().chain((role != KindRole::Entity).then_some(dst)));
    }
    if role == KindRole::Entity {
        twin.entities = twin.lists.keys().filter(|(list, _)| *list == "in").count() as u64;
    }
    twin
}

struct Setup<'a> {
    role: KindRole,
    partitions: u32,
    columns: usize,
    memory_bytes: usize,
    threads: usize,
    dir: &'a Path,
}

fn build(setup: &Setup<'_>, lines: &[Line]) -> (Manifest, BuildSummary) {
    let mut builder = ComponentBuilder::new(BuildOptions {
        graph: "people".to_owned(),
        name: "kind".to_owned(),
        version: StoreVersion(3),
        role: setup.role,
        partitions: PartitionCount::new(setup.partitions).unwrap(),
        columns: (0..setup.columns).map(|index| column(&format!("c{index}"))).collect(),
        memory_bytes: setup.memory_bytes,
        scratch_dir: setup.dir.join("scratch"),
        out_dir: setup.dir.join("kind"),
        threads: setup.threads,
    })
    .unwrap();
    for line in lines {
        match line {
            Line::Edge(src, dst, columns) => builder.edge(*src, *dst, columns).unwrap(),
            Line::Member(id) => builder.member(*id).unwrap(),
        }
    }
    builder.finish(&mut |_| {}).unwrap()
}

fn open(dir: &Path) -> ComponentReader {
    let dir = version_dir(&dir.join("kind"), StoreVersion(3));
    let count = Manifest::read(&dir).unwrap().partition_count.get();
    let partitions: Vec<PartitionId> = (0..count).map(PartitionId).collect();
    ComponentReader::open(&dir, &partitions).unwrap()
}

/// Reads everything back, and checks that it is in the right place and that postings mirror the lists.
fn read_back(reader: &ComponentReader, wanted: &Naive) -> (NaiveLists, BTreeSet<u64>) {
    let (mut lists, mut members) = (NaiveLists::new(), BTreeSet::new());
    let manifest = reader.manifest();
    for partition in manifest.partition_count.iter() {
        let files = reader.partition(partition).unwrap();
        let here = |id: &u64| partition_of_id(*id, manifest.partition_count) == partition;
        let ids = files.members().ids().unwrap();
        assert!(ids.iter().all(here), "members of another partition");
        members.extend(ids);
        for &list in lists_of(reader.graph().role) {
            let name = kith_engine::list_name(list);
            let lists_reader = files.list(list).unwrap();
            let mut pairs = 0;
            lists_reader
                .records
                .for_each(|key, value| {
                    let key = u64::from_le_bytes(key.try_into().unwrap());
                    assert!(here(&key), "a list of another partition");
                    pairs += list_count(value).unwrap();
                    lists.insert((name, key), read_list(value, &wanted.lists[&(name, key)]));
                })
                .unwrap();
            assert_eq!(lists_reader.postings.pairs(), pairs);
            let neighbours = wanted.lists.iter().filter(|((of, _), _)| *of == name);
            let neighbours: BTreeSet<u64> =
                neighbours.flat_map(|(_, list)| list.keys().copied()).chain([u64::MAX - 1]).collect();
            for neighbour in neighbours {
                let mut got = Vec::new();
                lists_reader.postings.keys_of(neighbour, files.members(), &mut got).unwrap();
                let holds = |&(&(of, key), list): &(&(&str, u64), &BTreeMap<u64, Vec<u64>>)| {
                    of == name && here(&key) && list.contains_key(&neighbour)
                };
                let expected: Vec<u64> =
                    wanted.lists.iter().filter(holds).map(|((_, key), _)| *key).collect();
                assert_eq!(got, expected, "postings of {neighbour} in {name} of {partition}");
            }
        }
    }
    (lists, members)
}

/// Decodes a list. A column value is found with a filter for exactly that value.
fn read_list(value: &[u8], wanted: &BTreeMap<u64, Vec<u64>>) -> BTreeMap<u64, Vec<u64>> {
    let width = wanted.values().next().map_or(0, Vec::len);
    let mut ids = Vec::new();
    decode_list(value, width, None, &mut ids).unwrap();
    let mut list: BTreeMap<u64, Vec<u64>> = ids.into_iter().map(|id| (id, Vec::new())).collect();
    for column in 0..width {
        let values: BTreeSet<u64> = wanted.values().map(|columns| columns[column]).collect();
        for low in values {
            let mut matching = Vec::new();
            decode_list(value, width, Some(ColumnFilter { column, low, high: low }), &mut matching).unwrap();
            matching.iter().for_each(|id| list.get_mut(id).unwrap().push(low));
        }
    }
    list
}

fn check(setup: &Setup<'_>, lines: &[Line]) -> (Manifest, BuildSummary) {
    let twin = naive(setup.role, lines);
    let (manifest, summary) = build(setup, lines);
    let reader = open(setup.dir);
    assert_eq!(reader.manifest(), &manifest);
    let (lists, members) = read_back(&reader, &twin);
    let counts = Naive {
        lists,
        members,
        entities: summary.entities,
        edges: summary.edges,
        self_loops: summary.self_loops,
        duplicates: summary.duplicates,
        both_orders: summary.both_orders,
    };
    assert_eq!(counts, twin);
    assert_eq!(summary.members, twin.members.len() as u64);
    assert_eq!(summary.bytes, manifest.files.iter().map(|file| file.bytes).sum::<u64>());
    (manifest, summary)
}

fn role() -> impl Strategy<Value = KindRole> {
    prop::sample::select(vec![KindRole::Undirected, KindRole::Directed, KindRole::Entity])
}

fn lines(columns: usize) -> impl Strategy<Value = Vec<Line>> {
    // Few different ids, so that edges are repeated in both orders, and a few large ones.
    let id = || prop_oneof![6 => 0u64..14, 1 => prop::sample::select(vec![1 << 40, u64::MAX])];
    let edge = (id(), id(), prop::collection::vec(prop_oneof![0u64..4, Just(u64::MAX)], columns))
        .prop_map(|(src, dst, columns)| Line::Edge(src, dst, columns));
    prop::collection::vec(prop_oneof![12 => edge, 1 => id().prop_map(Line::Member)], 0..160)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_component_holds_what_its_twin_holds_whatever_the_order_and_budget(
        (role, columns, lines, shuffled) in (role(), 0usize..6).prop_flat_map(|(role, columns)| {
            let lines = lines(columns).prop_flat_map(|lines| (Just(lines.clone()), Just(lines).prop_shuffle()));
            (Just(role), Just(columns), lines).prop_map(|(role, columns, (a, b))| (role, columns, a, b))
        }),
        partitions in 1u32..7,
        memory in 1usize..3_000,
        threads in 1usize..3,
    ) {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tight = Setup { role, partitions, columns, memory_bytes: memory, threads, dir: one.path() };
        let (manifest, _) = check(&tight, &lines);
        let roomy = Setup { memory_bytes: 1 << 20, threads: 3 - threads, dir: other.path(), ..tight };
        let (again, summary) = build(&roomy, &shuffled);
        prop_assert_eq!(summary.spilled_runs, 0);
        prop_assert_eq!(manifest.hash(), again.hash());
        for pack in manifest.packs() {
            let read = |dir: &Path| std::fs::read(dir.join("kind/3").join(&pack.name)).unwrap();
            prop_assert!(read(one.path()) == read(other.path()), "{} differs", pack.name);
        }
    }
}

#[test]
fn a_small_budget_spills_and_changes_nothing() {
    let lines: Vec<Line> = (0..20_000u64).map(|i| Line::Edge(i % 997, i * 31 % 1_013, vec![i])).collect();
    let dir = tempfile::tempdir().unwrap();
    let setup = |memory_bytes, dir| Setup {
        role: KindRole::Directed,
        partitions: 5,
        columns: 1,
        memory_bytes,
        threads: 2,
        dir,
    };
    let (manifest, summary) = check(&setup(64 << 10, dir.path()), &lines);
    assert!(summary.spilled_runs > 10, "{summary:?}");
    let roomy = tempfile::tempdir().unwrap();
    let (again, summary) = build(&setup(64 << 20, roomy.path()), &lines);
    assert_eq!((again.hash(), summary.spilled_runs), (manifest.hash(), 0));
}

#[test]
fn a_list_of_members_has_tables_only() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup {
        role: KindRole::MembersOnly,
        partitions: 4,
        columns: 0,
        memory_bytes: 100,
        threads: 2,
        dir: dir.path(),
    };
    let lines: Vec<Line> = (0..500).map(|i| Line::Member(i * i % 263)).collect();
    let (manifest, _) = check(&setup, &lines);
    assert_eq!(manifest.files.len(), 4);
}

#[test]
fn an_empty_component_can_be_opened() {
    for role in [KindRole::Undirected, KindRole::Directed, KindRole::Entity, KindRole::MembersOnly] {
        let dir = tempfile::tempdir().unwrap();
        let setup =
            Setup { role, partitions: 3, columns: 0, memory_bytes: 1 << 16, threads: 1, dir: dir.path() };
        check(&setup, &[]);
    }
}

#[test]
fn of_equal_edges_the_greatest_columns_stay() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup {
        role: KindRole::Undirected,
        partitions: 1,
        columns: 2,
        memory_bytes: 1 << 16,
        threads: 1,
        dir: dir.path(),
    };
    let lines = [Line::Edge(1, 2, vec![5, 9]), Line::Edge(2, 1, vec![6, 0]), Line::Edge(1, 2, vec![5, 9])];
    let (_, summary) = check(&setup, &lines);
    assert_eq!((summary.edges, summary.both_orders, summary.duplicates), (1, 1, 1));
    let reader = open(dir.path());
    let list = reader.partition(PartitionId(0)).unwrap().list(Direction::Both).unwrap();
    let value = list.records.get(&2u64.to_le_bytes()).unwrap().unwrap();
    let mut ids = Vec::new();
    decode_list(value, 2, Some(ColumnFilter { column: 0, low: 6, high: 6 }), &mut ids).unwrap();
    assert_eq!(ids, [1]);
}

#[test]
fn a_failed_build_leaves_nothing_but_an_empty_folder() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "in the way").unwrap();
    let mut options = BuildOptions {
        graph: "people".to_owned(),
        name: "kind".to_owned(),
        version: StoreVersion(1),
        role: KindRole::Undirected,
        partitions: PartitionCount::new(2).unwrap(),
        columns: Vec::new(),
        memory_bytes: 1 << 10,
        scratch_dir: dir.path().join("file/scratch"),
        out_dir: dir.path().join("kind"),
        threads: 2,
    };
    let error = ComponentBuilder::new(options.clone()).err().unwrap();
    assert!(error.to_string().starts_with("cannot create "), "{error}");
    options.scratch_dir = dir.path().join("gone");
    let mut builder = ComponentBuilder::new(options.clone()).unwrap();
    std::fs::remove_dir(dir.path().join("gone")).unwrap();
    let failed = (0..1_000).try_for_each(|i| builder.edge(i, i + 1, &[]));
    assert!(failed.unwrap_err().to_string().starts_with("cannot use a scratch file in "));
    drop(builder);
    let left: Vec<_> =
        std::fs::read_dir(&options.out_dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[test]
fn names_and_columns_are_checked_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let options = |name: &str, columns: &[&str]| BuildOptions {
        graph: "people".to_owned(),
        name: name.to_owned(),
        version: StoreVersion(1),
        role: KindRole::Undirected,
        partitions: PartitionCount::new(2).unwrap(),
        columns: columns.iter().map(|name| column(name)).collect(),
        memory_bytes: 1 << 10,
        scratch_dir: dir.path().to_owned(),
        out_dir: dir.path().join("kind"),
        threads: 1,
    };
    let error = |options| ComponentBuilder::new(options).err().unwrap().to_string();
    assert_eq!(
        error(options("../up", &[])),
        "\"../up\" cannot name an edge type or entity kind (1 to 64 letters, digits, '_' or '-')"
    );
    assert_eq!(
        error(options("kind", &["a", "a"])),
        "columns [\"a\", \"a\"] are more than 8, or not distinct"
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
