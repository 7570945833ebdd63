//! Builds adjacency lists from the database when this node gets a partition, and again when types have changed.

use super::{
    database::GraphDatabase,
    errors::LiveError,
    lists::{LOG_BYTES_MAX, LiveLists},
    partitions::HeldPartitions,
    types::KnownTypes,
};
use kith_cache::adjacency::{Build, BuildError, BuildNeed};
use kith_database::LogError;
use kith_live::ListKey;
use kith_types::{LogPoint, PartitionId};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The number of objects in one read. An object may have 1 MiB, and a database process answers with at most 256 MiB.
const OBJECTS_READ: u32 = 128;
/// The number of associations in one read. An association may have 64 KiB.
const ASSOCIATIONS_READ: u32 = 2_048;
/// The pause before failed builds begin again, and before partitions are checked again for lists to build.
const RETRY: Duration = Duration::from_millis(500);

/// The reason for which a build has ended early.
#[derive(Debug)]
pub(super) enum BuildFailure {
    /// The log no longer contains the changes that the build needs, or the database has lost rows that the build has read.
    /// The build must begin again.
    BeginAgain,
    Failed(LiveError),
}

impl<E: Into<LiveError>> From<E> for BuildFailure {
    fn from(error: E) -> Self {
        BuildFailure::Failed(error.into())
    }
}

/// Builds the lists of one graph.
pub(super) struct ListBuilder {
    pub graph: String,
    pub database: Arc<GraphDatabase>,
    pub partitions: Arc<HeldPartitions>,
    pub types: Arc<KnownTypes>,
    pub lists: Arc<LiveLists>,
}

impl ListBuilder {
    /// Starts a task that builds the lists of new partitions, one partition after the other.
    pub fn start(self, stop: CancellationToken) {
        tokio::spawn(async move { stop.run_until_cancelled(self.build_all()).await });
    }

    async fn build_all(&self) {
        loop {
            let mut has_warned = false;
            for partition in self.lists.unbuilt(&self.types.get()) {
                let graph = &self.graph;
                match self.build(partition).await {
                    Ok(()) => {}
                    Err(BuildFailure::BeginAgain) => {
                        tracing::debug!(graph, %partition, "the lists of a partition are built from the start");
                    }
                    // While the database is down, all builds fail with the same error.
                    Err(BuildFailure::Failed(error)) if has_warned => {
                        tracing::debug!(graph, %partition, %error, "the lists of a further partition cannot be read from the database yet");
                    }
                    Err(BuildFailure::Failed(error)) => {
                        has_warned = true;
                        tracing::warn!(graph, %partition, %error, "lists cannot be read from the database yet");
                    }
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Builds the lists of a partition, and installs them for queries.
    pub async fn build(&self, partition: PartitionId) -> Result<(), BuildFailure> {
        let mut build = self.lists.begin_build(partition);
        let read = self.read_all(&mut build).await;
        let (lists, is_whole) = (Arc::clone(&self.lists), read.is_ok());
        let ended = tokio::task::spawn_blocking(move || lists.end_build(build, is_whole));
        let _ = ended.await;
        // This node may have lost the partition during the build, or just before it began.
        if !self.partitions.contains(partition) {
            self.lists.close(partition);
        }
        read
    }

    /// Reads all rows of a partition, page by page, and the changes that are made in the meantime.
    async fn read_all(&self, build: &mut Build) -> Result<(), BuildFailure> {
        let partition = build.partition();
        loop {
            if let Some(applied) = build.applied() {
                self.lists.note_build(partition, applied.position);
            }
            match build.next() {
                BuildNeed::Objects { after } => {
                    let page = self.database.scan_objects(partition, after, OBJECTS_READ).await?;
                    let ids: Vec<u64> = page.objects.iter().map(|object| object.id).collect();
                    page_result(build.objects(page.at, &ids, ids.len() < OBJECTS_READ as usize))?;
                }
                BuildNeed::Associations { after } => {
                    let page = self.database.scan_associations(partition, after, ASSOCIATIONS_READ).await?;
                    let key = |(list, it): &(ListKey, kith_live::Association)| list.to(it.id2);
                    let keys: Vec<_> = page.associations.iter().map(key).collect();
                    page_result(build.associations(page.at, &keys, keys.len() < ASSOCIATIONS_READ as usize))?;
                }
                BuildNeed::Changes { after, .. } => self.replay(build, after).await?,
                BuildNeed::Nothing => return Ok(()),
            }
        }
    }

    async fn replay(&self, build: &mut Build, after: LogPoint) -> Result<(), BuildFailure> {
        let part = match self.database.changes(build.partition(), after, LOG_BYTES_MAX).await {
            Ok(part) => part,
            Err(LogError::Database(error)) => return Err(error.into()),
            Err(LogError::Trimmed { .. } | LogError::HistoryLost { .. }) => {
                return Err(BuildFailure::BeginAgain);
            }
        };
        for entry in &part.changes {
            let _ = build.apply(entry.at, &entry.change).map_err(|_| BuildFailure::BeginAgain)?;
        }
        if build.applied().is_some_and(|applied| applied.position == part.end.position && applied < part.end)
        {
            let _ = build.begin_term(part.end).map_err(|_| BuildFailure::BeginAgain)?;
        }
        Ok(())
    }
}

/// Converts the result of adding a page. A page that is older than the applied changes is read again. A page that
/// contradicts the other pages makes the build begin again.
fn page_result(page: Result<(), BuildError>) -> Result<(), BuildFailure> {
    match page {
        Ok(()) | Err(BuildError::OldPage { .. }) => Ok(()),
        Err(_) => Err(BuildFailure::BeginAgain),
    }
}
