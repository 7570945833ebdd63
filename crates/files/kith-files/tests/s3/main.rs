//! Tests versions on a real S3 server, and failures of that server.

mod outages;
mod versions;

use kith_engine::{
    Damage, Fault, FetchError, FetchOptions, FetchProgress, KeyType, Manifest, ValueType, ValuesReader, fetch,
};
use kith_files::objects::{Access, Objects, ObjectsError};
use kith_files::testing::{BUCKET, S3};
use kith_files::{DeltaBuilder, DeltaOptions, ValuesBuilder, ValuesOptions};
use kith_types::{PartitionCount, PartitionId, StoreVersion};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

const PARTITIONS: u32 = 4;

/// Enough rows for at least three packs that are larger than a part of 8 MiB.
const ROWS: u64 = 30_000;

fn access(server: &S3) -> Access {
    let settings = server.settings().into_iter().map(|(name, value)| (name.to_lowercase(), value));
    Access { settings: settings.collect(), retry_for: Duration::from_secs(20) }
}

fn objects(access: &Access, path: &str) -> Objects {
    let location = format!("s3://{}/{path}", BUCKET).parse().expect("a place");
    Objects::open(&location, access).expect("settings")
}

fn value(id: u64) -> Vec<u8> {
    // The value does not compress, and differs by key.
    (0..160_u64)
        .flat_map(|word| (id * 1_000 + word).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect()
}

/// Builds a version into `<folder>/<version>`.
fn build(folder: &Path, version: u64, rows: u64) -> Manifest {
    let partitions = PartitionCount::new(PARTITIONS).expect("the count is valid");
    let options = ValuesOptions::new("people", StoreVersion(version), partitions, folder.to_owned());
    let options = ValuesOptions { key: KeyType::Id, value: ValueType::Bytes, ..options };
    let mut builder = ValuesBuilder::new(options).expect("the options are valid");
    for id in 0..rows {
        builder.row(&id.to_le_bytes(), &value(id + version)).expect("the row is valid");
    }
    builder.finish(&mut |_| {}).expect("the build succeeds").0
}

fn all() -> Vec<PartitionId> {
    (0..PARTITIONS).map(PartitionId).collect()
}

/// Starts a server with a version in `s3://bucket/people/1`.
fn uploaded(rows: u64) -> (S3, Access, tempfile::TempDir, Manifest) {
    let (server, folder) = (S3::start(), tempfile::tempdir().expect("a temporary folder"));
    let access = access(&server);
    let manifest = build(folder.path(), 1, rows);
    let mut last = (0, 0);
    objects(&access, "people/1")
        .version()
        .upload(&folder.path().join("1"), &mut |done, total| last = (done, total))
        .expect("the upload succeeds");
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

/// Asserts that a folder has the values that were built.
fn assert_right(folder: &Path, version: u64) {
    let reader = ValuesReader::open(folder, &all()).expect("the version opens");
    for id in (0..ROWS).step_by(997) {
        assert_eq!(
            reader.get(&id.to_le_bytes()).expect("the read succeeds"),
            Some(value(id + version)),
            "key {id}"
        );
    }
    assert_eq!(reader.get(&ROWS.to_le_bytes()).expect("the read succeeds"), None);
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
