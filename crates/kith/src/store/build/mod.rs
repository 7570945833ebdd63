//! `kith store build`: rows in, a version of a store in a folder out. It can be pushed to any cluster of as many partitions.

mod assemble;
mod delta;
pub mod fault;
mod flags;
mod input;
pub mod inputs;
mod partition;
mod reply;
mod rows;
pub mod shape;

pub use assemble::{AssembleFlags, DiscardFlags, DiscardReply, assemble_version, discard_parts};
pub use delta::DeleteFlags;
pub use flags::{BuildFlags, RowFlags};
pub use partition::{PartitionFlags, PartitionReply, build_partition};
pub use reply::{BuildReply, ChangesReply, dropped, seconds};
pub use rows::{Base, Rows, Target};
pub use shape::Shape;

use crate::{
    connect::{self, TargetFlags},
    failure::Failure,
    output::{self, Format},
    publish::{Meter, place, refused, unusable, version_here, versions_at},
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
    // Holds what is here for this build only.
    let scratch = tempfile::tempdir().map_err(unusable(&std::env::temp_dir()))?;
    let base = match &flags.base {
        Some(base) => {
            Some(tokio::task::block_in_place(|| version_here(&place(base)?, &scratch.path().join("base")))?)
        }
        None => None,
    };
    let shape = match (&base, flags.partitions) {
        (Some((_, manifest)), _) => Shape::of_version(&flags.store, manifest)?,
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
                let out_dir = place.folder().map_or_else(|| scratch.path().join("built"), Path::to_owned);
                let built = Target { store: &flags.store, version, out_dir: out_dir.clone() };
                let built = match &base {
                    Some((folder, _)) => {
                        let base = Base { folder, delete: flags.delete.delete.as_deref() };
                        rows.build_on(base, &flags.rows, &shape, &built)?
                    }
                    None => rows.build(&flags.rows, &shape, &built)?,
                };
                if place.folder().is_none() {
                    let base = flags.base.as_deref().map(crate::publish::place).transpose()?;
                    let to = place.join(&version.0.to_string());
                    upload(base.as_ref(), &built.manifest, &version_dir(&out_dir, version), &to)?;
                }
                let shown = out.join(&version.0.to_string()).to_string();
                Ok(BuildReply::built(&flags.store, &built, shown, started.elapsed()))
            }
            _ => Ok::<_, Failure>(BuildReply::checked(&flags.store, &rows.check()?, started.elapsed())),
        }
    })?;
    output::print(format, &reply, table::push::built)
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
    Ok(now().max(newest.saturating_add(1)))
}

fn upload(
    base: Option<&Objects>,
    manifest: &Manifest,
    folder: &Path,
    place: &Objects,
) -> Result<(), Failure> {
    let mut meter = Meter::new();
    let sent = place.reserve_version(manifest).and_then(|()| {
        place.upload_version_on(base, folder, &mut |done, total| meter.on_bytes("uploading", done, total))
    });
    meter.clear();
    sent.map(|_| ()).map_err(|error| refused(&error))
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
