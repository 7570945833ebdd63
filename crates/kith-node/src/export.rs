//! Records on their way out of a node: in pieces, as fast as whoever exports takes them, and no faster than the store's read quota.

use super::quota::NodeQuotas;
use kith_routing::ExportStep;
use kith_wire::v1;
use std::{
    ops::ControlFlow,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use tonic::Status;

/// A piece of records is sent when it has so many bytes: large enough for the way, small enough for many readers.
const PIECE_BYTES: usize = 1 << 20;
/// Whoever waits for a quota looks so often whether it has changed, or nobody wants the records any more.
const NAP: Duration = Duration::from_millis(100);

/// The pieces of one partition.
pub(super) struct Pieces {
    sender: mpsc::Sender<Result<v1::RecordsPiece, Status>>,
    piece: v1::RecordsPiece,
    /// Of the piece.
    bytes: usize,
    seen: u64,
    skip: u64,
    store: String,
    quotas: Arc<NodeQuotas>,
    /// What may be read before it is paid for; `None`: the store has no quota.
    step: Option<ExportStep>,
    /// What was read and is not paid for.
    owed: ExportStep,
    /// The records of it: the last of the piece.
    unpaid: usize,
}

impl Pieces {
    /// Without the first `skip` records, whose keys are paid for all the same: they are read.
    pub fn new(
        sender: mpsc::Sender<Result<v1::RecordsPiece, Status>>,
        quotas: Arc<NodeQuotas>,
        store: String,
        skip: u64,
    ) -> Self {
        let step = quotas.export_step(&store);
        let (piece, owed) = (v1::RecordsPiece::default(), ExportStep::default());
        Self { sender, piece, bytes: 0, seen: 0, skip, store, quotas, step, owed, unpaid: 0 }
    }

    /// Takes the next record. `Break`: nobody wants it.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.seen += 1;
        self.owed.keys += 1;
        if self.skip < self.seen {
            self.owed.bytes += value.len() as u64;
            self.piece.keys.push(key.to_vec().into());
            self.piece.values.push(value.to_vec().into());
            self.bytes += key.len() + value.len();
            self.unpaid += 1;
        }
        let is_full = PIECE_BYTES <= self.bytes;
        let is_due = |step: ExportStep| step.keys <= self.owed.keys || step.bytes <= self.owed.bytes;
        if self.step.is_some_and(|step| is_full || is_due(step)) {
            self.pay()?;
        }
        if PIECE_BYTES <= self.bytes { self.send() } else { ControlFlow::Continue(()) }
    }

    /// Waits until the quota has room for what was read. Whoever exports gets what is paid for before that, and nothing else:
    /// they may hang up and ask again.
    fn pay(&mut self) -> ControlFlow<()> {
        let (owed, unpaid) = (std::mem::take(&mut self.owed), std::mem::take(&mut self.unpaid));
        let Err(mut left) = self.quotas.export(&self.store, owed, Duration::ZERO) else {
            return ControlFlow::Continue(());
        };
        let paid = self.piece.keys.len() - unpaid;
        if 0 < paid {
            let keys = self.piece.keys.split_off(paid);
            let values = self.piece.values.split_off(paid);
            self.send()?;
            self.bytes = keys.iter().chain(&values).map(|bytes| bytes.len()).sum();
            (self.piece.keys, self.piece.values) = (keys, values);
        }
        let (_waiting, started) = (Waiting::begin(), Instant::now());
        loop {
            thread::sleep(left.min(NAP));
            if self.sender.is_closed() {
                return ControlFlow::Break(());
            }
            match self.quotas.export(&self.store, owed, started.elapsed()) {
                Ok(()) => return ControlFlow::Continue(()),
                Err(longer) => left = longer,
            }
        }
    }

    /// Waits for the reader: that is the throttle. A reader that went away ends it.
    fn send(&mut self) -> ControlFlow<()> {
        self.bytes = 0;
        if self.step.is_none() {
            // What was read before there was a quota is not owed.
            (self.owed, self.unpaid) = (ExportStep::default(), 0);
        }
        self.step = self.quotas.export_step(&self.store);
        match self.sender.blocking_send(Ok(std::mem::take(&mut self.piece))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// The end, or why there is none: only a partition that was read to its end says how many records it has.
    pub fn finish(mut self, read: Result<(), Status>) {
        let owes = self.step.is_some() && self.owed != ExportStep::default();
        if owes && self.pay().is_break() {
            return;
        }
        let last = match read {
            Ok(()) => {
                self.piece.records = Some(self.seen);
                Ok(self.piece)
            }
            Err(status) => {
                if self.send().is_break() {
                    return;
                }
                Err(status)
            }
        };
        let _ = self.sender.blocking_send(last);
    }
}

/// One of the exports that wait for a quota, while this is kept.
struct Waiting;

impl Waiting {
    fn begin() -> Self {
        metrics::gauge!("kith_node_exports_waiting").increment(1.0);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        metrics::gauge!("kith_node_exports_waiting").decrement(1.0);
    }
}
