//! Merges one partition of the base with its changes, into files and into the patch.

use super::super::ValuesBuildError;
use super::super::writer::ValuesWriter;
use super::DeltaSummary;
use super::changes::{Change, Changes, PUT};
use kith_engine::ValueCounts;
use kith_engine::writing::{FoundRecord, MergeSink, PatchWriter, frame_value_bytes};
use kith_types::PartitionId;

/// Merges one partition of the base with its changes, into files and into the patch.
pub(super) struct Merge<'m, 'd, P> {
    pub(super) writer: &'m mut ValuesWriter<'d, P>,
    pub(super) patch: &'m mut PatchWriter,
    pub(super) changes: &'m mut Changes,
    pub(super) summary: &'m mut DeltaSummary,
    pub(super) partition: PartitionId,
    /// Whether the values of the base are compressed.
    pub(super) compressed: bool,
    pub(super) removed: &'m mut ValueCounts,
}

impl<P> Merge<'_, '_, P> {
    /// Counts a record of the base. Returns the size of its value in bytes.
    fn count(&mut self, key: &[u8], found: &FoundRecord<'_>) -> Result<usize, ValuesBuildError> {
        let stored = found.value();
        let bytes = match self.compressed {
            true => frame_value_bytes(stored).ok_or_else(|| found.malformed("compressed value"))?,
            false => stored.len(),
        };
        self.removed.add(&ValueCounts { records: 1, key_bytes: key.len() as u64, value_bytes: bytes as u64 });
        Ok(bytes)
    }
}

impl<P: Iterator<Item = PartitionId>> MergeSink for Merge<'_, '_, P> {
    type Error = ValuesBuildError;

    fn head(&self) -> Option<(u64, &[u8])> {
        let head = self.changes.head.as_ref().filter(|head| head.partition == self.partition);
        head.map(|head| (head.position, head.key.as_slice()))
    }

    fn take(&mut self, before: Option<&FoundRecord<'_>>) -> Result<(), ValuesBuildError> {
        let Some(Change { key, change, .. }) = self.changes.head.take() else { return Ok(()) };
        if let Some(found) = before {
            self.count(&key, found)?;
        }
        let count = match (change.split_first(), before) {
            (Some((&PUT, value)), _) => {
                let stored = self.writer.stored(value)?;
                if before.is_none_or(|found| found.value() != &*stored) {
                    self.patch.put(&key, &stored)?;
                }
                self.writer.stored_row(self.partition, &key, &stored, value.len())?;
                if before.is_some() { &mut self.summary.replaced } else { &mut self.summary.added }
            }
            (_, Some(_)) => {
                self.patch.delete(&key)?;
                &mut self.summary.deleted
            }
            (_, None) => &mut self.summary.absent,
        };
        *count += 1;
        self.changes.advance()
    }

    fn keep(&mut self, key: &[u8], found: &FoundRecord<'_>) -> Result<(), ValuesBuildError> {
        let bytes = self.count(key, found)?;
        self.writer.stored_row(self.partition, key, found.value(), bytes)
    }
}
