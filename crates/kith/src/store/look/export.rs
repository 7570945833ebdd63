//! `kith store export`: every record of a version, out of the nodes.
//!
//! Replicas have the same files, hence the same records in the same order: where a node goes away in the middle of a
//! partition, another goes on after the last record that came.

use super::{
    lines::Lines,
    replicas::{Replica, Replicas},
    throttle::Throttle,
};
use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    names::{rate, store_name},
    output::{self, Format},
    table,
};
use anyhow::Context;
use clap::{Args, ValueEnum};
use kith_client::{QueryError, Service};
use kith_rows::{ParquetRows, RowOptions, ValueShape, WriteRowsError};
use kith_schema::{KeyType, SchemaId, UnknownKind, ValueType};
use kith_types::{ErrorCode, PartitionId};
use kith_wire::{documents::HoldsDocument, v1};
use serde::Serialize;
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

#[derive(Clone, Debug, Args)]
pub struct ExportFlags {
    /// The store
    #[arg(value_parser = store_name)]
    store: String,
    /// Export only this partition [default: all, one after the other]
    #[arg(long, value_name = "P")]
    partition: Option<u32>,
    /// Which version [default: the one that is served]
    #[arg(long, value_name = "VERSION")]
    version: Option<u64>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: ExportFormat,
    /// File to write; `-` is standard output. The file appears once it is complete
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Read at most this many bytes per second, such as 10MiB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<u64>,
}

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// One JSON object a line
    #[default]
    Jsonl,
    /// Parquet: a column for the key, then the value, or a column for each field of a record
    Parquet,
}

/// What was written. Field names are a contract: `docs/stores.md`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExportReply {
    pub store: String,
    pub version: u64,
    /// The only partition that was asked for; `null`: all.
    pub partition: Option<u32>,
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    pub out: PathBuf,
    pub format: ExportFormat,
}

/// Writes every record; a file appears whole or not at all.
///
/// # Errors
/// If the version is not kept, no replica of a partition gives all its records, or they cannot be written.
pub async fn run(target: &TargetFlags, format: Format, flags: ExportFlags) -> anyhow::Result<Exit> {
    let router = connect::router(target).await?;
    let replicas = Replicas::of(&router, &flags.store, flags.version).await?;
    let count = replicas.partition_count().get();
    let partitions = match flags.partition {
        Some(partition) if count <= partition => {
            let message =
                format!("there is no partition {partition}: partitions are numbered 0 to {}", count - 1);
            return Err(Failure::usage(message, "leave --partition out to export all").into());
        }
        Some(partition) => partition..partition + 1,
        None => 0..count,
    };
    let (key, value, key_field) = shape(&router, &replicas).await?;
    let (out, mut total) = (Out::open(&flags.out), Total::default());
    let mut sink = Sink::new(flags.format, key, value, key_field, &out)?;
    let mut throttle = Throttle::new(flags.rate);
    for partition in partitions {
        let partition = PartitionId(partition);
        let exported = export(&replicas, partition, &mut throttle, &mut sink).await;
        match exported {
            Ok(more) => total.add(more),
            Err(error) => {
                out.give_up();
                return Err(error).with_context(|| format!("export partition {}", partition.0));
            }
        }
    }
    // The rate holds for what came last too, and so for a partition that is one piece.
    tokio::time::sleep(throttle.backlog()).await;
    if let Err(error) = sink.finish() {
        out.give_up();
        return Err(error);
    }
    out.finish()?;
    let reply = ExportReply {
        version: replicas.version.version,
        partition: flags.partition,
        records: total.records,
        bytes: total.bytes,
        format: flags.format,
        store: flags.store,
        out: flags.out,
    };
    if reply.out.as_os_str() == "-" {
        eprint!("{}", table::look::export(&reply));
    } else {
        output::print(format, &reply, table::look::export)?;
    }
    Ok(Exit::Done)
}

/// What this version's keys and values are, and the store's key field.
async fn shape(
    router: &impl Service,
    replicas: &Replicas,
) -> anyhow::Result<(KeyType, ValueShape, Option<String>)> {
    let version = &replicas.version;
    let HoldsDocument::Values { key, value, key_field } = &version.definition.holds else {
        return Err(QueryError::NotValues { name: version.name.clone() }.into());
    };
    let newer = |error: UnknownKind| {
        Failure::new(ErrorCode::Internal, error.to_string(), "use a kith of the cluster's release")
    };
    let key: KeyType = key.parse().map_err(newer)?;
    let value = match value.parse::<ValueType>().map_err(newer)? {
        ValueType::Text => ValueShape::Text,
        ValueType::Bytes => ValueShape::Bytes,
        ValueType::Json => ValueShape::Json,
        ValueType::Record => {
            let hash = version.components.iter().find_map(|component| component.schema.as_deref());
            let hash = hash.ok_or_else(|| {
                let message = format!("version {} of records names no schema", version.version);
                Failure::new(ErrorCode::SchemaUnavailable, message, "push it again")
            })?;
            let id: SchemaId = hash.parse().context("read the name of the version's schema")?;
            ValueShape::Record(router.schema(&version.name, version.version, id).await?)
        }
    };
    Ok((key, value, key_field.clone()))
}

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    records: u64,
    bytes: u64,
}

impl Total {
    fn add(&mut self, more: Total) {
        self.records += more.records;
        self.bytes += more.bytes;
    }
}

/// One partition, from whichever replicas have it.
async fn export(
    replicas: &Replicas,
    partition: PartitionId,
    throttle: &mut Throttle,
    sink: &mut Sink,
) -> anyhow::Result<Total> {
    let mut nodes = replicas.of_partition(partition);
    nodes.retain(|replica| !replica.excluded && !replica.addr.is_empty());
    nodes.sort_by_key(|replica| replica.state != "up");
    let mut total = Total::default();
    let mut last = None;
    for replica in &nodes {
        let request = v1::RecordsRequest {
            store: replicas.version.name.clone(),
            version: replicas.version.version,
            partition: partition.0,
            skip: total.records,
        };
        match drain(replicas, replica, request, throttle, sink, &mut total).await? {
            Ok(()) => return Ok(total),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(
        || {
            let message = "no known node holds it".to_owned();
            Failure::new(ErrorCode::PartitionsUnavailable, message, "look at `kith cluster status`").into()
        },
        anyhow::Error::from,
    ))
}

/// What one replica gives. The inner error is the replica's, another may do better; the outer one is final.
async fn drain(
    replicas: &Replicas,
    replica: &Replica,
    request: v1::RecordsRequest,
    throttle: &mut Throttle,
    sink: &mut Sink,
    total: &mut Total,
) -> anyhow::Result<Result<(), QueryError>> {
    let node = match replicas.inspector(&replica.addr) {
        Ok(node) => node,
        Err(error) => return Ok(Err(error)),
    };
    let mut pieces = match node.records(request).await {
        Ok(pieces) => pieces,
        Err(error) => return Ok(Err(error)),
    };
    let cut = |why: String| QueryError::NodeUnreachable { addr: replica.addr.clone(), reason: why };
    loop {
        // For what came before, of other partitions too.
        tokio::time::sleep(throttle.backlog()).await;
        let piece = match pieces.message().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return Ok(Err(cut("its answer ended early".to_owned()))),
            Err(status) => return Ok(Err(node.error(&status))),
        };
        if piece.keys.len() != piece.values.len() {
            return Ok(Err(cut("it sent keys without values".to_owned())));
        }
        let mut bytes = 0;
        for (key, value) in piece.keys.iter().zip(&piece.values) {
            sink.put(key, value)?;
            bytes += (key.len() + value.len()) as u64;
        }
        sink.write_through()?;
        throttle.take(bytes);
        total.add(Total { records: piece.keys.len() as u64, bytes });
        match piece.records {
            Some(records) if records == total.records => return Ok(Ok(())),
            Some(records) => {
                let got = total.records;
                return Ok(Err(cut(format!("it has {records} records, but {got} arrived"))));
            }
            None => {}
        }
    }
}

type Writer = Box<dyn Write + Send>;

/// Where records go, in which form.
enum Sink {
    Lines { lines: Lines, text: Vec<u8>, writer: Writer, path: PathBuf },
    Parquet { rows: Box<ParquetRows<Writer>>, path: PathBuf },
}

impl Sink {
    fn new(
        format: ExportFormat,
        key: KeyType,
        value: ValueShape,
        key_field: Option<String>,
        out: &Out,
    ) -> anyhow::Result<Self> {
        let (path, writer) = (out.path.clone(), out.writer()?);
        if format == ExportFormat::Parquet {
            let options = RowOptions { key_field, ..RowOptions::new(key, value) };
            let rows = ParquetRows::new(writer, &options).map_err(|error| told(&path, error))?;
            return Ok(Sink::Parquet { rows: Box::new(rows), path });
        }
        let value_type = value.value_type();
        let schema = if let ValueShape::Record(schema) = value { Some(schema) } else { None };
        let lines = Lines { key, value: value_type, key_field, schema };
        Ok(Sink::Lines { lines, text: Vec::new(), writer, path })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        match self {
            Sink::Lines { lines, text, .. } => Ok(lines.put(key, value, text)?),
            Sink::Parquet { rows, path } => rows.push(key, value).map_err(|error| told(path, error)),
        }
    }

    /// Has what can be written leave memory.
    fn write_through(&mut self) -> anyhow::Result<()> {
        let Sink::Lines { text, writer, path, .. } = self else { return Ok(()) };
        let written = writer.write_all(text);
        text.clear();
        written.map_err(|error| closed_or(path, error))
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Sink::Lines { mut writer, path, .. } => writer.flush().map_err(|error| closed_or(&path, error)),
            Sink::Parquet { rows, path } => rows.finish().map_err(|error| told(&path, error)),
        }
    }
}

/// A reader that went away is no failure of ours: the caller ends in silence.
fn closed_or(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => unwritable(path, &error).into(),
    }
}

fn told(path: &Path, error: WriteRowsError) -> anyhow::Error {
    match error {
        WriteRowsError::Parquet(error) => unwritable(path, &io::Error::other(error)).into(),
        error => {
            let message = format!("a record does not match the store's definition: {error}");
            Failure::new(ErrorCode::Damaged, message, "push the version again, or export another one").into()
        }
    }
}

/// Standard output, or a file that gets its name when it is whole.
struct Out {
    path: PathBuf,
    /// `None`: standard output.
    partial: Option<PathBuf>,
}

impl Out {
    fn open(path: &Path) -> Self {
        if path.as_os_str() == "-" {
            return Self { path: path.to_owned(), partial: None };
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        Self { path: path.to_owned(), partial: Some(path.with_file_name(name)) }
    }

    fn writer(&self) -> Result<Writer, Failure> {
        let Some(partial) = &self.partial else { return Ok(Box::new(io::stdout())) };
        let file = File::create(partial).map_err(|error| unwritable(partial, &error))?;
        Ok(Box::new(BufWriter::new(file)))
    }

    fn finish(self) -> Result<(), Failure> {
        let Some(partial) = self.partial else { return Ok(()) };
        let synced = File::open(&partial).and_then(|file| file.sync_all());
        let named = synced.and_then(|()| fs::rename(&partial, &self.path));
        named.map_err(|error| {
            let _ = fs::remove_file(&partial);
            unwritable(&self.path, &error)
        })
    }

    /// What is not whole is not left to be taken for an export.
    fn give_up(self) {
        if let Some(partial) = self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write {}: {error}", path.display());
    Failure::new(ErrorCode::OutputUnwritable, message, "check the path, its permissions and the free space")
}
