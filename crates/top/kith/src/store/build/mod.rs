//! `kith store build`: builds rows into a version of a store, in a folder. The version can be pushed to any cluster with the
//! same number of partitions.

mod assemble;
mod delta;
mod flags;
mod input;
mod partition;
mod reply;

pub use assemble::{AssembleFlags, DiscardFlags, DiscardReply, assemble_version, discard_parts};
pub use delta::DeleteFlags;
pub use flags::{BuildFlags, RowFlags};
pub use partition::{PartitionFlags, PartitionReply, build_partition};
pub use reply::{BuildReply, ChangesReply, dropped, seconds};

use crate::{
    connect::{self, TargetFlags},
    failure::{Failure, report_failure},
    output::{self, Format},
    publish::metered,
    table,
};
use anyhow::Context;
use kith_build::{Base, Destination, Location, Objects, Rows, Shape, open_objects, unusable, version_here};
use kith_engine::Manifest;
use kith_types::StoreVersion;
use std::{
    path::{Path, PathBuf},
    time::Instant,
};

/// Builds a version, or only checks the rows.
///
/// # Errors
/// If the rows are refused or the folder cannot be written. Nothing that could be mistaken for a version is left then.
pub async fn run(target: &TargetFlags, format: Format, flags: &BuildFlags) -> anyhow::Result<()> {
    let started = Instant::now();
    if flags.base.is_none() && flags.delete.delete.is_some() {
        return Err(Failure::usage(
            "--delete needs --base: there is no version to delete from",
            "add --base",
        )
        .into());
    }
    // The folder into which the base version is downloaded if it is not on this machine.
    let scratch = tempfile::tempdir().map_err(unusable(&std::env::temp_dir()))?;
    let base = flags.base.as_deref();
    let base =
        base.map(|base| tokio::task::block_in_place(|| Before::open(base, scratch.path()))).transpose()?;
    let shape = match (&base, flags.partitions) {
        (Some(base), _) => Shape::of_version(&flags.store, &base.manifest)?,
        (None, Some(partitions)) => Shape::stated(flags.key, flags.value, partitions),
        (None, None) => asked(target, &flags.store).await?,
    };
    let reply = tokio::task::block_in_place(|| {
        let rows = Rows::open(&flags.inputs, &flags.rows.settings(), &shape, false)?;
        match &flags.out {
            Some(out) if !flags.dry_run => build(flags, &rows, base.as_ref(), out, started),
            _ => {
                let report = metered(|progress| rows.check(progress)).map_err(report_failure)?;
                let changes = rows.changes(&report);
                Ok::<_, Failure>(BuildReply::checked(&flags.store, &report, changes, started.elapsed()))
            }
        }
    })?;
    output::print(format, &reply, table::push::built)
}

/// The base: the version that the new one is derived from.
struct Before {
    folder: PathBuf,
    manifest: Manifest,
    objects: Objects,
}

impl Before {
    /// Opens the base in its folder, or after downloading it to `scratch`.
    fn open(base: &str, scratch: &Path) -> Result<Self, Failure> {
        let objects = open_objects(base)?;
        let (folder, manifest) = metered(|progress| version_here(&objects, &scratch.join("base"), progress))?;
        Ok(Self { folder, manifest, objects })
    }
}

fn build(
    flags: &BuildFlags,
    rows: &Rows,
    base: Option<&Before>,
    out: &Location,
    started: Instant,
) -> Result<BuildReply, Failure> {
    let objects = open_objects(&out.to_string())?;
    let destination =
        Destination { store: &flags.store, version: flags.version.map(StoreVersion), objects: &objects };
    let base = base.map(|base| Base {
        folder: &base.folder,
        objects: Some(&base.objects),
        delete: flags.delete.delete.as_deref(),
    });
    let built = metered(|progress| rows.build_into(&destination, base, progress)).map_err(report_failure)?;
    let shown = out.join(&built.manifest.version.0.to_string()).to_string();
    let reply = BuildReply::built(&flags.store, &built, shown, started.elapsed());
    Ok(BuildReply { schema_changes: rows.changes(&built.report), warning: rows.warning(), ..reply })
}

async fn asked(target: &TargetFlags, store: &str) -> anyhow::Result<Shape> {
    let router = connect::router(target).await?;
    let topology = router.topology().await.context("read the topology")?;
    let document = super::described(&router, store).await?;
    super::shape_of(&router, &document, &topology, false).await
}
