//! The adjacency of all partitions that a node holds.

use super::build::Build;
use super::partition::PartitionAdjacency;
use super::reader::{AdjacencyReader, PinnedPartition};
use super::types::EdgeTypes;
use super::{AdjacencyOptions, Progress, Window, lock};
use kith_live::{Change, GraphTypes};
use kith_schema::SourceError;
use kith_types::{LogPoint, PartitionCount, PartitionId, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use thiserror::Error;

/// The sorted adjacency of the partitions of a live graph that a node holds.
///
/// It can be shared between threads. One lock guards the table of partitions and is held for lookups only. Each
/// partition has its own lock: [`Adjacency::apply`] holds it during one change, and readers hold it while they copy one
/// list.
#[derive(Debug)]
pub struct Adjacency {
    partition_count: PartitionCount,
    options: AdjacencyOptions,
    table: RwLock<Table>,
}

#[derive(Debug)]
struct Table {
    types: Arc<EdgeTypes>,
    partitions: BTreeMap<PartitionId, Slot>,
    /// The number of builds that were started.
    builds: u64,
}

/// A partition that this node holds.
#[derive(Debug)]
struct Slot {
    /// The number of the build that may be installed.
    build: u64,
    /// The adjacency that readers use; `None` until a build was installed.
    adjacency: Option<Arc<RwLock<PartitionAdjacency>>>,
}

/// The lists of a partition that [`Adjacency::close`] has removed.
#[derive(Debug)]
pub struct ClosedLists {
    _lists: Option<Slot>,
}

/// The reason why a build is not installed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallError {
    /// The build is not complete; see [`Build::next`].
    #[error("the build of partition {partition} is not complete")]
    Incomplete {
        /// The partition.
        partition: PartitionId,
    },
    /// The partition was closed, or a newer build of it was started.
    #[error("the build of partition {partition} was superseded, or the partition was closed")]
    Superseded {
        /// The partition.
        partition: PartitionId,
    },
}

impl Adjacency {
    /// Returns an adjacency without partitions.
    pub fn new(partition_count: PartitionCount, types: &GraphTypes, options: AdjacencyOptions) -> Self {
        let types = Arc::new(EdgeTypes::new(types));
        let table = Table { types, partitions: BTreeMap::new(), builds: 0 };
        Self { partition_count, options, table: RwLock::new(table) }
    }

    /// Returns the number of partitions of the graph, whether or not this node holds them.
    pub fn partition_count(&self) -> PartitionCount {
        self.partition_count
    }

    /// Sets changed types, which apply to readers and builds that start from now on.
    pub fn set_types(&self, types: &GraphTypes) {
        lock::write(&self.table).types = Arc::new(EdgeTypes::new(types));
    }

    /// Whether some partition does not keep the associations of a type whose adjacency was switched on. Until such a
    /// partition is built again, reads of the type fail there with [`SourceError::NotBuilt`], and its associations do
    /// not make members. New types need no build, because associations of unknown types are kept.
    pub fn needs_rebuild(&self, types: &GraphTypes) -> bool {
        !self.rebuilds(types).is_empty()
    }

    /// Returns the partitions that must be built again; see [`Adjacency::needs_rebuild`].
    pub fn rebuilds(&self, types: &GraphTypes) -> Vec<PartitionId> {
        let types = EdgeTypes::new(types);
        let lacks = |(partition, adjacency): (PartitionId, Arc<RwLock<PartitionAdjacency>>)| {
            let lacks = !lock::read(&adjacency).skipped().is_disjoint(types.joining());
            lacks.then_some(partition)
        };
        self.built().into_iter().filter_map(lacks).collect()
    }

    /// Starts to build a partition. If the node holds the partition already, the partition can still be read, and
    /// follows its log, until the new build is installed. An older build of it can no longer be installed.
    pub fn open(&self, partition: PartitionId) -> Build {
        let mut table = lock::write(&self.table);
        table.builds += 1;
        let build = table.builds;
        table.partitions.entry(partition).or_insert(Slot { build, adjacency: None }).build = build;
        Build::new(partition, build, table.types.skipped().clone())
    }

    /// Installs a complete build, which new readers use from now on. The next change to apply is the one after the
    /// build's last change. Existing readers still read the previous lists.
    ///
    /// # Errors
    /// [`InstallError`]; the build is then dropped.
    pub fn install(&self, build: Build) -> Result<(), InstallError> {
        let (partition, number) = (build.partition(), build.number);
        let (state, skipped, at) = build.finish().ok_or(InstallError::Incomplete { partition })?;
        let built = PartitionAdjacency::new(state, skipped, at, self.options);
        let built = Arc::new(RwLock::new(built));
        let mut table = lock::write(&self.table);
        let slot = table.partitions.get_mut(&partition).filter(|slot| slot.build == number);
        let slot = slot.ok_or(InstallError::Superseded { partition })?;
        let before = slot.adjacency.replace(built);
        // Release the lock first, because freeing the old lists takes long.
        drop(table);
        drop(before);
        Ok(())
    }

    /// Removes a partition. Existing readers can still read it. Dropping the returned value frees the lists, which
    /// takes long if there are many.
    pub fn close(&self, partition: PartitionId) -> ClosedLists {
        ClosedLists { _lists: lock::write(&self.table).partitions.remove(&partition) }
    }

    /// Applies the change at one position of the log. The log that the change was read from must contain the point that
    /// was applied, as a read of the log that began at this point does. For changes that another node sends unasked,
    /// use [`Adjacency::apply_after`].
    ///
    /// After a gap, the caller must read the log. If the log no longer contains the point that was applied, the
    /// partition must be built again. Returns `None` if the partition is not held or not built yet.
    pub fn apply(
        &self,
        partition: PartitionId,
        point: LogPoint,
        change: &Change,
        now: Timestamp,
    ) -> Option<Progress> {
        let adjacency = self.adjacency(partition)?;
        Some(lock::write(&adjacency).apply(point, change, now))
    }

    /// Applies a change that follows `after` in the log of its sender, who does not know what was applied here. The
    /// first change of a later term is a gap unless `after` is the point that was applied, because the database may
    /// have been replaced by an older copy of itself.
    pub fn apply_after(
        &self,
        partition: PartitionId,
        (after, point): (LogPoint, LogPoint),
        change: &Change,
        now: Timestamp,
    ) -> Option<Progress> {
        let adjacency = self.adjacency(partition)?;
        Some(lock::write(&adjacency).apply_after(after, point, change, now))
    }

    /// Applies the beginning of a later term without changes: the log ends at `point`, at the position that was
    /// applied. As for [`Adjacency::apply`], the log must contain the point that was applied.
    pub fn begin_term(&self, partition: PartitionId, point: LogPoint) -> Option<Progress> {
        let adjacency = self.adjacency(partition)?;
        Some(lock::write(&adjacency).begin_term(point))
    }

    /// Drops undo information that is too old. Changes do so as well, so this is for partitions that do not change.
    pub fn forget(&self, now: Timestamp) {
        self.built().into_iter().for_each(|(_, adjacency)| lock::write(&adjacency).forget(now));
    }

    /// Returns the points at which a partition can be read; `None` if it is not held or not built yet.
    pub fn window(&self, partition: PartitionId) -> Option<Window> {
        let adjacency = self.adjacency(partition)?;
        Some(lock::read(&adjacency).window())
    }

    /// Returns a reader of partitions, each at the given point, or at its newest point if none is given.
    ///
    /// # Errors
    /// [`SourceError::NotOwner`], [`SourceError::NotBuilt`], [`SourceError::PositionUnavailable`].
    pub fn reader(
        &self,
        partitions: impl IntoIterator<Item = (PartitionId, Option<LogPoint>)>,
    ) -> Result<AdjacencyReader, SourceError> {
        let table = lock::read(&self.table);
        let pin = |(partition, at): (PartitionId, Option<LogPoint>)| {
            let slot = table.partitions.get(&partition).ok_or(SourceError::NotOwner { partition })?;
            let adjacency = slot.adjacency.clone().ok_or(SourceError::NotBuilt { partition })?;
            let at = {
                let adjacency = lock::read(&adjacency);
                let at = at.unwrap_or(adjacency.window().to);
                adjacency.check(at).map_err(|error| error.of(partition, at))?;
                at
            };
            Ok((partition, PinnedPartition { adjacency, at }))
        };
        let partitions = partitions.into_iter().map(pin).collect::<Result<_, _>>()?;
        let types = Arc::clone(&table.types);
        Ok(AdjacencyReader { partition_count: self.partition_count, types, partitions })
    }

    /// Returns the memory in use by all partitions in bytes, including undo information. This is an estimate from the
    /// contents. Builds under way are not included; see [`Build::bytes`].
    pub fn bytes(&self) -> u64 {
        self.built().into_iter().map(|(_, adjacency)| lock::read(&adjacency).bytes()).sum()
    }

    fn adjacency(&self, partition: PartitionId) -> Option<Arc<RwLock<PartitionAdjacency>>> {
        lock::read(&self.table).partitions.get(&partition)?.adjacency.clone()
    }

    fn built(&self) -> Vec<(PartitionId, Arc<RwLock<PartitionAdjacency>>)> {
        let table = lock::read(&self.table);
        let built = table.partitions.iter();
        built.filter_map(|(partition, slot)| Some((*partition, slot.adjacency.clone()?))).collect()
    }
}
