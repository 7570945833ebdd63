//! Reading a log on from where a partition is.

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

/// How much of a log is read at once.
const LOG_BYTES_MAX: usize = 4 << 20;

impl LiveGraph {
    /// What all partitions that are here have applied.
    pub(super) fn applied_logs(&self) -> v1::AppliedLogs {
        let held = self.held();
        let mut caches = self.caches.lock();
        let logs = held.into_iter().filter_map(|partition| {
            let applied = caches.partition(partition)?.applied();
            Some((partition.0, applied.position.0))
        });
        let (partitions, positions) = logs.unzip();
        v1::AppliedLogs { graph: self.name.clone(), partitions, positions }
    }

    /// What a partition has applied.
    ///
    /// # Errors
    /// [`LiveError::NotOwner`].
    pub(super) fn applied(&self, partition: PartitionId) -> Result<LogPoint, LiveError> {
        let mut caches = self.caches.lock();
        let cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
        Ok(cache.applied())
    }

    /// Applies the log of a partition until it has reached `target`. Two readers of one log do not read it twice.
    ///
    /// # Errors
    /// [`LiveError::HistoryLost`] if the log ends before `target`; if the database cannot be read.
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

    /// Where the log of a partition ends, read from the database after this call. What the cache holds of a history that the
    /// database has lost is dropped first.
    ///
    /// # Errors
    /// If the database cannot be read, or the partition is not here.
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

    /// Where the log of a partition ends, according to the database.
    pub(super) async fn end_of(&self, partition: PartitionId) -> Result<LogPoint, LiveError> {
        let ends = self.database.points(vec![partition]).await?;
        Ok(ends.first().copied().unwrap_or_default())
    }

    /// Refuses a place that the log does not contain: the database was replaced by an older copy of itself, and lost it.
    ///
    /// # Errors
    /// [`LiveError::HistoryLost`]; if the database cannot be read.
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

    /// Whether what was read of a partition as of `shown` shows the place `required`. `false` if it is of another term than the
    /// cache follows by now, so that nobody can tell: then it is to be read again.
    ///
    /// # Errors
    /// As [`Self::look_for`].
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

    /// Applies what was read of a log after `after`; where the log ended.
    fn apply_part(
        &self,
        partition: PartitionId,
        after: LogPoint,
        part: &LogPart,
    ) -> Result<LogPoint, LiveError> {
        let now = self.now();
        let mut caches = self.caches.lock();
        let mut cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
        let changes = part.changes.iter().map(|entry| (entry.at, &entry.change));
        if let Progress::Gap { after: applied } = cache.follow(changes, part.end, now) {
            tracing::warn!(%partition, %after, %applied, "a log was read with a gap");
        }
        self.apply_to_lists(partition, &part.changes, part.end);
        Ok(part.end)
    }

    /// Begins to follow a log at its end.
    fn begin_at(&self, partition: PartitionId, end: LogPoint) -> Result<LogPoint, LiveError> {
        let mut caches = self.caches.lock();
        caches.partition(partition).ok_or(LiveError::NotOwner(partition))?.jump(end);
        Ok(end)
    }

    /// Begins again at the end of a log that has lost what the partition had applied or seen, and tells the leader, which may be
    /// idle.
    pub(super) fn replaced(&self, partition: PartitionId, end: LogPoint) -> Result<LogPoint, LiveError> {
        self.note_jump(partition, end);
        let mut caches = self.caches.lock();
        let before = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?.replaced(end);
        let _ = self.lead.send(LeadMessage::Event(Event::Replaced { partition, before }));
        Ok(end)
    }

    /// Empties a partition, which goes on from the end of its log.
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
