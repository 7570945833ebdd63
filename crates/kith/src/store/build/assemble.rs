//! `kith store assemble`: partitions that tasks built one by one become a version; `kith store discard-parts` removes them then.

use super::{
    BuildReply, fault,
    partition::{FOLDER_PREFIX, VersionFlags},
    rows::Built,
    shape,
};
use crate::{
    failure::Failure,
    output::{self, Format},
    publish::{Meter, location, place, refused, unusable},
    table,
};
use clap::Args;
use kith_engine::{
    Manifest,
    load::{Assembly, PartitionSummary, ValuesOptions, assemble, version_dir},
};
use kith_objects::{Location, Objects};
use kith_rows::{RowReport, ValueType};
use kith_types::{ErrorCode, StoreVersion};
use serde::Serialize;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

/// A version of partitions that were built one by one.
#[derive(Clone, Debug, Args)]
pub struct AssembleFlags {
    #[command(flatten)]
    version: VersionFlags,
    /// Where the version's partitions are: what the tasks had as --out
    #[arg(value_name = "PARTS", value_parser = location)]
    parts: Location,
    /// The folder that versions are built into, each under its number; or a URL, as s3://BUCKET/PREFIX
    #[arg(long, value_name = "URL", value_parser = location)]
    out: Location,
    /// The schema of records, as the tasks had it
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

/// Partitions that nobody needs any more.
#[derive(Clone, Debug, Args)]
pub struct DiscardFlags {
    /// Where they are: what the tasks had as --out
    #[arg(value_name = "PARTS", value_parser = location)]
    parts: Location,
}

/// What was removed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiscardReply {
    pub parts: String,
    pub removed: u64,
}

/// Joins partitions into a version.
///
/// # Errors
/// If one is missing, damaged or was built otherwise, or the version cannot be written; nothing that could be taken for a version is left
/// then.
pub fn assemble_version(format: Format, flags: &AssembleFlags) -> anyhow::Result<()> {
    let started = Instant::now();
    let (parts, out) = (place(&flags.parts.to_string())?, place(&flags.out.to_string())?);
    let mut options = options(flags)?;
    let (manifest, folder) = match (parts.folder(), out.folder()) {
        (Some(folder), Some(_)) => {
            let folders = partition_folders(folder)?;
            let manifest = assemble(&options, &folders).map_err(|error| fault::build(&error))?;
            (manifest, version_dir(&options.out_dir, options.version).display().to_string())
        }
        (None, Some(_)) => {
            let manifest = assemble_here(&options, &parts)?;
            (manifest, version_dir(&options.out_dir, options.version).display().to_string())
        }
        (_, None) => {
            // What messages call the place.
            options.out_dir = flags.out.to_string().into();
            let to = out.join(&options.version.0.to_string());
            (assemble_there(&options, &parts, &to)?, to.location().to_string())
        }
    };
    let built = Built { manifest, duplicates: 0, report: RowReport::default(), changes: None };
    let reply = BuildReply::built(&flags.version.store, &built, folder, started.elapsed());
    output::print(format, &reply, table::push::built)
}

fn options(flags: &AssembleFlags) -> Result<ValuesOptions, Failure> {
    let version = &flags.version;
    let shape = version.shape();
    let schema = match (&flags.schema, shape.value == ValueType::Record) {
        (Some(path), true) => Some(shape::read_schema(path)?.canonical().to_owned()),
        (None, false) => None,
        (Some(_), false) => {
            return Err(Failure::usage("--schema is for records", "leave it out, or say --value record"));
        }
        (None, true) => return Err(Failure::usage("--schema is missing", "give the one that the tasks had")),
    };
    let out_dir = flags.out.folder().map_or_else(PathBuf::new, Path::to_owned);
    Ok(ValuesOptions {
        key: shape.key,
        value: shape.value,
        schema,
        ..ValuesOptions::new(&version.store, StoreVersion(version.version), version.partitions, out_dir)
    })
}

/// A version in a bucket: nothing of it comes to the disk of this machine.
fn assemble_there(options: &ValuesOptions, parts: &Objects, to: &Objects) -> Result<Manifest, Failure> {
    let (folders, partitions) = summaries(parts)?;
    let assembly = Assembly::new(options, &partitions).map_err(|error| fault::build(&error))?;
    let mut meter = Meter::new();
    let source = assembly.source(parts, &folders);
    let sent = to.upload_proven(&source, assembly.manifest(), &mut |done, total| {
        meter.on_bytes("assembling", done, total);
    });
    meter.clear();
    sent.map_err(|error| refused(&error))?;
    Ok(assembly.manifest().clone())
}

/// A version in a folder, of partitions in a bucket: downloaded first.
fn assemble_here(options: &ValuesOptions, parts: &Objects) -> Result<Manifest, Failure> {
    let scratch = tempfile::tempdir().map_err(unusable(&std::env::temp_dir()))?;
    let (folders, partitions) = summaries(parts)?;
    // Fails before the first byte comes.
    Assembly::new(options, &partitions).map_err(|error| fault::build(&error))?;
    let mut meter = Meter::new();
    let total = partitions.iter().flat_map(|(_, summary)| &summary.files).map(|file| file.bytes).sum();
    let (mut done, mut here) = (0, Vec::new());
    for (name, (_, summary)) in folders.iter().zip(&partitions) {
        let folder = scratch.path().join(name);
        parts
            .download_partition(name, summary, &folder, &mut |bytes| {
                done += bytes;
                meter.on_bytes("downloading", done, total);
            })
            .map_err(|error| refused(&error))?;
        here.push(folder);
    }
    meter.clear();
    assemble(options, &here).map_err(|error| fault::build(&error))
}

/// The partitions in a place: the names of their folders, and each with what messages call it.
type Summaries = (Vec<String>, Vec<(PathBuf, PartitionSummary)>);

fn summaries(parts: &Objects) -> Result<Summaries, Failure> {
    let mut summaries = (Vec::new(), Vec::new());
    for (name, bytes) in parts.partitions().map_err(|error| refused(&error))? {
        let shown = PathBuf::from(parts.join(&name).location().to_string());
        let summary = PartitionSummary::decode(&bytes, &shown).map_err(|error| fault::build(&error))?;
        summaries.0.push(name);
        summaries.1.push((shown, summary));
    }
    Ok(summaries)
}

/// Folders of partitions; names that begin with a dot are those of tasks that run or were killed.
fn partition_folders(parts: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        let help = "name the folder that the tasks of `kith store build-partition` had as --out";
        Failure::new(ErrorCode::BadInput, format!("{} cannot be read: {error}", parts.display()), help)
    };
    let mut folders = Vec::new();
    for entry in fs::read_dir(parts).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX) {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

/// Removes partitions, whole or not, and what killed tasks left; nothing else.
///
/// # Errors
/// If the place cannot be read, or something cannot be removed.
pub fn discard_parts(format: Format, flags: &DiscardFlags) -> anyhow::Result<()> {
    let removed = place(&flags.parts.to_string())?.remove_partitions().map_err(|error| refused(&error))?;
    let reply = DiscardReply { parts: flags.parts.to_string(), removed: removed as u64 };
    output::print(format, &reply, table::push::discarded)
}
