//! Drives one rebalance: takes in what happened, stores the decisions, then carries them out.

mod look;
mod transfers;

use super::{
    Rebalancer,
    document::{record, settled},
};
use kith_cluster::metadata::{CommitOutcome, Condition, MetadataError, Write, keys};
use kith_routing::rebalance::{CopyFault, Phase, RebalanceAction, RebalanceEvent, RebalanceState};
use kith_routing::{RoutingTable, TableParts};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};
use kith_wire::documents::{ClusterDocument, Document, RebalanceDocument};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};
use thiserror::Error;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

/// The interval at which liveness, the tables in use and commands of users are checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The pause after a copy or release that failed for a temporary reason, and between attempts to reach the metadata store.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The reason why this router stopped driving.
#[derive(Debug, Error)]
pub(super) enum DriveError {
    /// Another driver has taken over, or the record is gone.
    #[error("another driver has taken over")]
    Fenced,
    /// The cluster's record cannot be read.
    #[error("the cluster's record cannot be read: {0}")]
    Cluster(String),
}

/// The result of an operation that was begun.
enum Happened {
    Copied(Vec<usize>, Result<(), FailedCopy>),
    /// A node has freed partitions of these stores.
    Released(NodeId, Vec<(PartitionId, Vec<u32>)>),
}

/// The reason why a copy failed.
struct FailedCopy {
    fault: CopyFault,
    /// The donor and the stealer, and the error message.
    detail: String,
}

/// One rebalance, driven by this router.
pub(super) struct Driver {
    rebalancer: Rebalancer,
    document: RebalanceDocument,
    state: RebalanceState,
    /// The cluster's document, for the facts that a table does not have.
    cluster: ClusterDocument,
    /// The key that holds the record, and the revision of this driver's last write.
    key: &'static str,
    revision: u64,
    written: Vec<u8>,
    started: Instant,
    down: BTreeSet<NodeId>,
    /// No router has an older table than this one.
    in_use: Epoch,
    copies: BTreeMap<usize, AbortHandle>,
    work: JoinSet<()>,
    sender: mpsc::UnboundedSender<Happened>,
    happened: mpsc::UnboundedReceiver<Happened>,
}

impl Driver {
    /// Returns a driver for a rebalance whose first record was just written.
    pub fn new(
        rebalancer: Rebalancer,
        document: RebalanceDocument,
        state: RebalanceState,
        cluster: ClusterDocument,
        revision: u64,
    ) -> Self {
        Self::resumed(rebalancer, document, state, cluster, revision, keys::REBALANCE)
    }

    /// Returns a driver for a rebalance that was taken over. `key` holds its record.
    pub fn resumed(
        rebalancer: Rebalancer,
        document: RebalanceDocument,
        state: RebalanceState,
        cluster: ClusterDocument,
        revision: u64,
        key: &str,
    ) -> Self {
        // The channel is unbounded, but it never holds more than the operations of one batch.
        let (sender, happened) = mpsc::unbounded_channel();
        let key = if key == keys::REBALANCE { keys::REBALANCE } else { keys::REBALANCE_ENDED };
        Self {
            written: document.encode(),
            rebalancer,
            document,
            state,
            cluster,
            key,
            revision,
            started: Instant::now(),
            down: BTreeSet::new(),
            in_use: Epoch(0),
            copies: BTreeMap::new(),
            work: JoinSet::new(),
            sender,
            happened,
        }
    }

    /// The id of the rebalance.
    pub fn id(&self) -> &str {
        &self.document.id
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.started.elapsed())
    }

    /// Drives until nothing is left to do. When it is dropped or fenced, none of its tasks keeps running.
    ///
    /// # Errors
    /// [`DriveError`] if this router can no longer drive.
    pub async fn run(mut self) -> Result<(), DriveError> {
        let mut looks = tokio::time::interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let actions = self.state.next(self.now());
            // Store the decisions before carrying them out, so that a router that takes over knows at least as much.
            self.save().await?;
            if self.act(actions).await? {
                continue;
            }
            if self.state.is_settled() {
                return Ok(());
            }
            tokio::select! {
                Some(happened) = self.happened.recv() => {
                    self.take_in(happened);
                    while let Ok(more) = self.happened.try_recv() {
                        self.take_in(more);
                    }
                }
                _ = looks.tick() => self.look().await?,
            }
        }
    }

    fn on(&mut self, event: RebalanceEvent) {
        let now = self.now();
        for action in self.state.on(event, now) {
            match action {
                RebalanceAction::Cancel(index) => self.cancel(index),
                RebalanceAction::Stopped(reason) => {
                    tracing::error!(rebalance = self.id(), %reason, "stopped")
                }
                _ => {}
            }
        }
    }

    fn take_in(&mut self, happened: Happened) {
        match happened {
            Happened::Copied(indexes, outcome) => {
                if let Err(FailedCopy { detail, .. }) = &outcome {
                    self.document.last_failure.clone_from(detail);
                }
                for index in indexes {
                    self.copies.remove(&index);
                    self.on(match &outcome {
                        Ok(()) => RebalanceEvent::Copied(index),
                        Err(failed) => RebalanceEvent::CopyFailed(index, failed.fault),
                    });
                }
            }
            Happened::Released(node, freed) => {
                freed.into_iter().for_each(|(partition, stores)| {
                    self.on(RebalanceEvent::Reclaimed(node, partition, stores));
                });
            }
        }
    }

    fn cancel(&mut self, index: usize) {
        if let Some(copy) = self.copies.remove(&index) {
            copy.abort();
        }
    }

    /// Writes the record if it changed, on condition that no other driver has written it.
    async fn save(&mut self) -> Result<(), DriveError> {
        record(&mut self.document, self.state.parts(), &self.cluster);
        let bytes = self.document.encode();
        let is_over = matches!(self.state.phase(), Phase::Ended(_));
        if bytes == self.written && (self.key == keys::REBALANCE_ENDED || !is_over) {
            return Ok(());
        }
        let target = if is_over { keys::REBALANCE_ENDED } else { keys::REBALANCE };
        let revision = loop {
            let condition = Condition { key: self.key.to_owned(), revision: self.revision };
            let mut writes = vec![Write::put(target, bytes.clone())];
            if target != self.key {
                writes.extend([Write::delete(self.key), Write::delete(keys::REBALANCE_ASKED)]);
            }
            match self.rebalancer.cluster.metadata.commit(vec![condition], writes).await {
                Ok(CommitOutcome::At(revision)) => break revision,
                Ok(CommitOutcome::Conflict) => {
                    // The answer to an earlier attempt may have been lost.
                    let snapshot = self.rebalancer.cluster.metadata.read(keys::REBALANCE).await;
                    match snapshot.map(|snapshot| snapshot.get(target).cloned()) {
                        Ok(Some(entry)) if entry.value == bytes => break entry.revision,
                        Ok(_) => return Err(DriveError::Fenced),
                        Err(error) => self.pause(&error).await,
                    }
                }
                Err(error) => self.pause(&error).await,
            }
        };
        (self.key, self.revision, self.written) = (target, revision, bytes);
        Ok(())
    }

    async fn pause(&self, error: &MetadataError) {
        tracing::warn!(rebalance = self.id(), %error, "the rebalance waits for the metadata store");
        tokio::time::sleep(RETRY_PAUSE).await;
    }

    /// Carries out the decided actions. Returns whether a new table was committed, so that the next decision can follow at
    /// once.
    async fn act(&mut self, actions: Vec<RebalanceAction>) -> Result<bool, DriveError> {
        let mut copies: BTreeMap<(NodeId, NodeId, Vec<u32>), Vec<usize>> = BTreeMap::new();
        let mut reclaims: BTreeMap<(NodeId, Vec<u32>), Vec<PartitionId>> = BTreeMap::new();
        let mut committed = false;
        for action in actions {
            match action {
                RebalanceAction::Copy(index) => {
                    let copy = &self.state.parts().transfers[index].copy;
                    let stores = copy.stores.iter().map(|store| store.store).collect();
                    copies.entry((copy.donor, copy.stealer, stores)).or_default().push(index);
                }
                RebalanceAction::Reclaim(node, partition, stores) => {
                    reclaims.entry((node, stores)).or_default().push(partition);
                }
                RebalanceAction::Cancel(index) => self.cancel(index),
                RebalanceAction::Commit(table) => {
                    let event = self.commit(&table).await?;
                    self.on(event);
                    committed = true;
                }
                RebalanceAction::Stopped(reason) => {
                    tracing::error!(rebalance = self.id(), %reason, "stopped: a user must continue or abort the rebalance");
                }
                RebalanceAction::Ended(ending) => {
                    tracing::info!(rebalance = self.id(), ?ending, "the rebalance is over")
                }
            }
        }
        for ((donor, stealer, stores), indexes) in copies {
            self.copy(donor, stealer, &stores, indexes);
        }
        for ((node, stores), partitions) in reclaims {
            self.release(node, stores, partitions);
        }
        Ok(committed)
    }

    /// Puts a table in force, on condition that the one before it is in force and that no other driver has taken over.
    async fn commit(&mut self, table: &TableParts) -> Result<RebalanceEvent, DriveError> {
        loop {
            let snapshot = match self.rebalancer.cluster.metadata.read(keys::CLUSTER).await {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    self.pause(&error).await;
                    continue;
                }
            };
            let unreadable = |error: String| DriveError::Cluster(error);
            let entry = snapshot.get(keys::CLUSTER).ok_or_else(|| unreadable("it is gone".to_owned()))?;
            let cluster =
                ClusterDocument::decode(&entry.value).map_err(|error| unreadable(error.to_string()))?;
            let in_force = settled(&cluster).map_err(|error| unreadable(error.to_string()))?;
            if in_force != *self.state.table() {
                let in_force = RoutingTable::new(in_force).map_err(|error| unreadable(error.to_string()))?;
                return Ok(RebalanceEvent::CommitRefused(Box::new(in_force)));
            }
            let next = kith_topology::cluster_document(table, &cluster);
            let conditions = vec![
                Condition { key: keys::CLUSTER.to_owned(), revision: entry.revision },
                Condition { key: self.key.to_owned(), revision: self.revision },
            ];
            let write = Write::put(keys::CLUSTER, next.encode());
            match self.rebalancer.cluster.metadata.commit(conditions, vec![write]).await {
                Ok(CommitOutcome::At(revision)) => {
                    tracing::info!(rebalance = self.id(), epoch = next.epoch, "a new table is in force");
                    self.rebalancer.wait_until_seen(revision).await;
                    return Ok(RebalanceEvent::Committed);
                }
                Ok(CommitOutcome::Conflict) => self.check_fence().await?,
                // The write may have succeeded. The table in force shows whether it has.
                Err(error) => self.pause(&error).await,
            }
        }
    }

    async fn check_fence(&self) -> Result<(), DriveError> {
        match self.rebalancer.cluster.metadata.read(keys::REBALANCE).await {
            Ok(snapshot) if snapshot.get(self.key).is_none_or(|entry| entry.revision != self.revision) => {
                Err(DriveError::Fenced)
            }
            Ok(_) => Ok(()),
            Err(error) => {
                self.pause(&error).await;
                Ok(())
            }
        }
    }
}
