//! `kith store build-partition` and `kith store assemble`: a version built by many tasks of one partition each, as Spark
//! runs them (`spark/`), then joined (Voldemort §5.2). Equal, to the byte, to what one `kith store build` makes.
//!
//! A task's folder appears whole or not at all: a task that is killed leaves nothing, one that runs twice leaves the same.

use super::{BuildReply, RowFlags, Rows, Shape, Target, fault, input::Input, rows::Built, seconds, shape};
use crate::{
    failure::Failure,
    load::names::store_name,
    output::{self, Format},
    table,
};
use clap::Args;
use kith_engine::load::{PartitionSummary, ValuesOptions, assemble, version_dir};
use kith_rows::{KeyType, RowReport, ValueType};
use kith_types::{PartitionCount, PartitionId, StoreVersion};
use serde::Serialize;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

/// How the folder of one partition is named, in the folder of all.
const FOLDER_PREFIX: &str = "p";

/// What all tasks of a version must be told alike.
#[derive(Clone, Debug, Args)]
pub struct VersionFlags {
    /// The store
    #[arg(value_parser = store_name)]
    store: String,
    /// The version's number, the same for all partitions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    version: u64,
    /// How many partitions the cluster has
    #[arg(long, value_name = "N", value_parser = super::flags::partitions)]
    partitions: PartitionCount,
    /// What keys are, id, string or bytes [default: string]
    #[arg(long, value_name = "TYPE")]
    key: Option<KeyType>,
    /// What values are, text, bytes, json or record [default: text]
    #[arg(long, value_name = "TYPE")]
    value: Option<ValueType>,
}

/// One partition of a version, built by itself.
#[derive(Clone, Debug, Args)]
pub struct PartitionFlags {
    #[command(flatten)]
    version: VersionFlags,
    /// Files, folders or patterns, or - for standard input, with all rows of this partition and no others; what
    /// comes from standard input ends with a line of a full stop alone, so that what is cut off is refused
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<String>,
    /// Which partition (docs/formats/partition-function.md)
    #[arg(long, value_name = "P")]
    partition: u32,
    /// The folder of the version's partitions, each under its number
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// How rows are read and written.
    #[command(flatten)]
    rows: RowFlags,
}

/// A version of partitions that were built one by one.
#[derive(Clone, Debug, Args)]
pub struct AssembleFlags {
    #[command(flatten)]
    version: VersionFlags,
    /// The folder of the version's partitions: what the tasks had as --out
    #[arg(value_name = "FOLDER")]
    parts: PathBuf,
    /// The folder that versions are built into, each under its number
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// The schema of records, as the tasks had it
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

/// A partition that was built.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartitionReply {
    pub store: String,
    pub version: u64,
    pub partition: u32,
    pub folder: String,
    pub records: u64,
    pub bytes: u64,
    pub seconds: f64,
}

impl VersionFlags {
    fn shape(&self) -> Shape {
        Shape::told(self.key, self.value, self.partitions)
    }

    fn target(&self, out_dir: PathBuf) -> Target<'_> {
        Target { store: &self.store, version: StoreVersion(self.version), out_dir }
    }
}

/// Builds one partition.
///
/// # Errors
/// If the rows are refused, among them those of other partitions, or the folder cannot be written; nothing is left then.
pub fn build_partition(format: Format, flags: &PartitionFlags) -> anyhow::Result<()> {
    let started = Instant::now();
    let version = &flags.version;
    if version.partitions.get() <= flags.partition {
        let message = format!("there is no partition {} of {}", flags.partition, version.partitions.get());
        return Err(Failure::usage(message, "they count from 0").into());
    }
    if flags.rows.compress.is_some() {
        let help = "build with `kith store build`: values are compressed with a dictionary of all rows";
        return Err(Failure::usage("--compress does not go with one partition", help).into());
    }
    let shape = version.shape();
    if shape.value == ValueType::Record && flags.rows.schema.is_none() {
        let help = "all partitions must have one schema, which the rows of one cannot tell";
        return Err(Failure::usage("--schema is missing", help).into());
    }
    let rows = match flags.inputs.as_slice() {
        [input] if input == "-" => Rows::of(vec![Box::new(Input)], &flags.rows, &shape, false)?,
        inputs => Rows::open(inputs, &flags.rows, &shape, false)?,
    };
    let folder = flags.out.join(format!("{FOLDER_PREFIX}{:05}", flags.partition));
    let target = version.target(flags.out.clone());
    let summary =
        rows.build_partition(&flags.rows, &shape, &target, PartitionId(flags.partition), &folder)?;
    output::print(format, &replied(flags, &folder, &summary, started), table::push::partition)
}

fn replied(
    flags: &PartitionFlags,
    folder: &Path,
    summary: &PartitionSummary,
    started: Instant,
) -> PartitionReply {
    PartitionReply {
        store: flags.version.store.clone(),
        version: flags.version.version,
        partition: flags.partition,
        folder: folder.display().to_string(),
        records: summary.counts.records,
        bytes: summary.files.iter().map(|file| file.bytes).sum(),
        seconds: seconds(started.elapsed()),
    }
}

/// Joins partitions into a version.
///
/// # Errors
/// If one is missing, damaged or was built otherwise, or the version cannot be written; nothing is left then.
pub fn assemble_version(format: Format, flags: &AssembleFlags) -> anyhow::Result<()> {
    let started = Instant::now();
    let version = &flags.version;
    let shape = version.shape();
    let schema = match (&flags.schema, shape.value == ValueType::Record) {
        (Some(path), true) => Some(shape::read_schema(path)?.canonical().to_owned()),
        (None, false) => None,
        (Some(_), false) => {
            return Err(
                Failure::usage("--schema is for records", "leave it out, or say --value record").into()
            );
        }
        (None, true) => {
            return Err(Failure::usage("--schema is missing", "give the one that the tasks had").into());
        }
    };
    let options = ValuesOptions {
        key: shape.key,
        value: shape.value,
        schema,
        ..ValuesOptions::new(
            &version.store,
            StoreVersion(version.version),
            version.partitions,
            flags.out.clone(),
        )
    };
    let folders = partition_folders(&flags.parts)?;
    let manifest = assemble(&options, &folders).map_err(|error| fault::build(&error))?;
    let built = Built { manifest, duplicates: 0, report: RowReport::default(), changes: None };
    let folder = version_dir(&flags.out, StoreVersion(version.version));
    let reply = BuildReply::built(&version.store, &built, folder.display().to_string(), started.elapsed());
    output::print(format, &reply, table::push::built)
}

/// Folders of partitions; names that begin with a dot are those of tasks that run or were killed.
fn partition_folders(parts: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        let help = "name the folder that the tasks of `kith store build-partition` had as --out";
        Failure::new("bad_input", format!("{} cannot be read: {error}", parts.display()), help)
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
