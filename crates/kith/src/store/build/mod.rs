//! `kith store build`: rows in, a version of a store in a folder out. It can be pushed to any cluster of as many partitions.

mod delta;
pub mod fault;
mod flags;
mod input;
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
    table,
};
use anyhow::Context;
use kith_engine::{Manifest, load::version_dir};
use kith_types::StoreVersion;
use std::{
    fs,
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
                let version = StoreVersion(flags.version.unwrap_or_else(|| next_version(out)));
                let built = Target { store: &flags.store, version, out_dir: out.clone() };
                let built = match &flags.base {
                    Some(folder) => {
                        let base = Base { folder, delete: flags.delete.delete.as_deref() };
                        rows.build_on(base, &flags.rows, &shape, &built)?
                    }
                    None => rows.build(&flags.rows, &shape, &built)?,
                };
                Ok(BuildReply::built(&flags.store, &built, &version_dir(out, version), started.elapsed()))
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

/// The time in milliseconds since 1970, but above all versions in the folder.
fn next_version(out: &Path) -> u64 {
    let newest = versions_in(out).max().unwrap_or_default();
    now().max(newest + 1)
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The numbers of the folders in `folder` that are named by numbers.
pub fn versions_in(folder: &Path) -> impl Iterator<Item = u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
