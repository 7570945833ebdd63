//! Fetches from sources that misbehave, and to targets that already hold files.

use crate::flaky::{Flaky, pull};
use crate::stores::{Stores, all, value};
use kith_engine::{
    FetchError, FetchOptions, FolderSource, Manifest, ObjectError, ValuesReader, release_partitions,
    verify_component,
};
use kith_files::{DeltaBuilder, DeltaOptions, ValuesBuilder, ValuesOptions};
use kith_types::{PartitionCount, PartitionId, StoreVersion, fmix64};
use std::fs;
use std::path::{Path, PathBuf};

/// A partition with a data file of several pieces.
fn large_store(root: &Path) -> (PathBuf, Manifest) {
    let count = PartitionCount::new(1).unwrap();
    let out = root.join("built/large");
    let mut builder = ValuesBuilder::new(ValuesOptions::new("large", StoreVersion(1), count, out)).unwrap();
    for id in 0..400u64 {
        let value: Vec<u8> = (0..50_000u64).map(|at| fmix64(id << 32 | at) as u8).collect();
        builder.row(&id.to_le_bytes(), &value).unwrap();
    }
    let manifest = builder.finish(&mut |_| {}).unwrap().0;
    (root.join("built/large/1"), manifest)
}

#[test]
fn a_fetch_that_broke_goes_on_at_the_block_where_it_stopped() {
    let root = tempfile::tempdir().unwrap();
    let (built, manifest) = large_store(root.path());
    let target = root.path().join("node/large/1");
    let one = [PartitionId(0)];
    let whole = Flaky::new(&built, u64::MAX);
    pull(&whole, &root.path().join("other/1"), &one, &FetchOptions::default()).unwrap();
    assert!(whole.reads() > 5, "{}", whole.reads());
    let first = whole.asked.lock().unwrap()[1].clone();
    assert!(first.1 > 19_000_000, "the tail comes first: {first:?}");
    let last = whole.asked.lock().unwrap().last().unwrap().clone();
    let index = manifest.files.iter().find(|file| file.name.ends_with("index")).unwrap();
    assert_eq!(last.1, index.offset, "the index comes last");

    let staging = root.path().join("node/large/.1.fetching");
    let mut fails_from = 0;
    loop {
        let source = Flaky::new(&built, fails_from);
        let Err(error) = pull(&source, &target, &one, &FetchOptions::default()) else { break };
        assert!(matches!(&error, FetchError::Source(ObjectError::Failed { .. })), "{error}");
        assert!(!target.exists() && ValuesReader::open(&target, &one).is_err());
        assert!(ValuesReader::open(&staging, &one).is_err(), "what is half fetched cannot be opened");
        fails_from += 1;
    }
    assert!(3 < fails_from && fails_from < whole.reads(), "each try got further than the one before");
    assert!(verify_component(&target, None).unwrap().damages.is_empty());
    fs::remove_dir_all(&target).unwrap();
    pull(&Flaky::new(&built, whole.reads() - 1), &target, &one, &FetchOptions::default()).unwrap_err();
    // Some staged bytes are damaged meanwhile: within one piece, in two blocks.
    let staged = root.path().join("node/large/.1.fetching/local-00000.pack");
    let mut bytes = fs::read(&staged).unwrap();
    (bytes[70_000], bytes[270_000]) = (!bytes[70_000], !bytes[270_000]);
    fs::write(&staged, bytes).unwrap();
    let progress = pull(&Flaky::new(&built, u64::MAX), &target, &one, &FetchOptions::default()).unwrap();
    assert!(progress.bytes_copied < 800_000, "{progress:?}");
    assert!(verify_component(&target, None).unwrap().damages.is_empty());
}

#[test]
fn many_small_partitions_come_in_few_requests_and_many_threads_do_no_harm() {
    let stores = Stores::new(true);
    for threads in [1, 4] {
        let source = Flaky::new(&stores.built("people", 1), u64::MAX);
        let target = stores.held("people", 100 + threads as u64);
        let options = FetchOptions { threads, ..FetchOptions::default() };
        pull(&source, &target, &all(), &options).unwrap();
        assert_eq!(source.reads(), 2, "manifest and one range");
        assert!(verify_component(&target, None).unwrap().damages.is_empty());
    }
    let root = tempfile::tempdir().unwrap();
    let (built, _) = large_store(root.path());
    let options = FetchOptions { threads: 4, ..FetchOptions::default() };
    let target = root.path().join("node/1");
    pull(&FolderSource::new(&built), &target, &[PartitionId(0)], &options).unwrap();
    assert!(verify_component(&target, None).unwrap().damages.is_empty());
    let broken = Flaky::new(&built, 4);
    let error = pull(&broken, &root.path().join("node/2"), &[PartitionId(0)], &options).unwrap_err();
    assert!(matches!(error, FetchError::Source(_)), "{error}");
}

#[test]
fn quota_and_identity_are_checked_before_the_first_byte() {
    let stores = Stores::new(false);
    let manifest = Manifest::read(&stores.built("people", 1)).unwrap();
    let target = stores.held("people", 1);
    let source = Flaky::new(&stores.built("people", 1), u64::MAX);
    let needed = manifest.bytes_of(&all());
    let quota = |bytes| FetchOptions { quota_bytes: Some(bytes), ..FetchOptions::default() };
    let error = pull(&source, &target, &all(), &quota(needed - 1)).unwrap_err();
    assert!(matches!(error, FetchError::Quota { .. }), "{error}");
    let other = Manifest::read(&stores.built("people", 2)).unwrap().hash();
    let wanted = |hash| FetchOptions { manifest_hash: Some(hash), ..FetchOptions::default() };
    let error = pull(&source, &target, &all(), &wanted(other)).unwrap_err();
    assert!(matches!(error, FetchError::Manifest(_)), "{error}");
    assert_eq!(source.reads(), 2, "two manifests and nothing else");
    assert!(!target.exists());
    let exact = FetchOptions { quota_bytes: Some(needed), ..wanted(manifest.hash()) };
    pull(&source, &target, &all(), &exact).unwrap();
}

#[test]
fn what_an_older_version_has_is_not_pulled() {
    let stores = Stores::new(false);
    let store = stores.built("people", 2);
    let out = store.parent().unwrap().to_owned();
    let mut delta = DeltaBuilder::new(&store, DeltaOptions::new(StoreVersion(3), out)).unwrap();
    delta.put(&17u64.to_le_bytes(), b"changed").unwrap();
    let (manifest, summary) = delta.finish(&mut |_| {}).unwrap();
    let older = stores.held("people", 2);
    for damaged in [false, true] {
        if damaged {
            let path = older.join("local-00000.pack");
            let mut bytes = fs::read(&path).unwrap();
            bytes[90] ^= 1;
            fs::write(path, bytes).unwrap();
        }
        let target = stores.held("people", if damaged { 4 } else { 3 });
        let options =
            FetchOptions { held: vec![older.clone(), stores.held("people", 77)], ..FetchOptions::default() };
        let source = FolderSource::new(&stores.built("people", 3));
        let progress = pull(&source, &target, &all(), &options).unwrap();
        // The changed key's partition is rebuilt; the damaged file belongs to another partition and is copied.
        let damage = if damaged { manifest.files[0].bytes } else { 0 };
        assert_eq!(progress.bytes_copied, summary.bytes_moved + damage);
        assert_eq!(progress.bytes_reused, progress.bytes - damage);
        let reader = ValuesReader::open(&target, &all()).unwrap();
        assert_eq!(reader.get(&17u64.to_le_bytes()).unwrap(), Some(b"changed".to_vec()));
        assert_eq!(reader.get(&18u64.to_le_bytes()).unwrap(), Some(value(18, 2)));
        assert!(verify_component(&target, None).unwrap().damages.is_empty());
    }
}

#[test]
fn a_large_partition_that_did_not_change_is_linked() {
    use std::os::unix::fs::MetadataExt;
    let root = tempfile::tempdir().unwrap();
    let (built, manifest) = large_store(root.path());
    let (one, first) = ([PartitionId(0)], root.path().join("node/large/1"));
    pull(&FolderSource::new(&built), &first, &one, &FetchOptions::default()).unwrap();
    let out = root.path().join("built/large");
    // A version that differs only in its number.
    DeltaBuilder::new(&built, DeltaOptions::new(StoreVersion(2), out)).unwrap().finish(&mut |_| {}).unwrap();
    let second = root.path().join("node/large/2");
    let options = FetchOptions { held: vec![first.clone()], ..FetchOptions::default() };
    let source = FolderSource::new(&root.path().join("built/large/2"));
    let progress = pull(&source, &second, &one, &options).unwrap();
    assert_eq!((progress.bytes_copied, progress.bytes_reused), (0, manifest.bytes_of(&one)));
    assert_eq!(fs::metadata(second.join("local-00000.pack")).unwrap().nlink(), 2);
    fs::remove_dir_all(first).unwrap();
    assert!(verify_component(&second, None).unwrap().damages.is_empty());
}

#[test]
fn partitions_given_away_free_their_packs_and_can_come_back() {
    let stores = Stores::new(true);
    let dir = stores.held("people", 2);
    let reader = ValuesReader::open(&dir, &all()).unwrap();
    // Partitions 0 to 4 came first, in a pack of their own.
    let keep: Vec<PartitionId> = (0..4).map(PartitionId).collect();
    assert!(release_partitions(&dir, &keep).unwrap() > 10_000);
    assert!(ValuesReader::open(&dir, &keep).is_ok() && ValuesReader::open(&dir, &all()).is_err());
    assert!(verify_component(&dir, Some(&keep)).unwrap().damages.is_empty());
    assert_eq!(reader.get(&5u64.to_le_bytes()).unwrap(), Some(value(5, 2)), "open readers go on");
    let source = FolderSource::new(&stores.built("people", 2));
    pull(&source, &dir, &all(), &FetchOptions::default()).unwrap();
    assert!(verify_component(&dir, None).unwrap().damages.is_empty());
}
