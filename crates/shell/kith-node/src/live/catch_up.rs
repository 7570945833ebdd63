//! Reads logs from the places that partitions have applied.

use super::{
    errors::{LiveError, of_log},
    graph::LiveGraph,
    message::LeadMessage,
};
use kith_cache::live::{Progress, Search, Shows, Toward};
use kith_database::{LogError, LogPart};
use kith_live::Event;
use kith_types::{LogPoint, PartitionId};
use kith_wire::v1;
use std::sync::Arc;

/// The maximum size of one read of a log, in bytes.
const LOG_BYTES_MAX: usize = 4 << 20;

impl LiveGraph {
    /// Returns the positions that all held partitions have applied, and why the database does not work, if it does not.
    pub(super) fn applied_logs(&self) -> v1::AppliedLogs {
        let held = self.held();
        let mut caches = self.caches.lock();
        let logs = held.into_iter().filter_map(|partition| {
            let applied = caches.partition(partition)?.applied();
            Some((partition.0, applied.position.0))
        });
        let (partitions, positions): (Vec<u32>, Vec<u64>) = logs.unzip();
        let is_unbuilt = |partition: &&u32| self.adjacency.window(PartitionId(**partition)).is_none();
        let unbuilt = partitions.iter().filter(is_unbuilt).count() as u32;
        let error = self.database_error().map(|error| error.to_string()).unwrap_or_default();
        v1::AppliedLogs { graph: self.name.clone(), partitions, positions, error, unbuilt }
    }

    /// Returns the place in the log that a partition has applied.
    ///
    /// # Errors
    /// [`LiveError::NotOwner`] if this node does not hold the partition.
    pub(super) fn applied(&self, partition: PartitionId) -> Result<LogPoint, LiveError> {
        let mut caches = self.caches.lock();
        let cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
        Ok(cache.applied())
    }

    /// Applies the log of a partition until the partition has reached `target`. Only one task reads a log at a time, so
    /// tasks do not read the same changes twice.
    ///
    /// # Errors
    /// [`LiveError::HistoryLost`] if the log does not reach `target`, and errors of the database.
    pub(super) async fn catch_up(&self, partition: PartitionId, target: LogPoint) -> Result<(), LiveError> {
        let turn = self.partitions.read().get(&partition).cloned().ok_or(LiveError::NotOwner(partition))?;
        if self.toward(partition, target)? == Toward::Reached {
            return Ok(());
        }
        let _turn = turn.lock().await;
        loop {
            let end = match self.toward(partition, target)? {
                Toward::Reached => return Ok(()),
                Toward::End => {
                    let end = self.end_of(partition).await?;
                    self.begin_at(partition, end)?
                }
                Toward::Changes { after } => {
                    match self.database.changes(partition, after, LOG_BYTES_MAX).await {
                        Ok(part) => self.apply_part(partition, after, &part)?,
                        Err(LogError::HistoryLost { end, .. }) => self.replaced(partition, end)?,
                        Err(LogError::Trimmed { .. }) => {
                            let end = self.end_of(partition).await?;
                            self.jump(partition, end)?
                        }
                        Err(LogError::Database(error)) => return Err(error.into()),
                    }
                }
            };
            let mut caches = self.caches.lock();
            let cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
            if cache.lacks(target, end) {
                return Err(LiveError::HistoryLost);
            }
        }
    }

    fn toward(&self, partition: PartitionId, target: LogPoint) -> Result<Toward, LiveError> {
        let mut caches = self.caches.lock();
        let cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
        Ok(cache.toward(target))
    }

    /// Returns the end of a partition's log, according to a read of the database that begins after this call. If the
    /// database has lost the history that the cache follows, the cache is emptied first.
    ///
    /// # Errors
    /// If the database cannot be read, or this node does not hold the partition.
    pub(super) async fn verified_end(
        self: &Arc<Self>,
        partition: PartitionId,
    ) -> Result<LogPoint, LiveError> {
        let before = {
            let mut caches = self.caches.lock();
            caches.partition(partition).ok_or(LiveError::NotOwner(partition))?.seen()
        };
        let graph = Arc::clone(self);
        let read = move || {
            let graph = Arc::clone(&graph);
            async move { graph.end_of(partition).await }
        };
        let end = self.ends.get(partition, read).await?;
        self.notice_replaced(partition, before, end)?;
        Ok(end)
    }

    /// Reads the end of a partition's log from the database.
    pub(super) async fn end_of(&self, partition: PartitionId) -> Result<LogPoint, LiveError> {
        let ends = self.database.points(vec![partition]).await?;
        Ok(ends.first().copied().unwrap_or_default())
    }

    /// Checks that the log contains the place that `search` looks for.
    ///
    /// # Errors
    /// [`LiveError::HistoryLost`] if it does not, because the database was replaced by an older copy of itself, and errors
    /// of the database.
    pub(super) async fn look_for(&self, partition: PartitionId, search: Search) -> Result<(), LiveError> {
        match self.database.changes(partition, search.point(), 1).await {
            Ok(_) | Err(LogError::Trimmed { .. }) => {}
            Err(error) => return Err(of_log(error)),
        }
        if let Some(mut cache) = self.caches.lock().partition(partition) {
            cache.found(search);
        }
        Ok(())
    }

    /// Whether data of a partition at the place `shown` contains the change at the place `required`. Returns `false` if this
    /// cannot be decided, because the cache follows another term by now. The data must then be read again.
    ///
    /// # Errors
    /// The errors of [`Self::look_for`] and [`Self::catch_up`].
    pub(super) async fn shows(
        &self,
        partition: PartitionId,
        required: LogPoint,
        shown: LogPoint,
    ) -> Result<bool, LiveError> {
        loop {
            let shows = {
                let mut caches = self.caches.lock();
                let cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
                cache.shows(required, shown)
            };
            match shows {
                Shows::Yes => return Ok(true),
                Shows::Unknown(search) => self.look_for(partition, search).await?,
                Shows::OtherTerm if shown < self.applied(partition)? => return Ok(false),
                Shows::OtherTerm => self.catch_up(partition, shown).await?,
            }
        }
    }

    /// Applies the part of a log that was read after `after`. Returns the end of the log.
    fn apply_part(
        &self,
        partition: PartitionId,
        after: LogPoint,
        part: &LogPart,
    ) -> Result<LogPoint, LiveError> {
        let now = self.now();
        part.changes.iter().for_each(|entry| self.known_types.note(&entry.change));
        let mut caches = self.caches.lock();
        let mut cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
        let changes = part.changes.iter().map(|entry| (entry.at, &entry.change));
        if let Progress::Gap { after: applied } = cache.follow(changes, part.end, now) {
            tracing::warn!(%partition, %after, %applied, "a log was read with a gap");
        }
        self.apply_to_lists(partition, &part.changes, part.end);
        Ok(part.end)
    }

    /// Begins to follow a log at its end. Returns the end.
    fn begin_at(&self, partition: PartitionId, end: LogPoint) -> Result<LogPoint, LiveError> {
        let mut caches = self.caches.lock();
        caches.partition(partition).ok_or(LiveError::NotOwner(partition))?.jump(end);
        Ok(end)
    }

    /// Begins again at the end of a log that has lost places that the partition had applied or seen. Tells the leader too,
    /// which may be idle and would not notice.
    pub(super) fn replaced(&self, partition: PartitionId, end: LogPoint) -> Result<LogPoint, LiveError> {
        self.note_jump(partition, end);
        let mut caches = self.caches.lock();
        let before = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?.replaced(end);
        let _ = self.lead.send(LeadMessage::Event(Event::Replaced { partition, before }));
        Ok(end)
    }

    /// Empties the cache of a partition, which continues at the end of its log.
    fn jump(&self, partition: PartitionId, end: LogPoint) -> Result<LogPoint, LiveError> {
        self.note_jump(partition, end);
        let mut caches = self.caches.lock();
        caches.partition(partition).ok_or(LiveError::NotOwner(partition))?.jump(end);
        Ok(end)
    }

    fn note_jump(&self, partition: PartitionId, end: LogPoint) {
        tracing::info!(graph = self.name, %partition, %end, "the log does not reach back to this replica: its cache is emptied");
        metrics::counter!("kith_live_jumps_total").increment(1);
        self.close_lists(partition);
    }
}
