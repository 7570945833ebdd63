//! Runs a push from its first write to its last: begin, prepare everywhere, flip, clean up.

use super::{
    active::ActivePushes,
    caretaker::Caretaker,
    clean::Cleaner,
    definition::check_name,
    fence::{RouterFence, flipped},
    lifetime::StoreRegistry,
    offer::Offer,
    prepare::Preparation,
    push::{Progress, Push},
};
use crate::admin::{ClusterHandle, ReadFrom};
use futures::StreamExt;
use kith_cluster::FailPoint;
use kith_cluster::metadata::{
    keys,
    records::{
        ChangeCaller, ChangeError, New, StoreEntry, WrittenChange, bounds, change, change_known, conflict,
        read, state_of,
    },
};
use kith_session::Session;
use kith_topology::versions::{Command, Refusal};
use kith_types::StoreVersion;
use kith_wire::{
    documents::{DefinitionDocument, Document, HoldsDocument, StoreDocument},
    v1,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

/// The maximum number of attempts to begin a push while others change the store.
const BEGIN_TRIES: u32 = 20;
/// The time that a load of a graph waits for another load of the same graph, so that both take effect.
const LOAD_WAIT: Duration = Duration::from_secs(600);
/// The interval at which it checks whether the other load has ended.
const LOAD_RETRY: Duration = Duration::from_millis(200);
/// The pause before a watch that ended is opened again.
const WATCH_RETRY: Duration = Duration::from_secs(1);

/// The result of a push.
#[derive(Clone, Debug)]
pub struct PushResult {
    /// The version that the store serves.
    pub version: StoreVersion,
    /// The duration in microseconds of the one write that made it current; `None` if an earlier call made it current.
    pub flip_us: Option<u64>,
    /// The other routers, and whether they serve the version.
    pub routers: Vec<v1::FollowedRouter>,
}

/// Runs pushes, for one router.
#[derive(Clone)]
pub(super) struct Pushes {
    pub cluster: ClusterHandle,
    pub active: ActivePushes,
    pub caretaker: Caretaker,
    pub cleaner: Cleaner,
    pub fence: RouterFence,
    pub registry: StoreRegistry,
    pub session: Session,
    /// The places from which versions that were built elsewhere may be read.
    pub read_from: Arc<[ReadFrom]>,
}

impl Pushes {
    /// Makes `push` the served version of its store. If the same push is requested again after it succeeded, returns what it
    /// made.
    ///
    /// # Errors
    /// Returns the status for the caller. Unless the metadata store failed, the old version stays served.
    pub async fn push(&self, push: &Push, progress: &Progress) -> Result<PushResult, Status> {
        let ended = self.run(push, progress).await;
        if let Some(outcome) = outcome(&ended) {
            metrics::counter!("kith_router_pushes_total", "store" => push.store.clone(), "outcome" => outcome)
                .increment(1);
        }
        match ended {
            Ok(served) => Ok(served),
            Err(ChangeError::Refused(Refusal::AlreadyPushed { version, .. })) => {
                Ok(PushResult { version, flip_us: None, routers: Vec::new() })
            }
            Err(error) => Err(error.to_status(&push.store)),
        }
    }

    async fn run(&self, push: &Push, progress: &Progress) -> Result<PushResult, ChangeError> {
        check_name(&push.store)?;
        let (read_from, hand_over) = (&*self.read_from, self.cleaner.uploads.hand_over);
        let offer = Offer { push, cluster: &self.cluster, session: &self.session, read_from, hand_over };
        offer.check_places()?;
        let entry = self.active.enter(push)?;
        PushRun { pushes: self, push, progress, offer, cancelled: &entry.cancelled }.run().await
    }
}

/// One push, while it runs.
struct PushRun<'a> {
    pushes: &'a Pushes,
    push: &'a Push,
    progress: &'a Progress,
    offer: Offer<'a>,
    /// Cancelled when the push is cancelled before a record knows it.
    cancelled: &'a CancellationToken,
}

impl PushRun<'_> {
    async fn run(&self) -> Result<PushResult, ChangeError> {
        let WrittenChange { document, revision, .. } = self.begin().await?;
        FailPoint::PushBegun.reach();
        let (cluster, push, progress) = (&self.pushes.cluster, self.push, self.progress);
        let prepare = async {
            self.offer.check_manifests(&document).await?;
            Preparation { cluster, push, progress }.on_all_holders(&document, revision).await
        };
        let prepared = tokio::select! {
            prepared = prepare => prepared,
            why = self.ended(revision) => Err(why),
        };
        match prepared {
            Ok(outcomes) => {
                FailPoint::PushPrepared.reach();
                self.flip(outcomes).await
            }
            Err(error) => {
                self.give_up(&error).await;
                Err(error)
            }
        }
    }

    /// Waits until a begun push is ended by another process or cancelled here. Returns the reason.
    async fn ended(&self, revision: u64) -> ChangeError {
        let (metadata, push) = (&self.pushes.cluster.metadata, self.push);
        let key = keys::store(&push.store);
        let mut changes = metadata.watch(&key, revision);
        loop {
            let snapshot = tokio::select! {
                () = self.cancelled.cancelled() => return is_cancelled(push),
                snapshot = changes.next() => snapshot,
            };
            let Some(snapshot) = snapshot else {
                tokio::time::sleep(WATCH_RETRY).await;
                changes = metadata.watch(&key, revision);
                continue;
            };
            // Ignore a record that cannot be read; the next write reports it.
            let record = snapshot.get(&key).and_then(|entry| StoreDocument::decode(&entry.value).ok());
            match record.as_ref().map(state_of) {
                Some(Ok(state)) if !state.runs(&push.push) => return state.not_running(&push.push).into(),
                None if snapshot.get(&key).is_none() => return ChangeError::Unknown,
                _ => {}
            }
        }
    }

    async fn begin(&self) -> Result<WrittenChange, ChangeError> {
        let (Pushes { cluster: handle, caretaker, .. }, push) = (self.pushes, self.push);
        handle.wait_until_live().await?;
        let (started, mut tries) = (Instant::now(), 0);
        let cluster = handle.cluster();
        while tries < BEGIN_TRIES {
            if self.cancelled.is_cancelled() {
                return Err(is_cancelled(push));
            }
            let known = match read(&*handle.metadata, &push.store).await? {
                Some(known) => known,
                None if push.is_load => self.new_graph(&push.store, push.caller(&cluster)).await?,
                None => return Err(ChangeError::Unknown),
            };
            bounds::check_components(&push.components)?;
            self.offer.check_folders(&known.document)?;
            let components = push.components_in(&known.document)?;
            let commands = push.beginning(&known.document, &components, handle.coordinator.name());
            let (caller, new) = (push.caller(&cluster), New { components: &components, ..New::default() });
            match change_known(&*handle.metadata, &known, caller, &commands, new).await {
                Ok(Some(changed)) => return Ok(changed),
                Ok(None) => tries += 1,
                Err(ChangeError::Refused(refusal @ Refusal::PushRunning { .. })) => {
                    if caretaker.take_back_if_dead(&known.document).await? {
                        continue;
                    }
                    let waits = push.is_load && !self.progress.is_closed();
                    if !waits || LOAD_WAIT < started.elapsed() {
                        return Err(refusal.into());
                    }
                    tokio::time::sleep(LOAD_RETRY).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(conflict(&push.store).into())
    }

    /// Returns the record of a graph that is loaded for the first time. It is written when its first push begins.
    async fn new_graph(&self, name: &str, caller: ChangeCaller<'_>) -> Result<StoreEntry, ChangeError> {
        let definition = DefinitionDocument::new(HoldsDocument::Graph);
        Ok(StoreEntry {
            document: self.pushes.registry.new_store(name, definition, caller).await?,
            revision: 0,
        })
    }

    async fn flip(&self, outcomes: Vec<Command>) -> Result<PushResult, ChangeError> {
        let (Pushes { cluster: handle, .. }, push) = (self.pushes, self.push);
        let commands: Vec<Command> =
            outcomes.into_iter().chain([Command::Flip { push: push.push.clone() }]).collect();
        let cluster = handle.cluster();
        let caller = push.caller(&cluster);
        let started = Instant::now();
        let changed = match change(&*handle.metadata, &push.store, caller, &commands).await {
            Ok(changed) => changed,
            Err(error) => {
                if let ChangeError::Refused(_) = error {
                    self.give_up(&error).await;
                }
                // Otherwise the metadata store failed, and may have accepted the flip. If it has not, the push is taken back
                // later.
                return Err(error);
            }
        };
        FailPoint::PushFlipped.reach();
        let flip_us = flipped(&changed.document, started.elapsed());
        let routers = self.pushes.fence.wait_until_served(changed.revision).await;
        let version = StoreVersion(changed.document.current().map_or(0, |current| current.version));
        self.pushes.cleaner.clean(changed.before, changed.document).await;
        FailPoint::PushCleaned.reach();
        Ok(PushResult { version, flip_us: Some(flip_us), routers })
    }

    async fn give_up(&self, error: &ChangeError) {
        let (Pushes { cluster: handle, .. }, push) = (self.pushes, self.push);
        FailPoint::PushFailed.reach();
        let reason = error.to_status(&push.store).message().to_owned();
        let cluster = handle.cluster();
        let caller = push.caller(&cluster);
        let end = match error {
            ChangeError::Refused(Refusal::PushCancelled { .. }) => {
                Command::Cancel { push: Some(push.push.clone()) }
            }
            _ => Command::Abort { push: push.push.clone(), reason },
        };
        match change(&*handle.metadata, &push.store, caller, &[end]).await {
            Ok(_) | Err(ChangeError::Refused(_)) => FailPoint::PushGivenUp.reach(),
            // The caretaker ends it as soon as it can.
            Err(error) => {
                let error = error.to_status(&push.store);
                tracing::warn!(
                    error = error.message(),
                    store = push.store,
                    "a failed push could not be ended"
                );
            }
        }
    }
}

/// Returns how a push ended, for the metric. A push of an unknown store is not counted, because callers could invent any
/// number of names.
fn outcome(ended: &Result<PushResult, ChangeError>) -> Option<&'static str> {
    match ended {
        Ok(_) => Some("done"),
        Err(ChangeError::Unknown | ChangeError::Refused(Refusal::AlreadyPushed { .. })) => None,
        Err(ChangeError::Refused(Refusal::PushCancelled { .. })) => Some("cancelled"),
        Err(ChangeError::Refused(_)) => Some("refused"),
        Err(ChangeError::Failed(status)) if status.code() == Code::InvalidArgument => None,
        Err(ChangeError::Metadata(_) | ChangeError::Failed(_)) => Some("failed"),
    }
}

fn is_cancelled(push: &Push) -> ChangeError {
    let why = format!("{} cancelled it", push.who);
    Refusal::PushCancelled { push: push.push.clone(), why }.into()
}
