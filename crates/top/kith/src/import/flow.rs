//! The writes of an import. Many are in flight at once, rows with the same ids follow one another, and a checkpoint is saved
//! regularly.

use super::{
    checkpoint::{Checkpoint, Progress},
    rows::Row,
    window::{Outcome, Window},
    writer::{Fate, Writer},
};
use crate::{failure::Failure, signals::Signals, table::count};
use futures::{StreamExt, stream::FuturesUnordered};
use kith_client::QueryError;
use kith_terminal::progress::{ProgressLine, StageProgress};
use kith_types::ErrorCode;
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::{sync::mpsc, task::JoinHandle};

/// The interval at which progress is saved and shown.
const TICK: Duration = Duration::from_millis(500);
/// The multiple of `concurrency` that bounds the later rows that may begin while the checkpoint waits for one row.
const AHEAD_FACTOR: usize = 16;
/// The number of refused rows that are shown.
const REFUSED_SHOWN: usize = 10;

/// The rows that the cluster refused.
#[derive(Clone, Debug, Default)]
pub struct RefusedRows {
    /// The number of rows that were refused in this run.
    pub count: u64,
    /// The first of them: their line numbers and the reasons.
    pub first: Vec<String>,
}

/// A row whose write has ended.
struct Ended {
    index: u64,
    row: Row,
    fate: Result<Fate, QueryError>,
}

/// The writes of an import.
pub struct Flow {
    pub writer: Arc<Writer>,
    pub window: Window,
    pub progress: Progress,
    pub checkpoint: Option<Checkpoint>,
    pub refused: RefusedRows,
    /// The number of rows that may be refused.
    pub refused_max: u64,
    pub concurrency: usize,
    pub line: ProgressLine,
    /// Rows of the file; 0 if unknown.
    pub total: u64,
    /// Rows that an earlier, interrupted run had done.
    resumed: u64,
    in_flight: FuturesUnordered<JoinHandle<Ended>>,
    /// The keys of the rows in flight.
    keys: HashSet<(u64, u64)>,
    /// The reason why no more rows are begun.
    end: Option<Failure>,
}

impl Flow {
    /// Returns writes that continue after `progress`.
    pub fn new(writer: Writer, progress: Progress, checkpoint: Option<Checkpoint>, concurrency: u16) -> Self {
        Self {
            resumed: progress.done,
            writer: Arc::new(writer),
            window: Window::after(progress.done, progress.counts),
            progress,
            checkpoint,
            refused: RefusedRows::default(),
            refused_max: 0,
            concurrency: concurrency.into(),
            line: ProgressLine::new(),
            total: 0,
            in_flight: FuturesUnordered::new(),
            keys: HashSet::new(),
            end: None,
        }
    }

    /// Writes all rows. After Ctrl-C or SIGTERM it waits for the writes in flight; a second signal ends it at once.
    ///
    /// # Errors
    /// If not all rows were written. If there is a checkpoint, the same command continues from there.
    pub async fn run(&mut self, mut rows: mpsc::Receiver<Row>) -> anyhow::Result<()> {
        let mut signals = Signals::new()?;
        let mut ticks = tokio::time::interval(TICK);
        let (mut waiting, mut at_end) = (None, false);
        while !(at_end && waiting.is_none() || self.end.is_some()) || !self.in_flight.is_empty() {
            let may_begin = self.may_begin();
            tokio::select! {
                biased;
                () = signals.next() => {
                    if self.end.is_some() {
                        break;
                    }
                    self.line.note("waiting for the writes in flight; interrupt again to leave at once");
                    self.stop(Failure::new(ErrorCode::Cancelled, "the import was interrupted", ""));
                }
                _ = ticks.tick() => self.save_and_tell()?,
                Some(ended) = self.in_flight.next() => {
                    self.on_ended(ended.map_err(|error| anyhow::anyhow!("write a row: {error}"))?);
                }
                row = rows.recv(), if may_begin && waiting.is_none() && !at_end => match row {
                    Some(row) => waiting = Some(row),
                    None => at_end = true,
                },
            }
            let is_free = |row: &mut Row| !self.keys.contains(&row.key());
            if self.may_begin()
                && let Some(row) = waiting.take_if(is_free)
            {
                self.begin(row);
            }
        }
        self.save_and_tell()?;
        self.line.clear();
        match self.end.take() {
            Some(failure) => Err(self.with_rows_done(failure).into()),
            None => Ok(()),
        }
    }

    fn may_begin(&self) -> bool {
        self.end.is_none()
            && self.in_flight.len() < self.concurrency
            && self.window.ahead() < self.concurrency * AHEAD_FACTOR
    }

    fn begin(&mut self, row: Row) {
        let (index, writer) = (self.window.begin(), Arc::clone(&self.writer));
        self.keys.insert(row.key());
        self.in_flight.push(tokio::spawn(async move {
            let fate = writer.write(&row).await;
            Ended { index, row, fate }
        }));
    }

    fn on_ended(&mut self, Ended { index, row, fate }: Ended) {
        self.keys.remove(&row.key());
        let line = row.number();
        match fate {
            Ok(Fate::Done(outcome)) => self.window.end(index, outcome),
            Ok(Fate::Refused(why)) => {
                // The row that ends the import does not count as done, so that the same command tries it again.
                if self.refused.count < self.refused_max {
                    self.window.end(index, Outcome::Refused);
                }
                self.refuse(format!("line {line}: {why}"));
            }
            // A write that fails because the import was stopped does not replace the first reason.
            Err(error) => {
                let failure = Failure::from(&error);
                let message = format!("line {line}: {}", failure.message);
                self.stop(Failure { message, ..failure });
            }
        }
    }

    fn refuse(&mut self, message: String) {
        self.refused.count += 1;
        if self.refused.first.len() < REFUSED_SHOWN {
            self.line.note(&message);
            self.refused.first.push(message.clone());
        }
        if self.refused_max < self.refused.count {
            let help = "correct the line, or allow some with --max-errors";
            self.stop(Failure::new(ErrorCode::BadLines, message, help));
        }
    }

    /// Stops beginning rows. Only the first reason is kept.
    fn stop(&mut self, failure: Failure) {
        self.writer.stop.cancel();
        self.end.get_or_insert(failure);
    }

    fn save_and_tell(&mut self) -> Result<(), Failure> {
        (self.progress.done, self.progress.counts) = (self.window.done(), self.window.counts());
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.save(&self.progress)?;
        }
        let done = self.window.done();
        let elapsed = self.line.enter("importing").as_secs_f64().max(1e-3);
        let rate = done.saturating_sub(self.resumed) as f64 / elapsed;
        let detail = format!("{} rows, {rate:.0} rows/s", count(done));
        self.line.tell(&StageProgress { done, total: self.total, detail });
        Ok(())
    }

    /// Adds to a failure how many rows are done and how to continue.
    pub fn with_rows_done(&self, failure: Failure) -> Failure {
        let done = count(self.window.done());
        let of = if self.total == 0 { String::new() } else { format!(" of {}", count(self.total)) };
        let message = format!("{}; the first {done}{of} rows are done", failure.message);
        let again = match self.checkpoint {
            Some(_) => "run the same command again: it continues after these rows",
            None => "run the same command again: it writes all rows again, which does no harm",
        };
        let help = if failure.help.is_empty() {
            again.to_owned()
        } else {
            format!("{}; then {again}", failure.help)
        };
        Failure { message, help, ..failure }
    }
}
