//! The records of an export: sent in pieces, as fast as the reader takes them and at most at the store's read quota.

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

/// A piece is sent when it has this many bytes: large enough to send efficiently, small enough for many readers.
const PIECE_BYTES: usize = 1 << 20;
/// While an export waits for the quota, it checks this often whether the quota has changed or the reader has left.
const NAP: Duration = Duration::from_millis(100);

/// The pieces of one partition.
pub(crate) struct Pieces {
    sender: mpsc::Sender<Result<v1::RecordsPiece, Status>>,
    piece: v1::RecordsPiece,
    /// The bytes of keys and values in `piece`.
    bytes: usize,
    seen: u64,
    skip: u64,
    store: String,
    quotas: Arc<NodeQuotas>,
    /// The amount that may be read before it is taken from the quota; `None` if the store has no quota.
    step: Option<ExportStep>,
    /// The amount that was read and is not yet taken from the quota.
    owed: ExportStep,
    /// The number of records at the end of `piece` that are not yet taken from the quota.
    unpaid: usize,
}

impl Pieces {
    /// Returns pieces that leave out the first `skip` records. The keys of these are paid for too, because they are read.
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

    /// Adds the next record. Returns `Break` if the reader has left.
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

    /// Waits until the quota has room for what was read. Meanwhile the reader gets only records that are paid for, because
    /// it may disconnect and request them again.
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
        let (_waiting, started) = (QuotaWait::begin(), Instant::now());
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

    /// Sends the piece and waits for the reader, which throttles the export. Returns `Break` if the reader has left.
    fn send(&mut self) -> ControlFlow<()> {
        self.bytes = 0;
        if self.step.is_none() {
            // Records that were read before the store had a quota are not owed.
            (self.owed, self.unpaid) = (ExportStep::default(), 0);
        }
        self.step = self.quotas.export_step(&self.store);
        match self.sender.blocking_send(Ok(std::mem::take(&mut self.piece))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Sends the last piece, or the error. Only a partition that was read to its end reports its number of records.
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

/// Counts as one of the exports that wait for a quota, until it is dropped.
struct QuotaWait;

impl QuotaWait {
    fn begin() -> Self {
        metrics::gauge!("kith_node_exports_waiting").increment(1.0);
        Self
    }
}

impl Drop for QuotaWait {
    fn drop(&mut self) {
        metrics::gauge!("kith_node_exports_waiting").decrement(1.0);
    }
}
