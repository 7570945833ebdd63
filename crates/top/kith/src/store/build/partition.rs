//! `kith store build-partition`: builds one partition of a version. Many tasks, as Spark runs them (`spark/`), build one
//! each, and `kith store assemble` joins them (Voldemort §5.2). The result is byte for byte what a single `kith store build`
//! makes.
//!
//! The output of a task appears complete or not at all: a task that is killed leaves nothing, and a task that runs twice
//! leaves the same output. In a bucket, each outcome has its own prefix, with a summary that is written last.

use super::{RowFlags, input::Input, seconds};
use crate::{
    failure::{Failure, report_failure},
    names::store_name,
    output::{self, Format},
    publish::{location, metered},
    table,
};
use clap::Args;
use kith_build::rows::{KeyType, ValueType};
use kith_build::{
    Location, PARTITION_PREFIX, PartitionSummary, Rows, Shape, Target, Workshop, open_objects,
    publish_partition,
};
use kith_types::{PartitionCount, PartitionId, StoreVersion};
use serde::Serialize;
use std::{path::PathBuf, time::Instant};

/// The flags that must be equal for all tasks of a version.
#[derive(Clone, Debug, Args)]
pub struct VersionFlags {
    /// The store
    #[arg(value_parser = store_name)]
    pub store: String,
    /// The version's number, the same for all partitions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub version: u64,
    /// How many partitions the cluster has
    #[arg(long, value_name = "N", value_parser = super::flags::partitions)]
    pub partitions: PartitionCount,
    /// Type of the keys, id, string or bytes [default: string]
    #[arg(long, value_name = "TYPE")]
    key: Option<KeyType>,
    /// Type of the values, text, bytes, json or record [default: text]
    #[arg(long, value_name = "TYPE")]
    value: Option<ValueType>,
}

/// One partition of a version, to be built on its own.
#[derive(Clone, Debug, Args)]
pub struct PartitionFlags {
    #[command(flatten)]
    version: VersionFlags,
    /// Files, folders or glob patterns, or - for standard input, with all rows of this partition and no others.
    /// Standard input must end with a line that is a single full stop, so that truncated input is refused
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<String>,
    /// The partition to build (docs/formats/partition-function.md)
    #[arg(long, value_name = "P")]
    partition: u32,
    /// Folder or URL of the version's partitions, each under its number, such as s3://BUCKET/PREFIX
    #[arg(long, value_name = "URL", value_parser = location)]
    out: Location,
    /// How rows are read and written.
    #[command(flatten)]
    rows: RowFlags,
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
    /// A time that is probably in another unit than milliseconds.
    pub warning: Option<String>,
    pub seconds: f64,
}

impl VersionFlags {
    pub(super) fn shape(&self) -> Shape {
        Shape::stated(self.key, self.value, self.partitions)
    }

    pub(super) fn target(&self, out_dir: PathBuf) -> Target<'_> {
        Target { store: &self.store, version: StoreVersion(self.version), out_dir }
    }
}

/// Builds one partition.
///
/// # Errors
/// If the rows are refused, for example because they belong to other partitions, or the place cannot be written. This run
/// then leaves no partition, and the output of other runs of the task is unchanged.
pub fn build_partition(format: Format, flags: &PartitionFlags) -> anyhow::Result<()> {
    let started = Instant::now();
    let version = &flags.version;
    if version.partitions.get() <= flags.partition {
        let message = format!("there is no partition {} of {}", flags.partition, version.partitions.get());
        return Err(Failure::usage(message, "partitions are numbered from 0").into());
    }
    if flags.rows.compress.is_some() {
        let help = "use `kith store build`: values are compressed with a dictionary of all rows";
        return Err(Failure::usage("--compress cannot be used for a single partition", help).into());
    }
    let shape = version.shape();
    if shape.value == ValueType::Record && flags.rows.schema.is_none() {
        let help = "all partitions must have the same schema, which cannot be inferred from the rows of one";
        return Err(Failure::usage("--schema is missing", help).into());
    }
    let settings = flags.rows.settings();
    let rows = match flags.inputs.as_slice() {
        [input] if input == "-" => Rows::of(vec![Box::new(Input)], &settings, &shape, false),
        inputs => Rows::open(inputs, &settings, &shape, false),
    }?;
    let objects = open_objects(&flags.out.to_string())?;
    let workshop = Workshop::of(&objects)?;
    let out = workshop.folder();
    let folder = out.join(format!("{PARTITION_PREFIX}{:05}", flags.partition));
    let target = version.target(out.to_owned());
    let partition = PartitionId(flags.partition);
    let summary = metered(|progress| rows.build_partition(&target, partition, &folder, progress))
        .map_err(report_failure)?;
    let shown = match objects.folder() {
        Some(_) => folder.display().to_string(),
        None => {
            let sent = metered(|progress| publish_partition(&objects, &folder, &summary, progress))?;
            sent.location().to_string()
        }
    };
    let reply = PartitionReply { warning: rows.warning(), ..replied(flags, shown, &summary, started) };
    output::print(format, &reply, table::push::partition)
}

fn replied(
    flags: &PartitionFlags,
    folder: String,
    summary: &PartitionSummary,
    started: Instant,
) -> PartitionReply {
    PartitionReply {
        store: flags.version.store.clone(),
        version: flags.version.version,
        partition: flags.partition,
        folder,
        records: summary.counts.records,
        bytes: summary.files.iter().map(|file| file.bytes).sum(),
        warning: None,
        seconds: seconds(started.elapsed()),
    }
}
