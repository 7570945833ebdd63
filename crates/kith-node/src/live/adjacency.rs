//! The lists that graph queries read: built from the database when a partition comes, and brought on with its log.

use super::{errors::LiveError, graph::LiveGraph};
use kith_cache::adjacency::{AdjacencyReader, Build, BuildError, Next};
use kith_cache::live::Progress;
use kith_database::{LogEntry, LogError};
use kith_live::{Change, ListKey};
use kith_ops::SourceError;
use kith_types::{LogPoint, PartitionId};
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Objects that are read at once: they may have 1 MiB each, and a database process answers with 256 MiB at most.
const OBJECTS_READ: u32 = 128;
/// Associations that are read at once: they may have 64 KiB each.
const ASSOCIATIONS_READ: u32 = 2_048;
/// How much of a log is read at once.
const LOG_BYTES_MAX: usize = 4 << 20;
/// How long to wait before a build that failed begins again, and before the partitions are looked at again.
const RETRY: Duration = Duration::from_millis(500);

/// Why a build does not go on.
pub(super) enum Stopped {
    /// The log no longer has what the build needs, or the database has lost a page of it: begin again.
    BeginAgain,
    Failed(LiveError),
}

impl<E: Into<LiveError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Stopped::Failed(error.into())
    }
}

/// Starts to build the lists of partitions that come, one after the other.
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
                // While the database is down, all of them fail alike.
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
    /// Held partitions whose lists are to be built, and those that have to be built again for changed types.
    fn unbuilt(&self) -> Vec<PartitionId> {
        let mut unbuilt: Vec<PartitionId> =
            self.held().into_iter().filter(|partition| self.adjacency.window(*partition).is_none()).collect();
        unbuilt.extend(self.adjacency.rebuilds(&self.types()));
        unbuilt
    }

    /// Builds the lists of a partition, and has them read from then on.
    pub(super) async fn build(self: &Arc<Self>, partition: PartitionId) -> Result<(), Stopped> {
        let mut build = self.adjacency.open(partition);
        let read = self.read_all(&mut build).await;
        self.building.lock().remove(&partition);
        let (graph, is_whole) = (Arc::clone(self), read.is_ok());
        // Freeing what is replaced or given up takes long.
        let installed = tokio::task::spawn_blocking(move || {
            if is_whole {
                // It is refused if the partition has left this node, or if another build of it has begun since.
                let _ = graph.adjacency.install(build);
            }
        });
        let _ = installed.await;
        // It may have left while, or just before, the build was opened.
        if !self.held().contains(&partition) {
            self.close_lists(partition);
        }
        read
    }

    /// Reads all rows of a partition, page by page, and the changes meanwhile.
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

    /// Brings changes that were read of a log, which ended at `end`, to the lists.
    pub(super) fn apply_to_lists(&self, partition: PartitionId, changes: &[LogEntry], end: LogPoint) {
        let now = self.now();
        for entry in changes {
            // What is missing before it is read soon, or when somebody asks.
            if let Some(Progress::Gap { .. }) = self.adjacency.apply(partition, entry.at, &entry.change, now)
            {
                return;
            }
        }
        self.begin_term_of_lists(partition, end);
    }

    /// Brings one published change to the lists.
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

    /// A reader of the lists of partitions, each at the place that `pinned` names, or else at one that has reached `after`.
    ///
    /// # Errors
    /// If a partition is not here or not built yet, or the place cannot be read any more.
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

    /// Brings the lists of a partition to what its cache has applied, if they are behind: they were built a moment ago.
    ///
    /// # Errors
    /// If the database cannot be read, or the partition is not here.
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
                    // The log no longer has what follows the lists: build them again.
                    self.close_lists(partition);
                    return Err(LiveError::Lists(SourceError::NotBuilt { partition }));
                }
            }
        }
    }
}

/// A page that is older than what was applied is read again; one that contradicts the others begins the build again.
fn taken(page: Result<(), BuildError>) -> Result<(), Stopped> {
    match page {
        Ok(()) | Err(BuildError::OldPage { .. }) => Ok(()),
        Err(_) => Err(Stopped::BeginAgain),
    }
}
