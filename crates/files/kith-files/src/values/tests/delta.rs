//! Versions that are built from other versions.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// A delta produces the same bytes as a build of all rows.
    #[test]
    fn a_delta_equals_a_build_of_all_rows(
        base in prop::collection::btree_map(prop::collection::vec(0u8..6, 1..4), prop::collection::vec(any::<u8>(), 0..40), 0..80),
        changes in prop::collection::btree_map(
            prop::collection::vec(0u8..6, 1..4), prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 0..30),
        compressed: bool,
    ) {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dictionary = || Some(b"words that come again and again".repeat(9));
        let compression = || if compressed { zstd(dictionary()) } else { None };
        let with = |dir: &Path, version| ValuesOptions {
            compression: compression(), version: StoreVersion(version), ..options(dir, 5)
        };
        let rows: Rows = base.clone().into_iter().collect();
        build(with(dir.path(), 3), &rows).unwrap();
        let store = dir.path().join("people");
        let mut delta = DeltaBuilder::new(&store.join("3"), DeltaOptions::new(StoreVersion(4), store.clone())).unwrap();
        let mut merged = base;
        let mut expected = DeltaSummary::default();
        for (key, change) in &changes {
            let before = merged.remove(key);
            match (change, before.is_some()) {
                (Some(_), false) => expected.added += 1,
                (Some(_), true) => expected.replaced += 1,
                (None, true) => expected.deleted += 1,
                (None, false) => expected.absent += 1,
            }
            match change {
                Some(value) => {
                    delta.put(key, value).unwrap();
                    merged.insert(key.clone(), value.clone());
                }
                None => delta.delete(key).unwrap(),
            }
        }
        let (manifest, summary) = delta.finish(&mut |_| {}).unwrap();
        prop_assert_eq!(
            (summary.added, summary.replaced, summary.deleted, summary.absent),
            (expected.added, expected.replaced, expected.deleted, expected.absent)
        );
        check(&open(dir.path(), 4), &merged, &[]);
        let all: Rows = merged.into_iter().collect();
        let (full, _) = build(with(other.path(), 4), &all).unwrap();
        prop_assert_eq!(&manifest, &full);
        // A node with the base produces the same files from it and the patch, and moves nothing else.
        let all: Vec<PartitionId> = full.partition_count.iter().collect();
        let (before, after) = (dir.path().join("node/3"), dir.path().join("node/4"));
        kith_engine::fetch_component(&store.join("3"), &before, &all, &mut |_| ControlFlow::Continue(())).unwrap();
        let (source, mut last) = (kith_engine::FolderSource::new(&store.join("4")), kith_engine::FetchProgress::default());
        let held = kith_engine::FetchOptions { held: vec![before], ..kith_engine::FetchOptions::default() };
        kith_engine::fetch(&source, &after, &all, &held, &mut |progress| {
            last = progress.clone();
            ControlFlow::Continue(())
        }).unwrap();
        prop_assert_eq!(last.bytes_copied, summary.bytes_moved);
        prop_assert!(verify_component(&after, None).unwrap().damages.is_empty());
        prop_assert_eq!(kith_engine::Manifest::read(&after).unwrap(), full);
    }
}

#[test]
fn a_delta_moves_what_changed_and_links_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Rows = (0..64u64)
        .map(|id| {
            (id.to_le_bytes().to_vec(), (0..200_000u64).map(|at| fmix64(id << 32 | at) as u8).collect())
        })
        .collect();
    let (base, _) = build(ValuesOptions { key: KeyType::Id, ..options(dir.path(), 4) }, &rows).unwrap();
    let store = dir.path().join("people");
    let mut delta =
        DeltaBuilder::new(&store.join("3"), DeltaOptions::new(StoreVersion(4), store.clone())).unwrap();
    delta.put(&5u64.to_le_bytes(), b"short").unwrap();
    let (manifest, summary) = delta.finish(&mut |_| {}).unwrap();
    assert_eq!((summary.partitions, summary.replaced), (1, 1));
    let same = |file: &&FileEntry| base.files.iter().any(|old| old.blake3 == file.blake3);
    assert_eq!(manifest.files.iter().filter(same).count(), 3 * 2, "three of four partitions are as before");
    let total: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    assert!(summary.bytes_changed < total / 2, "{summary:?} of {total}");
    use std::os::unix::fs::MetadataExt;
    let links = |version: &str| {
        let packs =
            std::fs::read_dir(store.join(version)).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
        packs.filter(|pack| pack.nlink() == 2).count()
    };
    assert_eq!((links("3"), links("4")), (3, 3));
    let damaged = store.join("4/00003.pack");
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[1_000_000] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let mut delta =
        DeltaBuilder::new(&store.join("4"), DeltaOptions::new(StoreVersion(5), store.clone())).unwrap();
    let changed: Vec<u64> = (0..64)
        .filter(|id: &u64| kith_types::partition_of_id(*id, manifest.partition_count).0 == 0)
        .collect();
    delta.delete(&changed[0].to_le_bytes()).unwrap();
    let error = delta.finish(&mut |_| {}).err().unwrap();
    assert!(
        matches!(&error, ValuesBuildError::Base(kith_engine::OpenError::Damaged(Damage { .. }))),
        "{error}"
    );
    assert!(!store.join("5").exists(), "damage is not carried into a new version");
}
