//! Tests of which parts of files are in memory, and of how cold files answer.

use crate::stores::{Stores, all, packs, value};
use kith_engine::{KeyType, ValuesReader, fetch_component};
use kith_files::{ValuesBuilder, ValuesOptions};
use kith_types::{PartitionCount, PartitionId, StoreVersion};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

#[test]
fn cold_files_answer_like_warm_ones() {
    let dir = tempfile::tempdir().unwrap();
    let partitions = PartitionCount::new(2).unwrap();
    let options = ValuesOptions::new("cold", StoreVersion(1), partitions, dir.path().join("cold"));
    let mut builder = ValuesBuilder::new(ValuesOptions { key: KeyType::Id, ..options }).unwrap();
    // Values on one page, across two pages, and on many.
    let value = |id: u64| vec![id as u8; [10, 3_000, 300_000][id as usize % 3]];
    (0..300u64).for_each(|id| builder.row(&id.to_le_bytes(), &value(id)).unwrap());
    builder.finish(&mut |_| {}).unwrap();
    let all: Vec<PartitionId> = partitions.iter().collect();
    let reader = ValuesReader::open(&dir.path().join("cold/1"), &all).unwrap();
    let mapped = reader.mapped();
    assert!(mapped.residency(100, 1).is_whole(), "what was just written is in memory");
    for is_cold in [true, false] {
        mapped.set_cold(is_cold);
        assert_eq!(mapped.is_cold(), is_cold);
        for id in 0..400u64 {
            assert_eq!(reader.get(&id.to_le_bytes()).unwrap(), (id < 300).then(|| value(id)), "{id}");
        }
        let mut seen = 0;
        for partition in &all {
            let each = |key: &[u8], found: &[u8]| {
                seen += 1;
                assert_eq!(found, value(u64::from_le_bytes(key.try_into().unwrap())));
                std::ops::ControlFlow::Continue(())
            };
            reader.for_each(*partition, each).unwrap();
        }
        assert_eq!(seen, 300);
    }
}

#[test]
fn warming_never_spends_more_than_its_budget() {
    let stores = Stores::new(false);
    let dir = stores.held("people", 2);
    let reader = ValuesReader::open(&dir, &all()).unwrap();
    let mut last = 0;
    for budget in [0, 1, 4_096, 10_000, 100_000, u64::MAX] {
        let spent = reader.warm(budget);
        assert!(last <= spent && spent <= budget, "{spent} of {budget}");
        last = spent;
    }
    assert!(last >= packs(&dir).iter().map(|path| fs::metadata(path).unwrap().len()).sum());
}

/// The number of this process's mappings whose file lies under a folder.
fn mappings(dir: &Path) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains(dir.to_str().unwrap())).count()
}

#[test]
fn a_small_store_over_many_partitions_takes_a_mapping_per_pack() {
    let root = tempfile::tempdir().unwrap();
    let count = PartitionCount::new(1_536).unwrap();
    let options = ValuesOptions::new("small", StoreVersion(1), count, root.path().join("built/small"));
    let mut builder = ValuesBuilder::new(ValuesOptions { key: KeyType::Id, ..options }).unwrap();
    for id in 0..3_000 {
        builder.row(&u64::to_le_bytes(id), &value(id, 2)).unwrap();
    }
    builder.finish(&mut |_| {}).unwrap();
    let built = root.path().join("built/small/1");
    // Six nodes, each with every third partition.
    let nodes: Vec<ValuesReader> = (0..6)
        .map(|node| {
            let target = root.path().join(format!("node{node}/small/1"));
            let held: Vec<PartitionId> = count.iter().filter(|id| id.0 % 3 == node % 3).collect();
            fetch_component(&built, &target, &held, &mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(packs(&target).len(), 1);
            ValuesReader::open(&target, &held).unwrap()
        })
        .collect();
    assert_eq!(mappings(root.path()), 6);
    let found = (0..3_000u64).filter(|id| {
        let key = id.to_le_bytes();
        let node = nodes.iter().find(|node| node.get(&key).is_ok()).unwrap();
        node.get(&key).unwrap() == Some(value(*id, 2))
    });
    assert_eq!(found.count(), 3_000);
}
