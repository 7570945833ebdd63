//! The adjacency lists that graph queries read. They are built from the database when this node gets a partition, and follow
//! the log of the partition from then on.

use super::{errors::LiveError, graph::LiveGraph};
use kith_cache::adjacency::{AdjacencyReader, Build, BuildError, Next};
use kith_cache::live::Progress;
use kith_database::{LogEntry, LogError};
use kith_live::{Change, ListKey};
use kith_schema::SourceError;
use kith_types::{LogPoint, PartitionId};
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// The number of objects in one read. An object may have 1 MiB, and a database process answers with at most 256 MiB.
const OBJECTS_READ: u32 = 128;
/// The number of associations in one read. An association may have 64 KiB.
const ASSOCIATIONS_READ: u32 = 2_048;
/// The maximum size of one read of a log, in bytes.
const LOG_BYTES_MAX: usize = 4 << 20;
/// The pause before failed builds begin again, and before partitions are checked again for lists to build.
const RETRY: Duration = Duration::from_millis(500);

/// The reasons for which a build stops.
pub(super) enum Stopped {
    /// The log no longer contains the changes that the build needs, or the database has lost rows that the build has read.
    /// The build must begin again.
    BeginAgain,
    Failed(LiveError),
}

impl<E: Into<LiveError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Stopped::Failed(error.into())
    }
}

/// Starts a task that builds the lists of new partitions, one partition after the other.
pub(super) fn start(graph: &Arc<LiveGraph>, stop: CancellationToken) {
    let graph = Arc::downgrade(graph);
    tokio::spawn(async move { stop.run_until_cancelled(build_all(graph)).await });
}

async fn build_all(graph: Weak<LiveGraph>) {
    loop {
        let Some(graph) = graph.upgrade() else { return };
        let mut has_warned = false;
        for partition in graph.unbuilt() {
            match graph.build(partition).await {
                Ok(()) => {}
                Err(Stopped::BeginAgain) => {
                    tracing::debug!(graph = graph.name, %partition, "the lists of a partition are built from the start");
                }
                // While the database is down, all builds fail with the same error.
                Err(Stopped::Failed(error)) if has_warned => {
                    tracing::debug!(graph = graph.name, %partition, %error, "the lists of a further partition cannot be read from the database yet");
                }
                Err(Stopped::Failed(error)) => {
                    has_warned = true;
                    tracing::warn!(graph = graph.name, %partition, %error, "lists cannot be read from the database yet");
                }
            }
        }
        drop(graph);
        tokio::time::sleep(RETRY).await;
    }
}

impl LiveGraph {
    /// Returns the held partitions without lists, and those whose lists must be built again because types have changed.
    fn unbuilt(&self) -> Vec<PartitionId> {
        let mut unbuilt: Vec<PartitionId> =
            self.held().into_iter().filter(|partition| self.adjacency.window(*partition).is_none()).collect();
        unbuilt.extend(self.adjacency.rebuilds(&self.types()));
        unbuilt
    }

    /// Builds the lists of a partition, and installs them for queries.
    pub(super) async fn build(self: &Arc<Self>, partition: PartitionId) -> Result<(), Stopped> {
        let mut build = self.adjacency.open(partition);
        let read = self.read_all(&mut build).await;
        self.building.lock().remove(&partition);
        let (graph, is_whole) = (Arc::clone(self), read.is_ok());
        // Freeing the lists that are replaced or discarded takes long, so another thread does it.
        let installed = tokio::task::spawn_blocking(move || {
            if is_whole {
                // The installation is refused if this node no longer holds the partition, or if another build of it has
                // begun.
                let _ = graph.adjacency.install(build);
            }
        });
        let _ = installed.await;
        // This node may have lost the partition during the build, or just before it began.
        if !self.held().contains(&partition) {
            self.close_lists(partition);
        }
        read
    }

    /// Reads all rows of a partition, page by page, and the changes that are made in the meantime.
    async fn read_all(&self, build: &mut Build) -> Result<(), Stopped> {
        let partition = build.partition();
        loop {
            if let Some(applied) = build.applied() {
                self.building.lock().insert(partition, applied.position);
            }
            match build.next() {
                Next::Objects { after } => {
                    let page = self.database.scan_objects(partition, after, OBJECTS_READ).await?;
                    let ids: Vec<u64> = page.objects.iter().map(|object| object.id).collect();
                    taken(build.objects(page.at, &ids, ids.len() < OBJECTS_READ as usize))?;
                }
                Next::Associations { after } => {
                    let page = self.database.scan_associations(partition, after, ASSOCIATIONS_READ).await?;
                    let key = |(list, it): &(ListKey, kith_live::Association)| list.to(it.id2);
                    let keys: Vec<_> = page.associations.iter().map(key).collect();
                    taken(build.associations(page.at, &keys, keys.len() < ASSOCIATIONS_READ as usize))?;
                }
                Next::Changes { after, .. } => self.replay(build, after).await?,
                Next::Nothing => return Ok(()),
            }
        }
    }

    async fn replay(&self, build: &mut Build, after: LogPoint) -> Result<(), Stopped> {
        let part = match self.database.changes(build.partition(), after, LOG_BYTES_MAX).await {
            Ok(part) => part,
            Err(LogError::Database(error)) => return Err(error.into()),
            Err(LogError::Trimmed { .. } | LogError::HistoryLost { .. }) => return Err(Stopped::BeginAgain),
        };
        for entry in &part.changes {
            let _ = build.apply(entry.at, &entry.change).map_err(|_| Stopped::BeginAgain)?;
        }
        if build.applied().is_some_and(|applied| applied.position == part.end.position && applied < part.end)
        {
            let _ = build.begin_term(part.end).map_err(|_| Stopped::BeginAgain)?;
        }
        Ok(())
    }

    /// Applies changes to the lists. They were read from a log that ended at `end`.
    pub(super) fn apply_to_lists(&self, partition: PartitionId, changes: &[LogEntry], end: LogPoint) {
        let now = self.now();
        for entry in changes {
            // The missing changes before this one are read soon, or when a query needs them.
            if let Some(Progress::Gap { .. }) = self.adjacency.apply(partition, entry.at, &entry.change, now)
            {
                return;
            }
        }
        self.begin_term_of_lists(partition, end);
    }

    /// Applies one published change to the lists.
    pub(super) fn publish_to_lists(
        &self,
        partition: PartitionId,
        after: LogPoint,
        point: LogPoint,
        change: &Change,
    ) {
        let _ = self.adjacency.apply_after(partition, (after, point), change, self.now());
    }

    fn begin_term_of_lists(&self, partition: PartitionId, end: LogPoint) {
        let window = self.adjacency.window(partition);
        if window.is_some_and(|window| window.to.position == end.position && window.to < end) {
            let _ = self.adjacency.begin_term(partition, end);
        }
    }

    /// Returns a reader of the lists of partitions. Each partition is read at its place in `pinned`, or else at a place that
    /// has reached `after`.
    ///
    /// # Errors
    /// If the lists of a partition do not exist here yet, or the place can no longer be read.
    pub(super) async fn lists(
        &self,
        partitions: impl IntoIterator<Item = PartitionId>,
        after: &BTreeMap<PartitionId, LogPoint>,
        pinned: &BTreeMap<PartitionId, LogPoint>,
    ) -> Result<AdjacencyReader, LiveError> {
        let mut at = Vec::new();
        for partition in partitions {
            let pinned = pinned.get(&partition).copied();
            let target = pinned.or_else(|| after.get(&partition).copied()).unwrap_or_default();
            self.bring_lists_to(partition, target).await?;
            at.push((partition, pinned));
        }
        Ok(self.adjacency.reader(at)?)
    }

    /// Applies the log to the lists of a partition up to the place that its cache has reached. They may be behind the cache
    /// after they were built.
    ///
    /// # Errors
    /// If the database cannot be read, or this node does not hold the partition.
    pub(super) async fn bring_lists_on(&self, partition: PartitionId) -> Result<(), LiveError> {
        let applied = self.applied(partition)?;
        match self.adjacency.window(partition) {
            Some(window) if window.to < applied => self.bring_lists_to(partition, applied).await,
            _ => Ok(()),
        }
    }

    async fn bring_lists_to(&self, partition: PartitionId, target: LogPoint) -> Result<(), LiveError> {
        loop {
            let window = self.adjacency.window(partition);
            let window = window.ok_or(LiveError::Lists(SourceError::NotBuilt { partition }))?;
            if target <= window.to {
                return Ok(());
            }
            match self.database.changes(partition, window.to, LOG_BYTES_MAX).await {
                Ok(part) => {
                    self.apply_to_lists(partition, &part.changes, part.end);
                    let reached = self.adjacency.window(partition).is_some_and(|now| window.to < now.to);
                    if !reached {
                        return Err(LiveError::HistoryLost);
                    }
                }
                Err(LogError::Database(error)) => return Err(error.into()),
                Err(LogError::Trimmed { .. } | LogError::HistoryLost { .. }) => {
                    // The log no longer contains the changes after the lists, so the lists must be built again.
                    self.close_lists(partition);
                    return Err(LiveError::Lists(SourceError::NotBuilt { partition }));
                }
            }
        }
    }
}

/// Converts the result of adding a page. A page that is older than the applied changes is read again. A page that
/// contradicts the other pages makes the build begin again.
fn taken(page: Result<(), BuildError>) -> Result<(), Stopped> {
    match page {
        Ok(()) | Err(BuildError::OldPage { .. }) => Ok(()),
        Err(_) => Err(Stopped::BeginAgain),
    }
}
