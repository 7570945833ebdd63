//! Fetching from sources that misbehave, that are slow to begin, and that hold less than they say.

use crate::stores::{Stores, all, value};
use kith_engine::{
    FetchError, FetchOptions, FetchProgress, FolderSource, HeldSource, Manifest, ObjectError, Source,
    SplicedSource, ValuesReader, VerifyDepth, fetch, release_partitions, verify_again, verify_component,
    verify_slowly,
};
use kith_load::{DeltaBuilder, DeltaOptions, ValuesBuilder, ValuesOptions};
use kith_types::{PartitionCount, PartitionId, StoreVersion, fmix64};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts, and fails from the `fails_from`-th read on.
struct Flaky {
    inner: FolderSource,
    reads: AtomicU64,
    fails_from: u64,
    asked: Mutex<Vec<(String, u64, usize)>>,
}

impl Flaky {
    fn new(dir: &Path, fails_from: u64) -> Self {
        let (inner, reads) = (FolderSource::new(dir), AtomicU64::new(0));
        Self { inner, reads, fails_from, asked: Mutex::default() }
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }
}

impl Source for Flaky {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        self.asked.lock().unwrap().push((object.to_owned(), offset, into.len()));
        if self.reads.fetch_add(1, Ordering::SeqCst) >= self.fails_from {
            return Err(ObjectError::Failed { object: object.to_owned(), source: "403".into() });
        }
        self.inner.read(object, offset, into)
    }
}

/// One partition with a data file of several pieces.
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

pub fn pull(
    source: &dyn Source,
    target: &Path,
    partitions: &[PartitionId],
    options: &FetchOptions,
) -> Result<FetchProgress, FetchError> {
    let mut last = FetchProgress::default();
    fetch(source, target, partitions, options, &mut |progress| {
        assert!(last.bytes_done <= progress.bytes_done && progress.bytes_done <= progress.bytes);
        last = progress.clone();
        ControlFlow::Continue(())
    })?;
    assert_eq!((last.bytes_done, last.files_done), (last.bytes, last.files));
    Ok(last)
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
    // Some of what is staged rots meanwhile: within one piece, in two blocks.
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
    // A version with nothing changed but its number.
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

#[test]
fn a_peer_gives_what_it_holds_as_if_it_were_the_built_version() {
    let stores = Stores::new(true);
    let built = stores.built("people", 2);
    let (first, second) = (stores.held("people", 2), built.parent().unwrap().join("second/2"));
    let (some, rest): (Vec<PartitionId>, Vec<PartitionId>) = all().into_iter().partition(|p| p.0 % 3 == 1);
    release_partitions(&first, &some).unwrap();
    let peer = HeldSource::open(&first).unwrap();
    assert_eq!(peer.partitions(), some);
    pull(&peer, &second, &some, &FetchOptions::default()).unwrap();
    assert!(verify_component(&second, Some(&some)).unwrap().damages.is_empty());
    // What it does not hold it does not give: zeros are never taken for bytes.
    for partition in &rest {
        let target = second.with_file_name("third");
        let refused = pull(&peer, &target, &[*partition], &FetchOptions::default());
        assert!(matches!(refused, Err(FetchError::Damaged(_))), "{refused:?}");
        assert!(!target.exists());
    }
    // A third node is filled from two peers, each of which holds a part.
    pull(&FolderSource::new(&built), &first, &rest, &FetchOptions::default()).unwrap();
    release_partitions(&first, &rest).unwrap();
    pull(&HeldSource::open(&first).unwrap(), &second, &rest, &FetchOptions::default()).unwrap();
    assert!(verify_component(&second, None).unwrap().damages.is_empty());
    let mut lost = fs::read_dir(&first).unwrap().map(|entry| entry.unwrap().path());
    let lost = lost.find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap();
    let before = HeldSource::open(&first).unwrap();
    fs::remove_file(lost).unwrap();
    assert_eq!(before.partitions(), []);
    let fourth = second.with_file_name("fourth");
    assert!(matches!(pull(&before, &fourth, &rest, &FetchOptions::default()), Err(FetchError::Damaged(_))));
}

/// Two nodes that hold a part each, one of which dies after some reads; what the built version is asked for.
#[test]
fn a_version_is_put_together_from_peers_and_the_built_one_is_asked_for_the_rest() {
    let stores = Stores::new(true);
    let built = stores.built("people", 2);
    let folder = built.parent().unwrap();
    let parts: [Vec<PartitionId>; 2] = {
        let (odd, even) = all().into_iter().partition(|partition| partition.0 % 2 == 1);
        [odd, even]
    };
    let nodes: Vec<PathBuf> = ["odd", "even"].map(|name| folder.join(name)).to_vec();
    for (node, part) in nodes.iter().zip(&parts) {
        pull(&FolderSource::new(&built), node, part, &FetchOptions::default()).unwrap();
    }
    let wanted: Vec<PartitionId> = all().into_iter().filter(|partition| partition.0 != 4).collect();
    let (mut whole_reads, mut broken) = (0, 0);
    for dies_after in [u64::MAX, 2, 1, 0] {
        let [odd, even] = [0, 1].map(|at: usize| HeldSource::open(&nodes[at]).unwrap());
        let dying = Dying { inner: odd, reads: AtomicU64::new(0), dies_after };
        let rest = Flaky::new(&built, u64::MAX);
        let peers: Vec<(&dyn Source, _)> =
            vec![(&dying, parts[0].iter().copied().collect()), (&even, parts[1].iter().copied().collect())];
        let manifest = Manifest::read(&built).unwrap();
        let source = SplicedSource::new(manifest, peers, &rest, wanted.iter().copied().collect());
        let target = folder.join(format!("after-{dies_after}"));
        let options = FetchOptions { threads: 3, ..FetchOptions::default() };
        pull(&source, &target, &wanted, &options).unwrap();
        assert!(verify_component(&target, Some(&wanted)).unwrap().damages.is_empty());
        let reads = dying.reads.load(Ordering::SeqCst);
        if reads <= dies_after {
            assert_eq!((source.failed(), rest.reads()), (vec![], 0), "the built version is not asked");
            whole_reads = reads;
        } else {
            assert!(dies_after < whole_reads && 0 < rest.reads());
            assert_eq!(source.failed(), [0]);
            broken += 1;
        }
    }
    assert!(0 < broken);
    // A peer that does not have what it was said to have, and a wanted partition that nobody has.
    let even = HeldSource::open(&nodes[1]).unwrap();
    let rest = Flaky::new(&built, u64::MAX);
    let lying: Vec<(&dyn Source, _)> = vec![(&even, all().into_iter().collect())];
    let manifest = || Manifest::read(&built).unwrap();
    let source = SplicedSource::new(manifest(), lying, &rest, all().into_iter().collect());
    let target = folder.join("lied-to");
    let refused = pull(&source, &target, &all(), &FetchOptions::default());
    assert!(matches!(refused, Err(FetchError::Damaged(_))), "{refused:?}");
    assert!(!target.exists());
    let honest: Vec<(&dyn Source, _)> = vec![(&even, parts[1].iter().copied().collect())];
    let source = SplicedSource::new(manifest(), honest, &rest, all().into_iter().collect());
    pull(&source, &target, &all(), &FetchOptions::default()).unwrap();
    assert!(verify_component(&target, None).unwrap().damages.is_empty() && 0 < rest.reads());
}

#[test]
fn the_next_peer_gives_what_one_that_went_away_owed() {
    let stores = Stores::new(true);
    let built = stores.built("people", 2);
    let (held, everything) = (stores.held("people", 2), || all().into_iter().collect());
    let dying = Dying { inner: HeldSource::open(&held).unwrap(), reads: AtomicU64::new(0), dies_after: 0 };
    let living = HeldSource::open(&held).unwrap();
    let rest = Flaky::new(&built, 0);
    let peers: Vec<(&dyn Source, _)> = vec![(&dying, everything()), (&living, everything())];
    let source = SplicedSource::new(Manifest::read(&built).unwrap(), peers, &rest, everything());
    let target = built.with_file_name("from-peers");
    pull(&source, &target, &all(), &FetchOptions::default()).unwrap();
    assert!(verify_component(&target, None).unwrap().damages.is_empty());
    assert_eq!((source.failed(), rest.reads()), (vec![0], 0), "the built version is not asked");
}

#[test]
fn partitions_that_come_and_go_during_a_verification_are_no_damage() {
    let stores = Stores::new(true);
    let built = FolderSource::new(&stores.built("people", 2));
    let dir = stores.held("people", 2);
    let some: Vec<PartitionId> = all().into_iter().filter(|partition| partition.0 % 3 == 1).collect();
    let changes: [&dyn Fn(); 2] = [
        &|| {
            release_partitions(&dir, &some).unwrap();
        },
        &|| {
            pull(&built, &dir, &all(), &FetchOptions::default()).unwrap();
        },
    ];
    for change in changes {
        let mut left = Some(change);
        let report = verify_slowly(&dir, Some(&some), VerifyDepth::Deep, &mut |_| {
            if let Some(change) = left.take() {
                change();
            }
            ControlFlow::Continue(())
        });
        assert_eq!((report.unwrap().damages, left.is_none()), (vec![], true));
    }
    // What is damaged is found all the same.
    let mut packs = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let pack = packs.find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap();
    fs::write(&pack, vec![0; fs::metadata(&pack).unwrap().len() as usize]).unwrap();
    fs::write(dir.join("stranger"), "").unwrap();
    let damages = verify_component(&dir, None).unwrap().damages;
    assert!(damages.iter().any(|damage| damage.file == "stranger") && 1 < damages.len(), "{damages:?}");
    assert_eq!(verify_again(&dir, None, &damages).unwrap().damages, damages);
}

/// A peer that goes away after some reads.
struct Dying {
    inner: HeldSource,
    reads: AtomicU64,
    dies_after: u64,
}

impl Source for Dying {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        if self.reads.fetch_add(1, Ordering::SeqCst) >= self.dies_after {
            return Err(ObjectError::Failed { object: object.to_owned(), source: "gone".into() });
        }
        self.inner.read(object, offset, into)
    }
}
