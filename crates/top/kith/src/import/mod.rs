//! `kith import`: writes the rows of a file as objects or associations of a live graph.
//!
//! An import uses ordinary writes, many at a time. A file is read twice: the first pass checks it as a whole, so that a
//! refused file changes nothing; the second pass writes its rows. A pipe can be read only once, and is checked while it is
//! written.

mod checkpoint;
mod flags;
mod flow;
mod reply;
mod rows;
mod window;
mod writer;

pub use flags::ImportFlags;

use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure, report_failure},
    output::{self, Format},
    publish::Meter,
};
use checkpoint::{Checkpoint, ImportIdentity, Progress};
use flow::Flow;
use kith_build::rows::graph::{FileReport, ReadProgress};
use kith_build::{LoadProgress, Progress as Reading};
use kith_live::{GraphTypes, STALE_MAX, Ticket};
use kith_types::ErrorCode;
use parking_lot::Mutex;
use reply::{ImportOutcome, ImportReply};
use rows::{FileCheck, ReadEnd, Row, Rows, hex};
use sha2::{Digest, Sha256};
use std::{thread, time::Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use writer::Writer;

/// Imports a file.
///
/// # Errors
/// If the file is refused, the graph lacks the type, or not all rows were written.
pub async fn run(target: &TargetFlags, format: Format, flags: ImportFlags) -> anyhow::Result<Exit> {
    flags.check()?;
    let started = Instant::now();
    let types = connect::types(target, &flags.graph).await?;
    let rows = Rows::new(&flags, &types)
        .map_err(|fault| Failure::new(ErrorCode::UnknownType, fault.to_string(), fault.help()))?;
    let checkpoint = flags.checkpoint();
    let checked = match checkpoint.is_some() || flags.dry_run {
        true => Some(tokio::task::block_in_place(|| check(&rows))?),
        false => None,
    };
    let (report, done) = match (flags.dry_run, checked) {
        (true, Some(checked)) => (checked.report, ImportOutcome::default()),
        (_, checked) => import(target, &flags, &types, rows, checked).await?,
    };
    let reply = ImportReply::new(&flags, &report, &done, started.elapsed());
    output::print(format, &reply, ImportReply::text)?;
    Ok(Exit::Done)
}

/// Checks the whole file and shows the progress.
fn check(rows: &Rows) -> Result<FileCheck, Failure> {
    let mut meter = Meter::default();
    let checked = rows.check(&mut |progress| tell(&mut meter, progress));
    meter.clear();
    checked.map_err(|error| report_failure(error.into()))
}

fn tell(meter: &mut Meter, progress: &ReadProgress) {
    meter.on(Reading::Graph(LoadProgress::Reading(progress)));
}

/// Writes the rows that no earlier run has written.
async fn import(
    target: &TargetFlags,
    flags: &ImportFlags,
    types: &GraphTypes,
    rows: Rows,
    checked: Option<FileCheck>,
) -> anyhow::Result<(FileReport, ImportOutcome)> {
    let checksum = checked.as_ref().map(|checked| checked.checksum.clone());
    let mut flow = flow(target, flags, types, checked).await?;
    let (resumed, started) = (flow.progress.done, Instant::now());
    let (sender, receiver) = mpsc::channel(flow.concurrency);
    let reading = thread::spawn(move || send(&rows, resumed, &sender));
    // If this fails, the reading thread is not joined, because it may be waiting for standard input.
    flow.run(receiver).await?;
    let read = reading.join();
    let read = read.map_err(|_| Failure::new(ErrorCode::Internal, "the reading of the file panicked", ""))?;
    let (report, read_checksum) = match read {
        Ok(read) => read,
        Err(ReadEnd::File(error)) => return Err(flow.with_rows_done(report_failure(error.into())).into()),
        Err(ReadEnd::Stopped) => unreachable!("all rows were wanted"),
    };
    if checksum.is_some_and(|checksum| checksum != read_checksum) {
        let message = format!("{} changed while it was imported", flags.file().display());
        return Err(Failure::new(ErrorCode::BadInput, message, "import it again").into());
    }
    if let Some(checkpoint) = flow.checkpoint.take() {
        checkpoint.remove()?;
    }
    if 0 < resumed {
        // The ticket does not name what the earlier run has written, but every read shows that by then.
        tokio::time::sleep(STALE_MAX.saturating_sub(started.elapsed())).await;
    }
    let ticket = Some(flow.writer.ticket.lock().clone());
    Ok((report, ImportOutcome { counts: flow.window.counts(), resumed, refused: flow.refused, ticket }))
}

/// Returns the writes of an import, which continue where an interrupted one stopped.
async fn flow(
    target: &TargetFlags,
    flags: &ImportFlags,
    types: &GraphTypes,
    checked: Option<FileCheck>,
) -> anyhow::Result<Flow> {
    let service = connect::service(target).await?;
    let (total, dropped, checksum) = checked.map_or((0, 0, String::new()), |checked| {
        (checked.rows, checked.report.errors.total(), checked.checksum)
    });
    let subject = ImportIdentity { graph: types.identity, kind: flags.kind.clone(), rows: checksum };
    let (checkpoint, progress) = resume(flags, subject)?;
    let writer = Writer {
        service,
        graph: flags.graph.clone(),
        kind: flags.kind.clone(),
        import: progress.import.clone(),
        retry_for: flags.retry_for,
        stop: CancellationToken::new(),
        ticket: Mutex::new(Ticket::new(types.identity)),
    };
    let mut flow = Flow::new(writer, progress, checkpoint, flags.concurrency);
    flow.total = total;
    flow.refused_max = flags.max_errors().saturating_sub(dropped + flow.window.counts().refused);
    Ok(flow)
}

/// Returns the checkpoint and the progress to start from. If the folder is not writable, the import runs without a
/// checkpoint.
fn resume(flags: &ImportFlags, subject: ImportIdentity) -> Result<(Option<Checkpoint>, Progress), Failure> {
    let Some(path) = flags.checkpoint() else { return Ok((None, Progress::begin(subject))) };
    match Checkpoint::open(&path, &subject, &mut |note| eprintln!("{note}")) {
        Ok((checkpoint, known)) => Ok((Some(checkpoint), known.unwrap_or_else(|| Progress::begin(subject)))),
        Err(error) if error.code == ErrorCode::CannotWrite && !flags.names_checkpoint() => {
            eprintln!(
                "{error}: an import that is interrupted will start from the first row; --checkpoint names another file"
            );
            Ok((None, Progress::begin(subject)))
        }
        Err(error) => Err(error),
    }
}

/// Sends all rows after the first `skip`. Returns the report on the file, and the checksum of all its rows.
fn send(rows: &Rows, skip: u64, to: &mpsc::Sender<Row>) -> Result<(FileReport, String), ReadEnd> {
    let (mut index, mut hash) = (0, Sha256::new());
    let report = rows.read(&mut |_| (), |row| {
        row.hash_into(&mut hash);
        index += 1;
        index <= skip || to.blocking_send(row).is_ok()
    })?;
    Ok((report, hex(&hash.finalize())))
}
