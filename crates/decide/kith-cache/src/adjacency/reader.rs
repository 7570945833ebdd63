//! Reads several partitions, each at a fixed point.

use super::partition::{PartitionAdjacency, ReadParameters, UnreadableReason};
use super::types::{EdgeTypes, Lists};
use super::{Window, lock};
use kith_schema::{
    EachEdges, EachLength, EachList, EdgeList, EdgeSelector, NeighbourSource, SourceError, SourceResult,
};
use kith_types::{LogPoint, PartitionCount, PartitionId, partition_of_id};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, RwLock};

/// Some partitions, each as of one point. All queries of one request read from it.
///
/// A list is copied under the lock of its partition, and handed out after the lock was released. Therefore a change
/// waits at most for one copy, never for a query, and a query's work on a list cannot block others. Undo information,
/// not the lock, ensures that all lists of a partition are from one point. If this information is dropped while a
/// request still reads, the request fails with [`SourceError::PositionUnavailable`].
#[derive(Debug)]
pub struct AdjacencyReader {
    pub(super) partition_count: PartitionCount,
    pub(super) types: Arc<EdgeTypes>,
    pub(super) partitions: BTreeMap<PartitionId, PinnedPartition>,
}

/// A partition and the point at which it is read.
#[derive(Clone, Debug)]
pub(super) struct PinnedPartition {
    pub(super) adjacency: Arc<RwLock<PartitionAdjacency>>,
    pub(super) at: LogPoint,
}

impl AdjacencyReader {
    /// Returns the point at which each partition is read. Later rounds of the request pass these points to
    /// [`super::Adjacency::reader`].
    pub fn points(&self) -> BTreeMap<PartitionId, LogPoint> {
        self.partitions.iter().map(|(partition, pinned)| (*partition, pinned.at)).collect()
    }

    /// Reads from one partition, at its point.
    fn read<T>(
        &self,
        partition: PartitionId,
        lists: Lists,
        read: impl FnOnce(&PartitionAdjacency, &ReadParameters<'_>) -> Result<T, UnreadableReason>,
    ) -> Result<T, SourceError> {
        let pinned = self.partitions.get(&partition).ok_or(SourceError::NotOwner { partition })?;
        let reading = ReadParameters { at: pinned.at, lists, joining: self.types.joining() };
        read(&lock::read(&pinned.adjacency), &reading).map_err(|error| error.of(partition, pinned.at))
    }

    /// As [`NeighbourSource::lists`], for lists that were selected already.
    fn each_list(
        &self,
        lists: Lists,
        keys: &[u64],
        mut each: impl FnMut(usize, Option<&[u64]>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let mut ids = Vec::new();
        for (index, &key) in keys.iter().enumerate() {
            ids.clear();
            let partition = partition_of_id(key, self.partition_count);
            let is_member = self.read(partition, lists, |it, reading| it.list(reading, key, &mut ids))?;
            if lists.are_two() {
                unite(&mut ids);
            }
            if each(index, is_member.then_some(ids.as_slice())).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl NeighbourSource for AdjacencyReader {
    fn partition_count(&self) -> PartitionCount {
        self.partition_count
    }

    fn lists(&self, edge: &EdgeSelector, keys: &[u64], each: EachList<'_>) -> SourceResult {
        self.each_list(self.types.select(edge)?, keys, each)
    }

    fn lengths(&self, edge: &EdgeSelector, keys: &[u64], each: EachLength<'_>) -> SourceResult {
        let lists = self.types.select(edge)?;
        if lists.are_two() {
            // An id may be in both lists.
            return self.each_list(lists, keys, |index, ids| each(index, ids.map(|ids| ids.len() as u64)));
        }
        for (index, &key) in keys.iter().enumerate() {
            let partition = partition_of_id(key, self.partition_count);
            let length = self.read(partition, lists, |it, reading| it.length(reading, key))?;
            if each(index, length.map(|length| length as u64)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn selves(&self, edge: &EdgeSelector, keys: &[u64], out: &mut Vec<u64>) -> SourceResult {
        let lists = self.types.select(edge)?;
        for &key in keys {
            let partition = partition_of_id(key, self.partition_count);
            if self.read(partition, lists, |it, reading| it.is_with_itself(reading, key))? {
                out.push(key);
            }
        }
        Ok(())
    }

    /// Associations have no columns that queries can read.
    fn edges(
        &self,
        edge: &EdgeSelector,
        columns: &[&str],
        keys: &[u64],
        each: EachEdges<'_>,
    ) -> SourceResult {
        let lists = self.types.select(edge)?;
        let kind = || edge.kind.clone();
        if let Some(&column) = columns.first() {
            return Err(SourceError::UnknownColumn { kind: kind(), column: column.to_owned() });
        }
        if lists.are_two() {
            return Err(SourceError::TwoLists { kind: kind() });
        }
        self.each_list(lists, keys, |index, ids| each(index, ids.map(|ids| EdgeList { ids, columns: &[] })))
    }

    fn postings(
        &self,
        edge: &EdgeSelector,
        partition: PartitionId,
        id: u64,
        out: &mut Vec<u64>,
    ) -> SourceResult {
        let lists = self.types.select(edge)?;
        let mut ids = Vec::new();
        self.read(partition, lists, |it, reading| it.postings(reading, id, &mut ids))?;
        if lists.are_two() {
            unite(&mut ids);
        }
        out.append(&mut ids);
        Ok(())
    }

    fn members(&self, partition: PartitionId, out: &mut Vec<u64>) -> SourceResult {
        let pinned = self.partitions.get(&partition).ok_or(SourceError::NotOwner { partition })?;
        let mut ids = Vec::new();
        let read = lock::read(&pinned.adjacency).members(pinned.at, self.types.joining(), &mut ids);
        read.map_err(|error| error.of(partition, pinned.at))?;
        unite(&mut ids);
        out.append(&mut ids);
        Ok(())
    }
}

impl UnreadableReason {
    /// Converts to the error of a read of `partition` at a point.
    pub(super) fn of(self, partition: PartitionId, at: LogPoint) -> SourceError {
        match self {
            Self::Point(Window { from, to }) => SourceError::PositionUnavailable { partition, at, from, to },
            Self::Skipped => SourceError::NotBuilt { partition },
        }
    }
}

/// Merges several ascending runs into one list. The stable sort recognizes the runs, so it only merges.
fn unite(ids: &mut Vec<u64>) {
    ids.sort();
    ids.dedup();
}
