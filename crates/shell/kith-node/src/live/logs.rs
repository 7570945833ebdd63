//! Reads logs from the points that partitions have applied, and applies their changes to caches and lists.

use super::{
    database::GraphDatabase,
    errors::{LiveError, of_log},
    lists::{LOG_BYTES_MAX, LiveLists},
    message::LeadMessage,
    partitions::HeldPartitions,
    types::KnownTypes,
};
use kith_cache::live::{FollowStep, Progress, Search, TermCheck};
use kith_database::{LogError, LogPart};
use kith_live::{Change, Event};
use kith_types::{LogPoint, PartitionId};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The logs of the held partitions of one graph.
pub(super) struct FollowedLogs {
    pub graph: String,
    pub database: Arc<GraphDatabase>,
    pub partitions: Arc<HeldPartitions>,
    pub types: Arc<KnownTypes>,
    pub lists: Arc<LiveLists>,
    /// The channel to the task that leads.
    pub lead: mpsc::UnboundedSender<LeadMessage>,
}

impl FollowedLogs {
    /// Applies the log of a partition until the partition has reached `target`. Only one task reads a log at a time, so
    /// tasks do not read the same changes twice.
    ///
    /// # Errors
    /// [`LiveError::HistoryLost`] if the log does not reach `target`, and errors of the database.
    pub async fn catch_up(&self, partition: PartitionId, target: LogPoint) -> Result<(), LiveError> {
        let turn = self.partitions.log_turn(partition)?;
        if self.toward(partition, target)? == FollowStep::Reached {
            return Ok(());
        }
        let _turn = turn.lock().await;
        loop {
            let end = match self.toward(partition, target)? {
                FollowStep::Reached => return Ok(()),
                FollowStep::End => {
                    let end = self.database.end_of(partition).await?;
                    self.begin_at(partition, end)?
                }
                FollowStep::Changes { after } => {
                    match self.database.changes(partition, after, LOG_BYTES_MAX).await {
                        Ok(part) => self.apply_part(partition, after, &part)?,
                        Err(LogError::HistoryLost { end, .. }) => self.replaced(partition, end)?,
                        Err(LogError::Trimmed { .. }) => {
                            let end = self.database.end_of(partition).await?;
                            self.jump(partition, end)?
                        }
                        Err(LogError::Database(error)) => return Err(error.into()),
                    }
                }
            };
            if self.partitions.with(partition, |cache| cache.lacks(target, end))? {
                return Err(LiveError::HistoryLost);
            }
        }
    }

    fn toward(&self, partition: PartitionId, target: LogPoint) -> Result<FollowStep, LiveError> {
        self.partitions.with(partition, |cache| cache.toward(target))
    }

    /// Checks that the log contains the point that `search` looks for.
    ///
    /// # Errors
    /// [`LiveError::HistoryLost`] if it does not, because the database was replaced by an older copy of itself, and errors
    /// of the database.
    pub async fn look_for(&self, partition: PartitionId, search: Search) -> Result<(), LiveError> {
        match self.database.changes(partition, search.point(), 1).await {
            Ok(_) | Err(LogError::Trimmed { .. }) => {}
            Err(error) => return Err(of_log(error)),
        }
        // The partition may have been lost meanwhile, which the next step of the read notices.
        let _ = self.partitions.with(partition, |cache| cache.found(search));
        Ok(())
    }

    /// Whether data of a partition at the point `shown` contains the change at the point `required`. Returns `false` if this
    /// cannot be decided, because the cache follows another term by now. The data must then be read again.
    ///
    /// # Errors
    /// The errors of [`Self::look_for`] and [`Self::catch_up`].
    pub async fn shows(
        &self,
        partition: PartitionId,
        required: LogPoint,
        shown: LogPoint,
    ) -> Result<bool, LiveError> {
        loop {
            match self.partitions.with(partition, |cache| cache.shows(required, shown))? {
                TermCheck::Yes => return Ok(true),
                TermCheck::Unknown(search) => self.look_for(partition, search).await?,
                TermCheck::OtherTerm if shown < self.partitions.applied(partition)? => return Ok(false),
                TermCheck::OtherTerm => self.catch_up(partition, shown).await?,
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
        let now = self.partitions.now();
        part.changes.iter().for_each(|entry| self.types.note(&entry.change));
        // The lock is held to the end, so that caches and lists get changes in the same order.
        let mut caches = self.partitions.lock();
        let mut cache = caches.partition(partition).ok_or(LiveError::NotOwner(partition))?;
        let changes = part.changes.iter().map(|entry| (entry.at, &entry.change));
        if let Progress::Gap { after: applied } = cache.follow(changes, part.end, now) {
            tracing::warn!(%partition, %after, %applied, "a log was read with a gap");
        }
        self.lists.apply(partition, &part.changes, part.end);
        Ok(part.end)
    }

    /// Begins to follow a log at its end. Returns the end.
    fn begin_at(&self, partition: PartitionId, end: LogPoint) -> Result<LogPoint, LiveError> {
        self.partitions.with(partition, |cache| cache.jump(end))?;
        Ok(end)
    }

    /// Begins again at the end of a log that has lost points that the partition had applied or seen. Tells the leader too,
    /// which may be idle and would not notice.
    pub fn replaced(&self, partition: PartitionId, end: LogPoint) -> Result<LogPoint, LiveError> {
        self.note_jump(partition, end);
        let before = self.partitions.with(partition, |cache| cache.replaced(end))?;
        let _ = self.lead.send(LeadMessage::Event(Event::Replaced { partition, before }));
        Ok(end)
    }

    /// Empties the cache of a partition, which continues at the end of its log.
    fn jump(&self, partition: PartitionId, end: LogPoint) -> Result<LogPoint, LiveError> {
        self.note_jump(partition, end);
        self.partitions.with(partition, |cache| cache.jump(end))?;
        Ok(end)
    }

    fn note_jump(&self, partition: PartitionId, end: LogPoint) {
        tracing::info!(graph = self.graph, %partition, %end, "the log does not reach back to this replica: its cache is emptied");
        metrics::counter!("kith_live_jumps_total").increment(1);
        self.lists.close(partition);
    }

    /// Applies the changes of this node's leader that follow `after`. If the cache lacks changes before them, returns the
    /// point of the last change, so that the caller can read the log up to there.
    pub fn publish(&self, partition: PartitionId, after: LogPoint, changes: &[Change]) -> Option<LogPoint> {
        let now = self.partitions.now();
        // The lock is held to the end, so that caches and lists get changes in the same order.
        let mut caches = self.partitions.lock();
        let mut cache = caches.partition(partition)?;
        cache.saw(after);
        let (mut previous, mut has_gap) = (after, false);
        for change in changes {
            self.types.note(change);
            let point = LogPoint { position: previous.position.next(), ..after };
            cache.saw(point);
            let progress = cache.apply_after(previous, point, change, now);
            has_gap |= matches!(progress, Progress::Gap { .. });
            self.lists.apply_published(partition, previous, point, change);
            previous = point;
        }
        has_gap.then_some(previous)
    }
}
