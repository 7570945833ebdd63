//! Versions made from the previous version and a patch: few bytes move, and every byte of the result is correct.

use crate::flaky::pull;
use kith_engine::{
    FetchError, FetchOptions, FolderSource, KeyType, Manifest, ObjectError, PATCH_NAME, Source, ValuesReader,
    fetch, release_partitions, verify_component,
};
use kith_files::{DeltaBuilder, DeltaOptions, DeltaSummary, ValuesBuilder, ValuesOptions, ZstdOptions};
use kith_types::{PartitionCount, PartitionId, StoreVersion, fmix64};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the bytes that are read.
struct CountingSource {
    inner: FolderSource,
    bytes: AtomicU64,
    asked: Mutex<Vec<String>>,
}

impl CountingSource {
    fn new(dir: &Path) -> Self {
        Self { inner: FolderSource::new(dir), bytes: AtomicU64::new(0), asked: Mutex::default() }
    }

    fn requests(&self, object: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == object).count()
    }
}

impl Source for CountingSource {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        let got = self.inner.read(object, offset, into)?;
        self.asked.lock().unwrap().push(object.to_owned());
        self.bytes.fetch_add(got as u64, Ordering::SeqCst);
        Ok(got)
    }
}

/// A store with two versions, the second built from the first. A node holds the first.
struct Patched {
    root: tempfile::TempDir,
    partitions: Vec<PartitionId>,
    manifest: Manifest,
    summary: DeltaSummary,
    changed: Vec<u64>,
}

fn value(id: u64, salt: u64, bytes: usize) -> Vec<u8> {
    format!("{:0bytes$}", fmix64(id ^ salt)).into_bytes()
}

impl Patched {
    /// One key in a thousand gets a value of `changed_bytes`; one key is deleted and one is added.
    fn new(keys: u64, partitions: u32, bytes: usize, changed_bytes: usize, compressed: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = root.path().join("built/people");
        let count = PartitionCount::new(partitions).unwrap();
        let options = ValuesOptions::new("people", StoreVersion(1), count, store.clone());
        let compression = compressed.then_some(ZstdOptions { level: 3, dictionary: None });
        let options = ValuesOptions { key: KeyType::Id, compression, ..options };
        let mut builder = ValuesBuilder::new(options).unwrap();
        for id in 0..keys {
            builder.row(&id.to_le_bytes(), &value(id, 0, bytes)).unwrap();
        }
        builder.finish(&mut |_| {}).unwrap();
        let mut delta =
            DeltaBuilder::new(&store.join("1"), DeltaOptions::new(StoreVersion(2), store.clone())).unwrap();
        let changed: Vec<u64> = (0..keys).filter(|id| fmix64(*id) % 1_000 == 7).collect();
        for id in &changed {
            delta.put(&id.to_le_bytes(), &value(*id, 1, changed_bytes)).unwrap();
        }
        delta.put(&keys.to_le_bytes(), b"one more").unwrap();
        let gone = (0..keys).find(|id| !changed.contains(id)).unwrap();
        delta.delete(&gone.to_le_bytes()).unwrap();
        let (manifest, summary) = delta.finish(&mut |_| {}).unwrap();
        let partitions: Vec<_> = count.iter().collect();
        let patched = Self { root, partitions, manifest, summary, changed };
        pull(
            &FolderSource::new(&patched.built(1)),
            &patched.held(1),
            &patched.partitions,
            &FetchOptions::default(),
        )
        .unwrap();
        patched
    }

    fn built(&self, version: u64) -> PathBuf {
        self.root.path().join(format!("built/people/{version}"))
    }

    fn held(&self, version: u64) -> PathBuf {
        self.root.path().join(format!("node/people/{version}"))
    }

    fn holding(&self) -> FetchOptions {
        FetchOptions { held: vec![self.held(1)], ..FetchOptions::default() }
    }

    fn total(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }

    /// Fetches the second version and verifies it. Returns the number of moved bytes.
    fn moved(&self) -> u64 {
        let _ = fs::remove_dir_all(self.held(2));
        let source = FolderSource::new(&self.built(2));
        let progress = pull(&source, &self.held(2), &self.partitions, &self.holding()).unwrap();
        assert!(verify_component(&self.held(2), None).unwrap().damages.is_empty());
        assert_eq!(Manifest::read(&self.held(2)).unwrap(), self.manifest);
        progress.bytes_copied
    }
}

/// With one changed key in a thousand, spread over all partitions, less than one byte in twenty moves, in a few requests.
fn moves_little(keys: u64, bytes: usize, changed_bytes: usize, compressed: bool) {
    let patched = Patched::new(keys, 24, bytes, changed_bytes, compressed);
    let source = CountingSource::new(&patched.built(2));
    let progress = pull(&source, &patched.held(2), &patched.partitions, &patched.holding()).unwrap();
    let (moved, total) = (source.bytes.load(Ordering::SeqCst), patched.total());
    assert!(moved * 20 <= total, "{moved} of {total} bytes for {:?}", patched.summary);
    assert_eq!(progress.bytes_copied, patched.summary.bytes_moved);
    assert!(patched.summary.bytes_moved < patched.summary.bytes_changed / 20);
    assert_eq!(progress.bytes_reused, total);
    assert!(source.requests(PATCH_NAME) <= 3, "{} requests", source.requests(PATCH_NAME));
    assert!(verify_component(&patched.held(2), None).unwrap().damages.is_empty());
    let reader = ValuesReader::open(&patched.held(2), &patched.partitions).unwrap();
    for id in &patched.changed {
        let found = reader.get(&id.to_le_bytes()).unwrap();
        assert_eq!(found, Some(value(*id, 1, changed_bytes)));
    }
}

#[test]
fn few_changes_of_the_same_length_move_few_bytes() {
    moves_little(200_000, 100, 100, false);
}

#[test]
fn few_changes_of_another_length_move_few_bytes() {
    moves_little(24_000, 1_000, 1_037, false);
    moves_little(24_000, 1_000, 30, true);
}

#[test]
fn a_patch_or_a_base_that_does_not_hold_costs_bytes_and_nothing_else() {
    for compressed in [false, true] {
        let patched = Patched::new(16_000, 4, 100, 120, compressed);
        let little = patched.summary.bytes_moved;
        assert_eq!(patched.moved(), little);
        let changed = patched.summary.bytes_changed;
        let path = patched.built(2).join(PATCH_NAME);
        let patch = fs::read(&path).unwrap();
        // Damages every part of the head, and a change of the last section.
        for at in [0, 8, 12, 20, 60, 82, 90, 110, patch.len() - 1] {
            let mut bytes = patch.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert!(little < patched.moved(), "byte {at}");
        }
        for cut in [0, 10, 100, patch.len() - 1] {
            fs::write(&path, &patch[..cut]).unwrap();
            assert!(little < patched.moved(), "cut to {cut}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(patched.moved(), changed, "no patch: whole partitions");
        fs::write(&path, &patch).unwrap();
        // A base with a damaged file, one with fewer partitions, and a missing one.
        let pack = patched.held(1).join("local-00000.pack");
        let whole = fs::read(&pack).unwrap();
        let mut bytes = whole.clone();
        bytes[150] ^= 1;
        fs::write(&pack, bytes).unwrap();
        let damaged = patched.moved();
        assert!(little < damaged && damaged < changed, "one partition is pulled: {damaged}");
        fs::write(&pack, whole).unwrap();
        release_partitions(&patched.held(1), &patched.partitions[2..]).unwrap();
        let fewer = patched.moved();
        assert!(little < fewer && fewer < changed, "two partitions are pulled: {fewer}");
        fs::remove_dir_all(patched.held(1)).unwrap();
        assert!(patched.total() <= patched.moved(), "all is pulled");
    }
}

#[test]
fn a_fetch_that_was_cut_while_files_were_made_goes_on() {
    // Partitions larger than one request: files are verified again block by block.
    let patched = Patched::new(12_000, 2, 1_000, 1_001, false);
    let source = FolderSource::new(&patched.built(2));
    let (mut cuts, mut copied) = (0, 0);
    loop {
        let (mut reports, mut last) = (0, 0);
        let ended =
            fetch(&source, &patched.held(2), &patched.partitions, &patched.holding(), &mut |progress| {
                reports += 1;
                last = progress.bytes_copied;
                if reports <= cuts { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        copied = copied.max(last);
        match ended {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, FetchError::Cancelled), "{error}"),
        }
        assert!(!patched.held(2).exists());
        cuts += 1;
    }
    assert!(4 <= cuts, "it was cut {cuts} times");
    assert!(copied <= patched.summary.bytes_moved, "{copied} bytes in one try");
    assert!(verify_component(&patched.held(2), None).unwrap().damages.is_empty());
}
