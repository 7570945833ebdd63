//! The adjacency lists that graph queries read. They follow the logs of their partitions from the time at which they were
//! built.

use super::{database::GraphDatabase, errors::LiveError, partitions::HeldPartitions};
use kith_cache::adjacency::{Adjacency, AdjacencyOptions, AdjacencyReader, Build};
use kith_cache::live::Progress;
use kith_database::{LogEntry, LogError};
use kith_live::{Change, GraphTypes};
use kith_schema::SourceError;
use kith_types::{LogPoint, PartitionCount, PartitionId, Position};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};

/// The maximum size of one read of a log, in bytes.
pub(super) const LOG_BYTES_MAX: usize = 4 << 20;

/// The lists of the held partitions of one graph.
pub(super) struct LiveLists {
    adjacency: Adjacency,
    /// The partitions whose lists are being built, with the position from which each build reads the log.
    builds: Mutex<BTreeMap<PartitionId, Position>>,
    database: Arc<GraphDatabase>,
    partitions: Arc<HeldPartitions>,
}

impl LiveLists {
    /// Returns a value without lists.
    pub fn new(
        count: PartitionCount,
        types: &GraphTypes,
        database: Arc<GraphDatabase>,
        partitions: Arc<HeldPartitions>,
    ) -> Self {
        let adjacency = Adjacency::new(count, types, AdjacencyOptions::default());
        Self { adjacency, builds: Mutex::default(), database, partitions }
    }

    /// Takes over types. Lists of new types are empty until they are built again.
    pub fn set_types(&self, types: &GraphTypes) {
        self.adjacency.set_types(types);
    }

    /// Returns the held partitions without lists, and those whose lists must be built again because types have changed.
    pub fn unbuilt(&self, types: &GraphTypes) -> Vec<PartitionId> {
        let held = self.partitions.ids().into_iter();
        let mut unbuilt: Vec<PartitionId> = held.filter(|partition| !self.are_built(*partition)).collect();
        unbuilt.extend(self.adjacency.rebuilds(types));
        unbuilt
    }

    /// Whether the lists of a partition can be read.
    pub fn are_built(&self, partition: PartitionId) -> bool {
        self.adjacency.window(partition).is_some()
    }

    /// Begins to build the lists of a partition.
    pub fn begin_build(&self, partition: PartitionId) -> Build {
        self.adjacency.open(partition)
    }

    /// Notes the position from which a build still needs the log of its partition.
    pub fn note_build(&self, partition: PartitionId, from: Position) {
        self.builds.lock().insert(partition, from);
    }

    /// Ends a build, and installs the lists for queries if they are whole. Blocks while it frees the lists that are replaced
    /// or discarded.
    pub fn end_build(&self, build: Build, is_whole: bool) {
        let partition = build.partition();
        if is_whole {
            // The installation is refused if this node no longer holds the partition, or if another build of it has
            // begun.
            let _ = self.adjacency.install(build);
        }
        self.builds.lock().remove(&partition);
    }

    /// Returns the position after which the lists, or a build of them, still need the log of a partition.
    pub fn needed_after(&self, partition: PartitionId) -> Option<Position> {
        let built = self.adjacency.window(partition).map(|window| window.to.position);
        let build = self.builds.lock().get(&partition).copied();
        built.into_iter().chain(build).min()
    }

    /// Applies changes to the lists. They were read from a log that ended at `end`.
    pub fn apply(&self, partition: PartitionId, changes: &[LogEntry], end: LogPoint) {
        let now = self.partitions.now();
        for entry in changes {
            // The missing changes before this one are read soon, or when a query needs them.
            if let Some(Progress::Gap { .. }) = self.adjacency.apply(partition, entry.at, &entry.change, now)
            {
                return;
            }
        }
        self.begin_term(partition, end);
    }

    /// Applies one published change to the lists.
    pub fn apply_published(&self, partition: PartitionId, after: LogPoint, point: LogPoint, change: &Change) {
        let _ = self.adjacency.apply_after(partition, (after, point), change, self.partitions.now());
    }

    fn begin_term(&self, partition: PartitionId, end: LogPoint) {
        let window = self.adjacency.window(partition);
        if window.is_some_and(|window| window.to.position == end.position && window.to < end) {
            let _ = self.adjacency.begin_term(partition, end);
        }
    }

    /// Returns a reader of the lists of partitions. Each partition is read at its point in `pinned`, or else at a point that
    /// has reached `after`.
    ///
    /// # Errors
    /// If the lists of a partition do not exist here yet, or the point can no longer be read.
    pub async fn reader(
        &self,
        partitions: impl IntoIterator<Item = PartitionId>,
        after: &BTreeMap<PartitionId, LogPoint>,
        pinned: &BTreeMap<PartitionId, LogPoint>,
    ) -> Result<AdjacencyReader, LiveError> {
        let mut at = Vec::new();
        for partition in partitions {
            let pinned = pinned.get(&partition).copied();
            let target = pinned.or_else(|| after.get(&partition).copied()).unwrap_or_default();
            self.bring_to(partition, target).await?;
            at.push((partition, pinned));
        }
        Ok(self.adjacency.reader(at)?)
    }

    /// Applies the log to the lists of a partition up to the point that its cache has reached. They may be behind the cache
    /// after they were built.
    ///
    /// # Errors
    /// If the database cannot be read, or this node does not hold the partition.
    pub async fn bring_to_cache(&self, partition: PartitionId) -> Result<(), LiveError> {
        let applied = self.partitions.applied(partition)?;
        match self.adjacency.window(partition) {
            Some(window) if window.to < applied => self.bring_to(partition, applied).await,
            _ => Ok(()),
        }
    }

    async fn bring_to(&self, partition: PartitionId, target: LogPoint) -> Result<(), LiveError> {
        loop {
            let window = self.adjacency.window(partition);
            let window = window.ok_or(LiveError::Lists(SourceError::NotBuilt { partition }))?;
            if target <= window.to {
                return Ok(());
            }
            match self.database.changes(partition, window.to, LOG_BYTES_MAX).await {
                Ok(part) => {
                    self.apply(partition, &part.changes, part.end);
                    let reached = self.adjacency.window(partition).is_some_and(|now| window.to < now.to);
                    if !reached {
                        return Err(LiveError::HistoryLost);
                    }
                }
                Err(LogError::Database(error)) => return Err(error.into()),
                Err(LogError::Trimmed { .. } | LogError::HistoryLost { .. }) => {
                    // The log no longer contains the changes after the lists, so the lists must be built again.
                    self.close(partition);
                    return Err(LiveError::Lists(SourceError::NotBuilt { partition }));
                }
            }
        }
    }

    /// Drops the lists of a partition. Freeing large lists takes long, so another thread does it.
    pub fn close(&self, partition: PartitionId) {
        let closed = self.adjacency.close(partition);
        tokio::task::spawn_blocking(move || drop(closed));
    }

    /// Drops what no reader needs any more.
    pub fn forget(&self) {
        self.adjacency.forget(self.partitions.now());
    }

    /// Returns the memory that the lists take.
    pub fn bytes(&self) -> u64 {
        self.adjacency.bytes()
    }
}
