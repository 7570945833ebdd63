//! Versions through a real S3 server, and what happens when it fails.

#[path = "support/s3.rs"]
mod s3;

use kith_engine::{
    Damage, Fault, FetchError, FetchOptions, FetchProgress, KeyType, Manifest, ValueType, ValuesReader, fetch,
};
use kith_load::{DeltaBuilder, DeltaOptions, ValuesBuilder, ValuesOptions};
use kith_objects::{Access, Objects, ObjectsError};
use kith_types::{PartitionCount, PartitionId, StoreVersion};
use s3::S3;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

const PARTITIONS: u32 = 4;
/// Three packs and more of 8 MiB parts.
const ROWS: u64 = 30_000;

fn access(server: &S3) -> Access {
    let settings = server.settings().into_iter().map(|(name, value)| (name.to_lowercase(), value));
    Access { settings: settings.collect(), retry_for: Duration::from_secs(20) }
}

fn objects(access: &Access, path: &str) -> Objects {
    let location = format!("s3://{}/{path}", s3::BUCKET).parse().expect("a place");
    Objects::open(&location, access).expect("settings")
}

fn value(id: u64) -> Vec<u8> {
    // Does not compress, differs by key.
    (0..160_u64)
        .flat_map(|word| (id * 1_000 + word).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect()
}

/// Builds a version into `<folder>/<version>`.
fn build(folder: &Path, version: u64, rows: u64) -> Manifest {
    let partitions = PartitionCount::new(PARTITIONS).expect("it is whole");
    let options = ValuesOptions::new("people", StoreVersion(version), partitions, folder.to_owned());
    let options = ValuesOptions { key: KeyType::Id, value: ValueType::Bytes, ..options };
    let mut builder = ValuesBuilder::new(options).expect("it is whole");
    for id in 0..rows {
        builder.row(&id.to_le_bytes(), &value(id + version)).expect("it is whole");
    }
    builder.finish(&mut |_| {}).expect("it is whole").0
}

fn all() -> Vec<PartitionId> {
    (0..PARTITIONS).map(PartitionId).collect()
}

/// A server with a version in `s3://bucket/people/1`.
fn uploaded(rows: u64) -> (S3, Access, tempfile::TempDir, Manifest) {
    let (server, folder) = (S3::start(), tempfile::tempdir().expect("it is whole"));
    let access = access(&server);
    let manifest = build(folder.path(), 1, rows);
    let mut last = (0, 0);
    objects(&access, "people/1")
        .upload_version(&folder.path().join("1"), &mut |done, total| last = (done, total))
        .expect("it is whole");
    assert_eq!(last.0, last.1);
    (server, access, folder, manifest)
}

fn fetched(
    source: &Objects,
    target: &Path,
    progress: &mut dyn FnMut(&FetchProgress) -> ControlFlow<()>,
) -> Result<Manifest, FetchError> {
    let options = FetchOptions { threads: 3, ..FetchOptions::default() };
    fetch(source, target, &all(), &options, &mut |state| progress(state))
}

fn go_on(_: &FetchProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The bytes that the rows are.
fn assert_right(folder: &Path, version: u64) {
    let reader = ValuesReader::open(folder, &all()).expect("it is whole");
    for id in (0..ROWS).step_by(997) {
        assert_eq!(
            reader.get(&id.to_le_bytes()).expect("it is whole"),
            Some(value(id + version)),
            "key {id}"
        );
    }
    assert_eq!(reader.get(&ROWS.to_le_bytes()).expect("it is whole"), None);
}

#[test]
fn a_version_goes_up_and_comes_down_the_same() {
    let (_server, access, folder, manifest) = uploaded(ROWS);
    assert!(manifest.packs().iter().any(|pack| 8 << 20 < pack.bytes), "some packs go up in parts");
    let place = objects(&access, "people/1");
    assert_eq!(place.manifest().unwrap(), manifest);
    assert_eq!(objects(&access, "people").children().unwrap(), ["1".to_owned()].into());
    let names: Vec<String> = place.list().unwrap().into_iter().map(|listed| listed.name).collect();
    assert_eq!(names.len(), manifest.packs().len() + 1);
    let target = folder.path().join("fetched/1");
    fetched(&place, &target, &mut go_on).unwrap();
    assert_right(&target, 1);
    // As it is, for the object store of another cluster.
    place.download_version(&manifest, &folder.path().join("copy"), &mut |_, _| {}).unwrap();
    for name in names {
        let [built, copied] =
            ["1", "copy"].map(|dir| std::fs::read(folder.path().join(dir).join(&name)).unwrap());
        assert!(built == copied, "{name}");
    }
    place.remove_all().unwrap();
    assert_eq!(place.list().unwrap(), []);
    place.remove_all().unwrap();
}

#[test]
fn a_version_made_of_another_sends_what_changed_and_the_store_copies_the_rest() {
    let (server, access, folder, base) = uploaded(ROWS);
    let options = DeltaOptions::new(StoreVersion(2), folder.path().to_owned());
    let mut delta = DeltaBuilder::new(&folder.path().join("1"), options).unwrap();
    delta.put(&7u64.to_le_bytes(), b"changed").unwrap();
    let (manifest, summary) = delta.finish(&mut |_| {}).unwrap();
    assert_eq!(manifest.packs_in_common(&base).len(), PARTITIONS as usize - 1);
    let (built, place) = (folder.path().join("2"), objects(&access, "people/2"));
    let before = (server.bytes_sent(), server.bytes_received());
    place.upload_version_on(Some(&objects(&access, "people/1")), &built, &mut |_, _| {}).unwrap();
    let sent = server.bytes_received() - before.1;
    assert!(sent < summary.bytes_changed + (1 << 20), "{sent} bytes for {summary:?}");
    assert!(server.bytes_sent() - before.0 < 1 << 20, "a copy by the store does not pass here");
    // All of it is there, without the version before, and a node that has that one needs the patch alone.
    let held = folder.path().join("node/1");
    fetched(&objects(&access, "people/1"), &held, &mut go_on).unwrap();
    objects(&access, "people/1").remove_all().unwrap();
    fetched(&place, &folder.path().join("whole/2"), &mut go_on).unwrap();
    for listed in place.list().unwrap() {
        let ours = std::fs::read(built.join(&listed.name)).unwrap();
        assert!(ours == std::fs::read(server.file(&format!("people/2/{}", listed.name))).unwrap());
    }
    let before = server.bytes_sent();
    let options = FetchOptions { held: vec![held], ..FetchOptions::default() };
    fetch(&place, &folder.path().join("node/2"), &all(), &options, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    let sent = server.bytes_sent() - before;
    assert!(sent < 32 << 10, "{sent} bytes for one key");
    // Nothing of a version that is gone can be copied: everything is sent.
    let again = objects(&access, "people/3");
    again.upload_version_on(Some(&objects(&access, "people/1")), &built, &mut |_, _| {}).unwrap();
    let names_and_sizes = |place: &Objects| -> Vec<(String, u64)> {
        place.list().unwrap().into_iter().map(|object| (object.name, object.bytes)).collect()
    };
    assert_eq!(names_and_sizes(&again), names_and_sizes(&place));
}

#[test]
fn a_place_takes_one_version_and_the_same_one_again() {
    let (_server, access, folder, _) = uploaded(100);
    let place = objects(&access, "people/1");
    place.upload_version(&folder.path().join("1"), &mut |_, _| {}).unwrap();
    build(folder.path(), 2, 100);
    let error = place.upload_version(&folder.path().join("2"), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, ObjectsError::Taken { .. }), "{error:?}");
    fetched(&place, &folder.path().join("fetched"), &mut go_on).unwrap();
}

#[test]
fn an_upload_that_is_cut_off_leaves_no_version_and_can_be_repeated() {
    let (mut server, folder) = (S3::start(), tempfile::tempdir().unwrap());
    let access = Access { retry_for: Duration::from_millis(300), ..access(&server) };
    build(folder.path(), 1, ROWS);
    let place = objects(&access, "people/1");
    let error = place
        .upload_version(&folder.path().join("1"), &mut |done, total| {
            if total / 2 < done {
                server.kill();
            }
        })
        .unwrap_err();
    assert!(matches!(error, ObjectsError::Failed { .. }), "{error:?}");
    server.restart();
    assert!(matches!(place.manifest(), Err(FetchError::Manifest(_))), "{:?}", place.manifest());
    place.upload_version(&folder.path().join("1"), &mut |_, _| {}).unwrap();
    let target = folder.path().join("fetched");
    fetched(&place, &target, &mut go_on).unwrap();
    assert_right(&target, 1);
}

#[test]
fn a_fetch_goes_on_when_the_server_comes_back() {
    let (mut server, access, folder, _) = uploaded(ROWS);
    let place = objects(&access, "people/1");
    let target = folder.path().join("fetched");
    let mut restarts = 0;
    fetched(&place, &target, &mut |state| {
        if restarts == 0 && state.bytes / 2 < state.bytes_done {
            restarts += 1;
            server.restart();
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(restarts, 1);
    assert_right(&target, 1);
}

#[test]
fn a_fetch_from_a_server_that_stays_away_fails_and_is_resumed() {
    let (mut server, access, folder, _) = uploaded(ROWS);
    let access = Access { retry_for: Duration::from_millis(300), ..access };
    let place = objects(&access, "people/1");
    let target = folder.path().join("fetched");
    let error = fetched(&place, &target, &mut |state| {
        if state.bytes / 2 < state.bytes_done {
            server.kill();
        }
        ControlFlow::Continue(())
    })
    .unwrap_err();
    assert!(matches!(error, FetchError::Source(_)), "{error:?}");
    assert!(!target.exists(), "what is half fetched is no version");
    server.restart();
    let mut last = FetchProgress::default();
    fetched(&place, &target, &mut |state| {
        last = state.clone();
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(last.bytes_copied < last.bytes * 3 / 4, "half of it was here: {last:?}");
    assert_right(&target, 1);
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    let (server, access, folder, _) = uploaded(ROWS);
    let place = objects(&access, "people/1");
    for cut_after in [100_000, 3_000_000, 20_000_000] {
        server.cut_after(cut_after);
        let target = folder.path().join(format!("fetched-{cut_after}"));
        fetched(&place, &target, &mut go_on).unwrap();
        assert!(server.has_cut());
        assert_right(&target, 1);
    }
}

#[test]
fn a_wrong_secret_is_refused_and_said_so() {
    let (_server, mut access, folder, _) = uploaded(100);
    for (name, value) in &mut access.settings {
        if name == "aws_secret_access_key" {
            *value = "wrong".to_owned();
        }
    }
    let place = objects(&access, "people/1");
    let error = fetched(&place, &folder.path().join("fetched"), &mut go_on).unwrap_err();
    let text = chain(&error);
    assert!(text.contains("is refused to us") && text.contains("people/1/manifest.json"), "{text}");
    let error = place.list().unwrap_err();
    assert!(matches!(error, ObjectsError::Refused { .. }), "{error:?}");
    assert!(error.help().contains("AWS_SECRET_ACCESS_KEY"));
    assert!(matches!(
        objects(&access, "people/2").upload_version(&folder.path().join("1"), &mut |_, _| {}),
        Err(ObjectsError::Refused { .. } | ObjectsError::Failed { .. })
    ));
}

#[test]
fn damaged_objects_are_errors_and_never_versions() {
    let (server, access, folder, manifest) = uploaded(ROWS);
    let place = objects(&access, "people/1");
    let pack = &manifest.packs()[0];
    let file = server.file(&format!("people/1/{}", pack.name));
    let whole = std::fs::read(&file).unwrap();
    let target = folder.path().join("fetched");
    // Cut in the middle, and to nothing.
    for bytes in [pack.bytes / 2, 0] {
        s3::truncate(&file, bytes);
        let error = fetched(&place, &target, &mut go_on).unwrap_err();
        assert!(matches!(error, FetchError::Damaged(Damage { fault: Fault::Size { .. }, .. })), "{error:?}");
    }
    let mut flipped = whole.clone();
    flipped[whole.len() / 3] ^= 1;
    std::fs::write(&file, flipped).unwrap();
    let error = fetched(&place, &target, &mut go_on).unwrap_err();
    assert!(matches!(error, FetchError::Damaged(Damage { fault: Fault::Checksum { .. }, .. })), "{error:?}");
    std::fs::remove_file(&file).unwrap();
    let error = fetched(&place, &target, &mut go_on).unwrap_err();
    assert!(matches!(error, FetchError::Damaged(Damage { fault: Fault::Missing, .. })), "{error:?}");
    assert!(!target.exists());
    std::fs::write(&file, whole).unwrap();
    fetched(&place, &target, &mut go_on).unwrap();
    assert_right(&target, 1);
    // A manifest of something else under the same name.
    let options = FetchOptions { manifest_hash: Some("0".repeat(64)), ..FetchOptions::default() };
    let error =
        fetch(&place, &folder.path().join("other"), &all(), &options, &mut |state| go_on(state)).unwrap_err();
    assert!(matches!(error, FetchError::Manifest(kith_engine::OpenError::OtherVersion { .. })), "{error:?}");
}

#[test]
fn rows_are_read_as_they_were_written() {
    let (server, access, ..) = uploaded(10);
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(server.file("rows.csv"), &bytes).unwrap();
    std::fs::write(server.file("empty.csv"), b"").unwrap();
    let place = objects(&access, "");
    let read = |name: &str| {
        let mut got = Vec::new();
        place.reader(name).read_to_end(&mut got).map(|_| got)
    };
    server.cut_after(9_000_000);
    assert!(read("rows.csv").unwrap() == bytes);
    assert_eq!(read("empty.csv").unwrap(), b"");
    assert!(read("no.csv").unwrap_err().to_string().contains("no.csv"));
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text += &format!(": {inner}");
        cause = inner.source();
    }
    text
}
