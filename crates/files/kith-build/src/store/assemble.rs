//! Assembles a version from partitions that were built by separate tasks.

use super::{PARTITION_PREFIX, SchemaFrom, Shape, Target};
use crate::{
    OnProgress, Progress,
    failure::{Failure, build},
    place::refused,
    store::read_schema,
    unusable,
};
use kith_engine::Manifest;
use kith_files::objects::Objects;
use kith_files::{Assembly, PartitionSummary, ValuesOptions, assemble};
use kith_types::ErrorCode;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Joins all partitions below `parts` into the version `target` in `out`. `target.out_dir` is ignored, because versions lie
/// in `out`. If both places are buckets, the files are not stored on this machine's disk (64 MiB of memory).
///
/// # Errors
/// `build_failed` if a partition is missing, damaged or was built with other options; or the errors of a place. Nothing
/// remains then that could be mistaken for a version.
pub fn assemble_version(
    target: &Target<'_>,
    shape: &Shape,
    schema: Option<&SchemaFrom>,
    (parts, out): (&Objects, &Objects),
    on_progress: &mut OnProgress<'_>,
) -> Result<Manifest, Failure> {
    let schema = match schema {
        Some(SchemaFrom::File(path)) => Some(read_schema(path)?.canonical().to_owned()),
        Some(SchemaFrom::Given(schema)) => Some(schema.canonical().to_owned()),
        None => None,
    };
    // For a bucket, its name in messages.
    let out_dir = out.folder().map_or_else(|| out.location().to_string().into(), Path::to_owned);
    let options = ValuesOptions {
        key: shape.key,
        value: shape.value,
        schema,
        ..ValuesOptions::new(target.store, target.version, shape.partitions, out_dir)
    };
    match (parts.folder(), out.folder()) {
        (Some(folder), Some(_)) => {
            assemble(&options, &partition_folders(folder)?).map_err(|error| build(&error))
        }
        (None, Some(_)) => assemble_here(&options, parts, on_progress),
        (_, None) => assemble_there(&options, parts, &out.join(&target.version.0.to_string()), on_progress),
    }
}

/// Assembles a version in a bucket. Its files are not stored on the disk of this machine.
fn assemble_there(
    options: &ValuesOptions,
    parts: &Objects,
    to: &Objects,
    on_progress: &mut OnProgress<'_>,
) -> Result<Manifest, Failure> {
    let (folders, partitions) = summaries(parts)?;
    let assembly = Assembly::new(options, &partitions).map_err(|error| build(&error))?;
    let source = assembly.source(parts, &folders);
    let sent = to.version().upload_proven(&source, assembly.manifest(), &mut |done, total| {
        on_progress(Progress::Bytes { stage: "assembling", done, total });
    });
    sent.map_err(|error| refused(&error))?;
    Ok(assembly.manifest().clone())
}

/// Assembles a version in a folder. Partitions in a bucket are downloaded first.
fn assemble_here(
    options: &ValuesOptions,
    parts: &Objects,
    on_progress: &mut OnProgress<'_>,
) -> Result<Manifest, Failure> {
    let scratch = tempfile::tempdir().map_err(unusable(&std::env::temp_dir()))?;
    let (folders, partitions) = summaries(parts)?;
    // Checks the summaries before the first byte is downloaded.
    Assembly::new(options, &partitions).map_err(|error| build(&error))?;
    let total = partitions.iter().flat_map(|(_, summary)| &summary.files).map(|file| file.bytes).sum();
    let (mut done, mut here) = (0, Vec::new());
    for (name, (_, summary)) in folders.iter().zip(&partitions) {
        let folder = scratch.path().join(name);
        parts
            .partitions()
            .download(name, summary, &folder, &mut |bytes| {
                done += bytes;
                on_progress(Progress::Bytes { stage: "downloading", done, total });
            })
            .map_err(|error| refused(&error))?;
        here.push(folder);
    }
    assemble(options, &here).map_err(|error| build(&error))
}

/// The partitions in a place: the names of their folders, and their summaries with the names of their folders for messages.
type Summaries = (Vec<String>, Vec<(PathBuf, PartitionSummary)>);

fn summaries(parts: &Objects) -> Result<Summaries, Failure> {
    let mut summaries = (Vec::new(), Vec::new());
    for (name, bytes) in parts.partitions().summaries().map_err(|error| refused(&error))? {
        let shown = PathBuf::from(parts.join(&name).location().to_string());
        let summary = PartitionSummary::decode(&bytes, &shown).map_err(|error| build(&error))?;
        summaries.0.push(name);
        summaries.1.push((shown, summary));
    }
    Ok(summaries)
}

/// The folders of partitions. Names that begin with a dot belong to tasks that are running or were killed.
fn partition_folders(parts: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        let help = "name the folder that the tasks of `kith store build-partition` had as --out";
        Failure::new(ErrorCode::BadInput, format!("{} cannot be read: {error}", parts.display()), help)
    };
    let mut folders = Vec::new();
    for entry in fs::read_dir(parts).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().to_string_lossy().starts_with(PARTITION_PREFIX) {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}
