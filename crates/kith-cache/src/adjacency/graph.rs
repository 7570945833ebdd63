//! The adjacency of all partitions of a node.

use super::build::Build;
use super::partition::PartitionAdjacency;
use super::reader::{AdjacencyReader, Pinned};
use super::types::EdgeTypes;
use super::{AdjacencyOptions, Progress, Window, lock};
use kith_live::{Change, GraphTypes};
use kith_ops::SourceError;
use kith_types::{LogPoint, PartitionCount, PartitionId, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use thiserror::Error;

/// The sorted adjacency of the partitions of a live graph that a node holds.
///
/// It may be shared between threads. One lock guards the table of partitions and is held for lookups only. Each partition has a
/// lock of its own: [`Adjacency::apply`] holds it for one change, and readers for the copy of one list.
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
    /// How many builds were begun.
    builds: u64,
}

/// A partition that is held here.
#[derive(Debug)]
struct Slot {
    /// The build that may be installed.
    build: u64,
    /// What is read; `None` until a build was installed.
    adjacency: Option<Arc<RwLock<PartitionAdjacency>>>,
}

/// The lists of a partition that [`Adjacency::close`] let go of.
#[derive(Debug)]
pub struct ClosedLists {
    _lists: Option<Slot>,
}

/// Why a build does not take the place of its partition.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallError {
    /// [`Build::next`] asks for more.
    #[error("the build of partition {partition} is not complete")]
    Incomplete {
        /// The partition.
        partition: PartitionId,
    },
    /// The partition was closed since, or another build of it was begun.
    #[error("the build of partition {partition} was given up")]
    Superseded {
        /// The partition.
        partition: PartitionId,
    },
}

impl Adjacency {
    /// Holds no partitions yet.
    pub fn new(partition_count: PartitionCount, types: &GraphTypes, options: AdjacencyOptions) -> Self {
        let types = Arc::new(EdgeTypes::new(types));
        let table = Table { types, partitions: BTreeMap::new(), builds: 0 };
        Self { partition_count, options, table: RwLock::new(table) }
    }

    /// How many partitions the graph is divided into, held here or not.
    pub fn partition_count(&self) -> PartitionCount {
        self.partition_count
    }

    /// Takes over changed types, for readers and builds from now on.
    pub fn set_types(&self, types: &GraphTypes) {
        lock::write(&self.table).types = Arc::new(EdgeTypes::new(types));
    }

    /// Whether adjacency of a type was switched on whose associations a partition does not keep. Until such a partition was
    /// built again, reads of the type fail there with [`SourceError::NotBuilt`], and its associations do not make members. Types
    /// that are new need no build: associations of types that are not known yet are kept.
    pub fn needs_rebuild(&self, types: &GraphTypes) -> bool {
        !self.rebuilds(types).is_empty()
    }

    /// The partitions because of which [`Adjacency::needs_rebuild`].
    pub fn rebuilds(&self, types: &GraphTypes) -> Vec<PartitionId> {
        let types = EdgeTypes::new(types);
        let lacks = |(partition, adjacency): (PartitionId, Arc<RwLock<PartitionAdjacency>>)| {
            let lacks = !lock::read(&adjacency).skipped().is_disjoint(types.joining());
            lacks.then_some(partition)
        };
        self.built().into_iter().filter_map(lacks).collect()
    }

    /// Begins to build a partition. If it is held already, it goes on being read and following its log until the new build
    /// is installed; an older build of it is given up.
    pub fn open(&self, partition: PartitionId) -> Build {
        let mut table = lock::write(&self.table);
        table.builds += 1;
        let build = table.builds;
        table.partitions.entry(partition).or_insert(Slot { build, adjacency: None }).build = build;
        Build::new(partition, build, table.types.skipped().clone())
    }

    /// Has a complete build read from now on. Changes follow the last one that was applied to it. Readers that exist go on
    /// reading what was there before.
    ///
    /// # Errors
    /// See [`InstallError`]. The build is gone.
    pub fn install(&self, build: Build) -> Result<(), InstallError> {
        let (partition, number) = (build.partition(), build.number);
        let (state, skipped, at) = build.finish().ok_or(InstallError::Incomplete { partition })?;
        let built = PartitionAdjacency::new(state, skipped, at, self.options);
        let built = Arc::new(RwLock::new(built));
        let mut table = lock::write(&self.table);
        let slot = table.partitions.get_mut(&partition).filter(|slot| slot.build == number);
        let slot = slot.ok_or(InstallError::Superseded { partition })?;
        let before = slot.adjacency.replace(built);
        // Freeing it takes long.
        drop(table);
        drop(before);
        Ok(())
    }

    /// Lets go of a partition. Readers that exist go on reading it. Dropping what is returned frees the lists, which takes long if
    /// there are many.
    pub fn close(&self, partition: PartitionId) -> ClosedLists {
        ClosedLists { _lists: lock::write(&self.table).partitions.remove(&partition) }
    }

    /// Applies what one position of the log changed. The change comes from a log that contains what was applied, such as a read
    /// of the log that began there. For changes that somebody sends unasked there is [`Adjacency::apply_after`].
    ///
    /// After a gap, the log must be read. If it does not contain what was applied any more, the partition must be built again.
    /// `None` if the partition is not held or not built yet.
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

    /// Applies a change that follows `after` in the log of a sender that does not know what was applied here. The first change
    /// of a later term is a gap unless `after` was applied: the database may have been replaced by an older copy of itself.
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

    /// A later term began at the position that was applied: the log ends at `point`. As for [`Adjacency::apply`], the caller
    /// knows that the log contains what was applied.
    pub fn begin_term(&self, partition: PartitionId, point: LogPoint) -> Option<Progress> {
        let adjacency = self.adjacency(partition)?;
        Some(lock::write(&adjacency).begin_term(point))
    }

    /// Gives up undo information that is too old. Changes do so too: this is for partitions that do not change.
    pub fn forget(&self, now: Timestamp) {
        self.built().into_iter().for_each(|(_, adjacency)| lock::write(&adjacency).forget(now));
    }

    /// The points at which a partition can be read; `None` if it is not held or not built yet.
    pub fn window(&self, partition: PartitionId) -> Option<Window> {
        let adjacency = self.adjacency(partition)?;
        Some(lock::read(&adjacency).window())
    }

    /// Fixes the points at which the partitions of a request are read: the one that is named, or else the newest one.
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
            Ok((partition, Pinned { adjacency, at }))
        };
        let partitions = partitions.into_iter().map(pin).collect::<Result<_, _>>()?;
        let types = Arc::clone(&table.types);
        Ok(AdjacencyReader { partition_count: self.partition_count, types, partitions })
    }

    /// Memory in use by all partitions together, undo information included: an estimate from what is held. Builds under way
    /// tell theirs themselves ([`Build::bytes`]).
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
