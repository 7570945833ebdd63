//! A fetch is complete or has no effect, and resumes where it stopped.

use crate::example::Example;
use kith_engine::{
    ComponentReader, FetchError, FetchProgress, Manifest, OpenError, fetch_component, verify_component,
};
use kith_schema::KindRole;
use kith_types::PartitionId;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

struct Places {
    root: tempfile::TempDir,
    example: Example,
}

impl Places {
    fn new() -> Self {
        let places = Self {
            root: tempfile::tempdir().unwrap(),
            example: Example::new("connection", KindRole::Undirected, 4, 200, 1_000),
        };
        fs::create_dir(places.source()).unwrap();
        places.example.write(&places.source());
        places
    }

    fn source(&self) -> PathBuf {
        self.root.path().join("built")
    }

    fn target(&self) -> PathBuf {
        self.root.path().join("node/connection/7")
    }

    fn staging(&self) -> PathBuf {
        self.root.path().join("node/connection/.7.fetching")
    }

    fn fetch(&self, partitions: &[u32]) -> Result<(Manifest, FetchProgress), FetchError> {
        let mut last = FetchProgress::default();
        let partitions: Vec<_> = partitions.iter().copied().map(PartitionId).collect();
        let manifest = fetch_component(&self.source(), &self.target(), &partitions, &mut |progress| {
            last = progress.clone();
            ControlFlow::Continue(())
        })?;
        Ok((manifest, last))
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn only_the_wanted_partitions_arrive_and_verify() {
    let places = Places::new();
    let (manifest, progress) = places.fetch(&[1, 3]).unwrap();
    let held = [PartitionId(1), PartitionId(3)];
    assert_eq!(names(&places.target()), ["layout.json", "local-00000.pack", "manifest.json"]);
    assert!(!places.staging().exists());
    assert_eq!(progress.bytes_copied, manifest.bytes_of(&held));
    assert_eq!((progress.files_done, progress.bytes_done), (progress.files, progress.bytes));
    assert!(verify_component(&places.target(), Some(&held)).unwrap().damages.is_empty());
    assert!(verify_component(&places.target(), None).unwrap().damages.len() == 8);
    assert_eq!(ComponentReader::open(&places.target(), &held).unwrap().held().collect::<Vec<_>>(), held);
    assert!(matches!(ComponentReader::open(&places.target(), &[PartitionId(0)]), Err(OpenError::Damaged(_))));
}

#[test]
fn fetching_again_copies_nothing_and_more_partitions_join() {
    let places = Places::new();
    places.fetch(&[0, 1]).unwrap();
    assert_eq!(places.fetch(&[1]).unwrap().1.bytes_copied, 0);
    let (manifest, progress) = places.fetch(&[1, 2, 3]).unwrap();
    assert_eq!(progress.bytes_copied, manifest.bytes_of(&[PartitionId(2), PartitionId(3)]));
    assert!(verify_component(&places.target(), None).unwrap().damages.is_empty());
    assert!(!places.staging().exists());
}

#[test]
fn a_damaged_source_is_named_and_nothing_appears() {
    let places = Places::new();
    let manifest = Manifest::read(&places.source()).unwrap();
    let path = places.source().join(&manifest.packs()[0].name);
    let whole = fs::read(&path).unwrap();
    for entry in &manifest.files {
        let bytes = entry.bytes as usize;
        for at in [0, 70, bytes / 2, bytes - 70, bytes - 1] {
            let mut damaged = whole.clone();
            damaged[entry.offset as usize + at] ^= 4;
            fs::write(&path, damaged).unwrap();
            match places.fetch(&[0, 1, 2, 3]) {
                Err(FetchError::Damaged(damage)) => assert_eq!(damage.file, entry.name),
                other => panic!("{} byte {at}: {other:?}", entry.name),
            }
            assert!(!places.target().exists());
        }
        fs::write(&path, &whole[..entry.offset as usize + bytes - 1]).unwrap();
        assert!(matches!(places.fetch(&[0, 1, 2, 3]), Err(FetchError::Damaged(_))));
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(places.fetch(&[0, 1, 2, 3]), Err(FetchError::Damaged(_))));
    fs::write(&path, whole).unwrap();
    places.fetch(&[0, 1, 2, 3]).unwrap();
    assert!(verify_component(&places.target(), None).unwrap().damages.is_empty());
}

#[test]
fn a_cancelled_fetch_goes_on_where_it_stopped() {
    let places = Places::new();
    let all: Vec<_> = places.example.partitions();
    let cancelled = fetch_component(&places.source(), &places.target(), &all, &mut |progress| {
        if progress.files_done == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(cancelled, Err(FetchError::Cancelled)));
    assert!(!places.target().exists());
    assert!(matches!(ComponentReader::open(&places.staging(), &all), Err(OpenError::NoComponent { .. })));
    // One of the seven files is damaged meanwhile, and a foreign file lies beside them.
    let files = Manifest::read(&places.source()).unwrap().files;
    let path = places.staging().join("local-00000.pack");
    let mut bytes = fs::read(&path).unwrap();
    bytes[files[2].offset as usize + 100] ^= 1;
    fs::write(&path, bytes).unwrap();
    fs::write(places.staging().join("local-00009.pack"), b"of another attempt").unwrap();
    let reused: u64 = files[..7].iter().map(|entry| entry.bytes).sum::<u64>() - files[2].bytes;
    let (manifest, progress) = places.fetch(&[0, 1, 2, 3]).unwrap();
    // One more file may have been under way.
    let left = manifest.bytes_of(&all) - reused;
    assert!([left, left - files[7].bytes].contains(&progress.bytes_copied), "{progress:?}");
    assert!(verify_component(&places.target(), None).unwrap().damages.is_empty());
}

#[test]
fn a_pack_lost_from_the_target_is_fetched_again() {
    let places = Places::new();
    places.fetch(&[0, 1]).unwrap();
    let (manifest, _) = places.fetch(&[0, 1, 2, 3]).unwrap();
    fs::remove_file(places.target().join("local-00001.pack")).unwrap();
    let lost = manifest.bytes_of(&[PartitionId(2), PartitionId(3)]);
    assert_eq!(places.fetch(&[0, 1, 2, 3]).unwrap().1.bytes_copied, lost);
    assert!(verify_component(&places.target(), None).unwrap().damages.is_empty());
}

#[test]
fn what_is_in_the_way_stays() {
    let places = Places::new();
    fs::create_dir_all(places.target()).unwrap();
    fs::write(places.target().join("notes"), b"mine").unwrap();
    assert!(matches!(places.fetch(&[0]), Err(FetchError::Occupied { .. })));
    assert_eq!(names(&places.target()), ["notes"]);
    fs::remove_dir_all(places.target()).unwrap();
    let other = Example::new("connection", KindRole::Undirected, 4, 100, 500);
    fs::create_dir_all(places.target()).unwrap();
    other.write(&places.target());
    assert!(matches!(places.fetch(&[0]), Err(FetchError::Occupied { .. })));
    assert!(verify_component(&places.target(), None).unwrap().damages.is_empty());
}

#[test]
fn two_fetches_to_one_place_do_not_mix() {
    let places = Places::new();
    let mut inner = None;
    let all = places.example.partitions();
    fetch_component(&places.source(), &places.target(), &all, &mut |_| {
        inner.get_or_insert_with(|| places.fetch(&[0]).map(drop));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(matches!(inner, Some(Err(FetchError::Busy { .. }))));
}

#[test]
fn partitions_that_do_not_exist_and_folders_without_component_are_reported() {
    let places = Places::new();
    assert!(matches!(places.fetch(&[4]), Err(FetchError::Manifest(OpenError::Damaged(_)))));
    fs::remove_dir_all(places.source()).unwrap();
    assert!(matches!(places.fetch(&[0]), Err(FetchError::Manifest(OpenError::NoComponent { .. }))));
}
