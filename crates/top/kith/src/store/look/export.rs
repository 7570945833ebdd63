//! `kith store export`: writes every record of a version, which it reads from the nodes.
//!
//! Replicas have equal files, and therefore the same records in the same order. If a node fails in the middle of a
//! partition, another one continues after the last record received.

use super::{
    replicas::{Replica, Replicas},
    sink::{ExportFormat, Sink, Total},
    throttle::Throttle,
};
use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    names::{rate, store_name},
    out::ExportOutput,
    output::{self, Format},
    table,
};
use anyhow::Context;
use clap::Args;
use kith_build::rows::{RowOptions, ValueShape};
use kith_client::{QueryError, Service};
use kith_schema::{KeyType, SchemaId, UnknownKind, ValueType};
use kith_types::{ErrorCode, PartitionId};
use kith_wire::LookupError;
use kith_wire::{documents::HoldsDocument, v1};
use serde::Serialize;
use std::{ops::Range, path::PathBuf};

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

/// A summary of what was written. The field names are a contract: see `docs/stores.md`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExportReply {
    pub store: String,
    pub version: u64,
    /// The only partition that was exported; `null` if all were.
    pub partition: Option<u32>,
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    pub out: PathBuf,
    pub format: ExportFormat,
}

/// Writes every record. A file appears complete or not at all.
///
/// # Errors
/// If the version is not kept, no replica of a partition returns all its records, or they cannot be written.
pub async fn run(target: &TargetFlags, format: Format, flags: ExportFlags) -> anyhow::Result<Exit> {
    let router = connect::router(target).await?;
    let replicas = Replicas::of(&router, &flags.store, flags.version).await?;
    let partitions = partitions(replicas.partition_count().get(), flags.partition)?;
    let rows = rows(&router, &replicas).await?;
    let out = ExportOutput::open(&flags.out);
    let sink = Sink::new(flags.format, &rows, &out)?;
    let total = match export_all(&replicas, partitions, Throttle::new(flags.rate), sink).await {
        Ok(total) => total,
        Err(error) => {
            out.give_up();
            return Err(error);
        }
    };
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

/// Returns the partitions to export: the requested one, or all `count`.
fn partitions(count: u32, only: Option<u32>) -> Result<Range<u32>, Failure> {
    match only {
        Some(partition) if count <= partition => {
            let message =
                format!("there is no partition {partition}: partitions are numbered 0 to {}", count - 1);
            Err(Failure::usage(message, "leave --partition out to export all"))
        }
        Some(partition) => Ok(partition..partition + 1),
        None => Ok(0..count),
    }
}

/// Exports one partition after the other, then finishes the sink.
async fn export_all(
    replicas: &Replicas,
    partitions: Range<u32>,
    mut throttle: Throttle,
    mut sink: Sink,
) -> anyhow::Result<Total> {
    let mut total = Total::default();
    for partition in partitions {
        let exported = export(replicas, PartitionId(partition), &mut throttle, &mut sink).await;
        total.add(exported.with_context(|| format!("export partition {partition}"))?);
    }
    // Wait for the last piece too, so that the rate also holds for a partition of one piece.
    tokio::time::sleep(throttle.backlog()).await;
    sink.finish()?;
    Ok(total)
}

/// Returns the key and value types of this version, and the store's key field.
async fn rows(router: &impl Service, replicas: &Replicas) -> anyhow::Result<RowOptions> {
    let version = &replicas.version;
    let HoldsDocument::Values { key, value, key_field } = &version.definition.holds else {
        return Err(LookupError::NotValues { name: version.name.clone() }.into());
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
    Ok(RowOptions { key_field: key_field.clone(), ..RowOptions::new(key, value) })
}

/// Exports one partition from its replicas, one after the other until the partition is complete.
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

/// Exports what one replica returns. The inner error is the replica's, and another replica may succeed; the outer error is
/// final.
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
        // Wait for the backlog of earlier pieces, also of other partitions.
        tokio::time::sleep(throttle.backlog()).await;
        let piece = match pieces.message().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return Ok(Err(cut("its answer ended early".to_owned()))),
            Err(status) => return Ok(Err(node.error(&status))),
        };
        if piece.keys.len() != piece.values.len() {
            return Ok(Err(cut("it sent keys without values".to_owned())));
        }
        let written = sink.write(&piece)?;
        throttle.take(written.bytes);
        total.add(written);
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
