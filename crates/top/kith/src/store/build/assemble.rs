//! `kith store assemble` joins partitions that tasks built one by one into a version. `kith store discard-parts` removes the
//! partitions afterwards.

use super::{BuildReply, partition::VersionFlags};
use crate::{
    failure::Failure,
    output::{self, Format},
    publish::{location, metered},
    table,
};
use clap::Args;
use kith_build::rows::{RowReport, ValueType};
use kith_build::{BuiltVersion, Location, SchemaFrom, open_objects, refused, version_dir};
use serde::Serialize;
use std::{path::PathBuf, time::Instant};

/// A version to assemble from partitions that were built one by one.
#[derive(Clone, Debug, Args)]
pub struct AssembleFlags {
    #[command(flatten)]
    version: VersionFlags,
    /// Where the version's partitions are: the --out of the tasks
    #[arg(value_name = "PARTS", value_parser = location)]
    parts: Location,
    /// Folder or URL that versions are built into, each under its number, such as s3://BUCKET/PREFIX
    #[arg(long, value_name = "URL", value_parser = location)]
    out: Location,
    /// The schema of records that the tasks used
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

/// Partitions that are no longer needed.
#[derive(Clone, Debug, Args)]
pub struct DiscardFlags {
    /// Where the partitions are: the --out of the tasks
    #[arg(value_name = "PARTS", value_parser = location)]
    parts: Location,
}

/// The number of partitions that were removed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiscardReply {
    pub parts: String,
    pub removed: u64,
}

/// Joins partitions into a version.
///
/// # Errors
/// If a partition is missing, damaged or was built with other settings, or the version cannot be written. Nothing that could
/// be mistaken for a version is left then.
pub fn assemble_version(format: Format, flags: &AssembleFlags) -> anyhow::Result<()> {
    let started = Instant::now();
    let (parts, out) = (open_objects(&flags.parts.to_string())?, open_objects(&flags.out.to_string())?);
    let schema = schema(flags)?;
    let (target, shape) = (flags.version.target(PathBuf::new()), flags.version.shape());
    let manifest = metered(|on_progress| {
        kith_build::assemble_version(&target, &shape, schema.as_ref(), (&parts, &out), on_progress)
    })?;
    let folder = match out.folder() {
        Some(out) => version_dir(out, target.version).display().to_string(),
        None => out.join(&target.version.0.to_string()).location().to_string(),
    };
    let built = BuiltVersion { manifest, duplicates: 0, report: RowReport::default(), changes: None };
    let reply = BuildReply::built(&flags.version.store, &built, folder, started.elapsed());
    output::print(format, &reply, table::push::built)
}

fn schema(flags: &AssembleFlags) -> Result<Option<SchemaFrom>, Failure> {
    match (&flags.schema, flags.version.shape().value == ValueType::Record) {
        (Some(path), true) => Ok(Some(SchemaFrom::File(path.clone()))),
        (None, false) => Ok(None),
        (Some(_), false) => {
            Err(Failure::usage("--schema applies only to records", "leave it out, or add --value record"))
        }
        (None, true) => Err(Failure::usage("--schema is missing", "give the schema that the tasks used")),
    }
}

/// Removes complete and incomplete partitions and the leftovers of killed tasks, and nothing else.
///
/// # Errors
/// If the place cannot be read, or something cannot be removed.
pub fn discard_parts(format: Format, flags: &DiscardFlags) -> anyhow::Result<()> {
    let removed =
        open_objects(&flags.parts.to_string())?.partitions().remove_all().map_err(|error| refused(&error))?;
    let reply = DiscardReply { parts: flags.parts.to_string(), removed: removed as u64 };
    output::print(format, &reply, table::push::discarded)
}
