//! `kith export`: prints the objects or associations of one type of a live graph, in the form that `kith import` reads.
//!
//! The rows come directly from the nodes, as in exports of stores. A node reads each page of a partition from the database,
//! so any replica can continue where another one stopped.

use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    names::graph_name,
    out::{ExportOutput, Writer, closed_or},
    output::{self, Format},
    table::{count, plural},
};
use anyhow::Context;
use clap::Args;
use kith_client::{Inspector, QueryError, security::Dialer};
use kith_live::UnknownType;
use kith_terminal::progress::{ProgressLine, StageProgress};
use kith_topology::{Graph, Topology};
use kith_types::{ErrorClass, ErrorCode, LogPoint, PartitionId};
use kith_wire::v1;
use serde::Serialize;
use std::{
    io::Write as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

/// The time for which to keep asking the replicas of a partition while none of them answers.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The pause before the replicas are asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// The flags of `kith export`.
#[derive(Clone, Debug, Args)]
pub struct ExportFlags {
    /// The live graph
    #[arg(value_parser = graph_name)]
    graph: String,
    /// Export objects
    #[arg(long, required_unless_present = "assocs", conflicts_with = "assocs")]
    objects: bool,
    /// Export associations
    #[arg(long)]
    assocs: bool,
    /// Their type
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// File to write; `-` is standard output. The file appears once it is complete
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
}

/// A summary of what was written. The field names are a contract: see `docs/live-graph.md`.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ExportReply {
    graph: String,
    #[serde(rename = "type")]
    kind: String,
    rows: u64,
    out: PathBuf,
}

/// Writes all rows. A file appears complete or not at all.
///
/// # Errors
/// If the graph lacks the type, no replica of a partition answers, or the rows cannot be written.
pub async fn run(target: &TargetFlags, format: Format, flags: ExportFlags) -> anyhow::Result<Exit> {
    let router = connect::router(target).await?;
    let document = router.topology_with_types(|graph| graph == flags.graph).await;
    let document = document.context("read the cluster's topology")?;
    let topology = Topology::from_document(Arc::new(document)).context("read the cluster's topology")?;
    let graph = Arc::clone(topology.graph(&flags.graph)?);
    let has_fields = has_fields(&graph, &flags)?;
    let out = ExportOutput::open(&flags.out);
    let mut export = Export {
        dialer: router.dialer().clone(),
        topology,
        graph,
        has_fields,
        writer: out.writer()?,
        line: ProgressLine::new(),
        rows: 0,
        flags,
    };
    let exported = export.all().await;
    export.line.clear();
    let Export { flags, rows, .. } = export;
    if let Err(error) = exported {
        out.give_up();
        return Err(error);
    }
    out.finish()?;
    let reply = ExportReply { graph: flags.graph, kind: flags.kind, rows, out: flags.out };
    if reply.out.as_os_str() == "-" {
        eprint!("{}", reply.text());
    } else {
        output::print(format, &reply, ExportReply::text)?;
    }
    Ok(Exit::Done)
}

/// Whether the rows of the type have fields.
fn has_fields(graph: &Graph, flags: &ExportFlags) -> anyhow::Result<bool> {
    let live = graph.live.as_ref().ok_or_else(|| QueryError::LoadedGraph {
        name: flags.graph.clone(),
        what: "it has no objects and associations",
    })?;
    let unknown = |fault: UnknownType| Failure::new(ErrorCode::UnknownType, fault.to_string(), fault.help());
    Ok(match flags.objects {
        true => live.types.object_named(&flags.kind).map_err(unknown)?.1.has_fields(),
        false => live.types.association_named(&flags.kind).map_err(unknown)?.1.has_fields(),
    })
}

impl ExportReply {
    fn text(&self) -> String {
        format!("graph {}: {} of type {:?} exported\n", self.graph, plural(self.rows, "row"), self.kind)
    }
}

/// A running export.
struct Export {
    flags: ExportFlags,
    dialer: Dialer,
    topology: Topology,
    graph: Arc<Graph>,
    /// Whether rows have the column `data`.
    has_fields: bool,
    writer: Writer,
    line: ProgressLine,
    rows: u64,
}

impl Export {
    /// Writes the header, then one partition after the other.
    async fn all(&mut self) -> anyhow::Result<()> {
        let ids = if self.flags.objects { "id" } else { "id1,id2,time" };
        let data = if self.has_fields { ",data" } else { "" };
        self.write(&format!("{ids}{data}\n"))?;
        let partitions = self.topology.table.partition_count();
        for partition in partitions.iter() {
            self.partition(partition).await.with_context(|| format!("export partition {}", partition.0))?;
            self.line.enter("exporting");
            let detail = format!("{} rows", count(self.rows));
            let (done, total) = (u64::from(partition.0) + 1, partitions.get().into());
            self.line.tell(&StageProgress { done, total, detail });
        }
        let flushed = self.writer.flush();
        flushed.map_err(|error| closed_or(&self.flags.out, error))
    }

    async fn partition(&mut self, partition: PartitionId) -> anyhow::Result<()> {
        let (mut after, mut reached) = (None, LogPoint::default());
        loop {
            let page = self.page(partition, after).await?;
            let at = page.at.map_or(LogPoint::default(), |index| LogPoint::new(index.term, index.position));
            if at.term < reached.term || at.position < reached.position {
                let message = "the database was replaced by an older copy of itself during the export";
                return Err(Failure::new(ErrorCode::HistoryLost, message, "export again").into());
            }
            reached = at;
            let text: String = page.rows.iter().map(|row| self.row(row)).collect();
            self.write(&text)?;
            self.rows += page.rows.len() as u64;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Returns a page from the first replica that answers.
    async fn page(
        &self,
        partition: PartitionId,
        after: Option<v1::ScanPlace>,
    ) -> anyhow::Result<v1::ScanReply> {
        let request = v1::ScanRequest {
            graph: self.flags.graph.clone(),
            partition: partition.0,
            objects: self.flags.objects,
            r#type: self.flags.kind.clone(),
            after,
        };
        let table = &self.topology.table;
        let replicas = self.graph.pinned.reach.replicas(table, partition);
        let addresses: Vec<&str> = replicas.map(|node| table.node_at(node).address.as_str()).collect();
        let started = Instant::now();
        loop {
            let mut last = None;
            for address in addresses.iter().filter(|address| !address.is_empty()) {
                match Inspector::new(&self.dialer, address)?.scan(request.clone()).await {
                    Ok(page) => return Ok(page),
                    Err(error) if may_pass(error.code()) => last = Some(error),
                    Err(error) => return Err(error.into()),
                }
            }
            if TIMEOUT <= started.elapsed() {
                return Err(last.map_or_else(no_replica, anyhow::Error::from));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn row(&self, row: &v1::ScanRow) -> String {
        let v1::ScanRow { id, id2, time, data } = row;
        let data = if self.has_fields { format!(",{}", quoted(data)) } else { String::new() };
        match self.flags.objects {
            true => format!("{id}{data}\n"),
            false => format!("{id},{id2},{time}{data}\n"),
        }
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.writer.write_all(text.as_bytes());
        written.map_err(|error| closed_or(&self.flags.out, error))
    }
}

/// A quoted field of CSV.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Whether another replica, or the same one later, may succeed.
fn may_pass(code: ErrorCode) -> bool {
    matches!(
        code.class(),
        ErrorClass::Unavailable | ErrorClass::DeadlineExceeded | ErrorClass::ResourceExhausted
    ) || code == ErrorCode::NotOwner
}

fn no_replica() -> anyhow::Error {
    let message = "no known node holds it";
    Failure::new(ErrorCode::PartitionsUnavailable, message, "look at `kith cluster status`").into()
}
