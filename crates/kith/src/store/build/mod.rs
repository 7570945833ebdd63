//! `kith store build`: rows in, a version of a store in a folder out. It can be pushed to any cluster of as many partitions.

mod delta;
pub mod fault;
mod flags;
mod input;
pub mod inputs;
mod partition;
mod reply;
mod rows;
pub mod shape;

pub use delta::DeleteFlags;
pub use flags::{BuildFlags, RowFlags};
pub use partition::{AssembleFlags, PartitionFlags, PartitionReply, assemble_version, build_partition};
pub use reply::{BuildReply, ChangesReply, dropped, seconds};
pub use rows::{Base, Rows, Target};
pub use shape::Shape;

use crate::{
    connect::{self, TargetFlags},
    failure::Failure,
    output::{self, Format},
    publish::{Meter, place, refused, unusable, versions_at},
    table,
};
use anyhow::Context;
use kith_engine::{Manifest, load::version_dir};
use kith_objects::Objects;
use kith_types::StoreVersion;
use std::{
    path::Path,
    time::{Instant, SystemTime},
};

/// Builds, or only checks.
///
/// # Errors
/// If the rows are refused or the folder cannot be written; nothing that could be taken for a version is left then.
pub async fn run(target: &TargetFlags, format: Format, flags: &BuildFlags) -> anyhow::Result<()> {
    let started = Instant::now();
    if flags.base.is_none() && flags.delete.delete.is_some() {
        return Err(
            Failure::usage("--delete goes with --base: there is nothing to delete from", "name it").into()
        );
    }
    let shape = match (&flags.base, flags.partitions) {
        (Some(base), _) => Shape::of_version(&flags.store, &version_at(base)?)?,
        (None, Some(partitions)) => Shape::told(flags.key, flags.value, partitions),
        (None, None) => asked(target, &flags.store).await?,
    };
    let reply = tokio::task::block_in_place(|| {
        let rows = Rows::open(&flags.inputs, &flags.rows, &shape, false)?;
        for note in &rows.notes {
            eprintln!("{note}");
        }
        match &flags.out {
            Some(out) if !flags.dry_run => {
                let place = place(&out.to_string())?;
                let version = StoreVersion(match flags.version {
                    Some(version) => version,
                    None => next_version(&place)?,
                });
                // A bucket takes what is whole: built here, then uploaded.
                let scratch = match place.folder() {
                    Some(_) => None,
                    None => Some(tempfile::tempdir().map_err(unusable(&std::env::temp_dir()))?),
                };
                let here = scratch.as_ref().map(|scratch| scratch.path());
                let out_dir = here.or(place.folder()).unwrap_or(Path::new("")).to_owned();
                let built = Target { store: &flags.store, version, out_dir: out_dir.clone() };
                let built = match &flags.base {
                    Some(folder) => {
                        let base = Base { folder, delete: flags.delete.delete.as_deref() };
                        rows.build_on(base, &flags.rows, &shape, &built)?
                    }
                    None => rows.build(&flags.rows, &shape, &built)?,
                };
                if scratch.is_some() {
                    upload(&version_dir(&out_dir, version), &place.join(&version.0.to_string()))?;
                }
                let shown = out.join(&version.0.to_string()).to_string();
                Ok(BuildReply::built(&flags.store, &built, shown, started.elapsed()))
            }
            _ => Ok::<_, Failure>(BuildReply::checked(&flags.store, &rows.check()?, started.elapsed())),
        }
    })?;
    output::print(format, &reply, table::push::built)
}

/// The manifest of a built version.
///
/// # Errors
/// `version_damaged`.
pub fn version_at(folder: &Path) -> Result<Manifest, Failure> {
    Manifest::read(folder).map_err(|error| {
        let message = format!("{} is no whole version: {}", folder.display(), fault::chain(&error));
        Failure::new("version_damaged", message, "build it again with `kith store build`")
    })
}

async fn asked(target: &TargetFlags, store: &str) -> anyhow::Result<Shape> {
    let router = connect::router(target).await?;
    let topology = router.topology().await.context("read the topology")?;
    let document = super::described(&router, store).await?;
    Ok(Shape::of(&document, &topology)?)
}

/// The time in milliseconds since 1970, but above all versions in the place.
fn next_version(out: &Objects) -> Result<u64, Failure> {
    let newest = versions_at(out)?.into_iter().max().unwrap_or_default();
    Ok(now().max(newest + 1))
}

fn upload(folder: &Path, place: &Objects) -> Result<(), Failure> {
    let mut meter = Meter::new();
    let sent = place.upload_version(folder, &mut |done, total| meter.on_bytes("uploading", done, total));
    meter.clear();
    sent.map(|_| ()).map_err(|error| refused(&error))
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
