//! Runs a push from its first write to its last: begin, prepare everywhere, flip, clean up.

use super::{
    Active, Stores,
    definition::check_name,
    fence::flipped,
    push::{Progress, Push},
};
use futures::StreamExt;
use kith_cluster::FailPoint;
use kith_cluster::metadata::{
    keys,
    records::{
        Asker, ChangeError, Changed, Known, New, bounds, change, change_known, conflict, read, state_of,
    },
};
use kith_types::StoreVersion;
use kith_versions::{Command, PushId, Refusal};
use kith_wire::{
    documents::{DefinitionDocument, Document, HoldsDocument, StoreDocument},
    v1,
};
use std::{
    collections::btree_map::Entry,
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

/// Registers a push as active on this router until it is dropped.
struct Entered<'a> {
    stores: &'a Stores,
    push: &'a PushId,
    /// Cancels a push that no record knows yet, because its graph does not exist yet.
    cancelled: CancellationToken,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.stores.active().remove(self.push);
    }
}

/// The result of a push.
#[derive(Clone, Debug)]
pub struct Served {
    /// The version that the store serves.
    pub version: StoreVersion,
    /// The duration in microseconds of the one write that made it current; `None` if an earlier call made it current.
    pub flip_us: Option<u64>,
    /// The other routers, and whether they serve the version.
    pub routers: Vec<v1::FollowedRouter>,
}

impl Stores {
    /// Makes `push` the served version of its store. If the same push is requested again after it succeeded, returns what it
    /// made.
    ///
    /// # Errors
    /// Returns the status for the caller. Unless the metadata store failed, the old version stays served.
    pub(crate) async fn push(&self, push: &Push, progress: &Progress) -> Result<Served, Status> {
        let ended = self.try_push(push, progress).await;
        if let Some(outcome) = outcome(&ended) {
            metrics::counter!("kith_router_pushes_total", "store" => push.store.clone(), "outcome" => outcome)
                .increment(1);
        }
        match ended {
            Ok(served) => Ok(served),
            Err(ChangeError::Refused(Refusal::AlreadyPushed { version, .. })) => {
                Ok(Served { version, flip_us: None, routers: Vec::new() })
            }
            Err(error) => Err(error.to_status(&push.store)),
        }
    }

    async fn try_push(&self, push: &Push, progress: &Progress) -> Result<Served, ChangeError> {
        check_name(&push.store)?;
        self.check_places(push)?;
        let Entered { cancelled, .. } = &self.enter(push)?;
        let Changed { document, revision, .. } = self.begin(push, cancelled, progress).await?;
        FailPoint::PushBegun.reach();
        let prepare = async {
            self.check_manifests(push).await?;
            self.prepare_everywhere(&document, push, revision, progress).await
        };
        let prepared = tokio::select! {
            prepared = prepare => prepared,
            why = self.ended(push, revision, cancelled) => Err(why),
        };
        match prepared {
            Ok(said) => {
                FailPoint::PushPrepared.reach();
                self.flip(push, said).await
            }
            Err(error) => {
                self.give_up(push, &error).await;
                Err(error)
            }
        }
    }

    fn enter<'a>(&'a self, push: &'a Push) -> Result<Entered<'a>, ChangeError> {
        match self.active().entry(push.push.clone()) {
            Entry::Vacant(free) => {
                let (store, cancelled) = (push.store.clone(), CancellationToken::new());
                free.insert(Active { store, cancelled: cancelled.clone() });
                Ok(Entered { stores: self, push: &push.push, cancelled })
            }
            Entry::Occupied(_) => {
                let (push, who) = (push.push.clone(), push.who.clone());
                Err(Refusal::PushRunning { push, version: StoreVersion(0), who }.into())
            }
        }
    }

    /// Waits until a begun push is ended by another process or cancelled here. Returns the reason.
    async fn ended(&self, push: &Push, revision: u64, cancelled: &CancellationToken) -> ChangeError {
        let key = keys::store(&push.store);
        let mut changes = self.metadata.watch(&key, revision);
        loop {
            let snapshot = tokio::select! {
                () = cancelled.cancelled() => return is_cancelled(push),
                snapshot = changes.next() => snapshot,
            };
            let Some(snapshot) = snapshot else {
                tokio::time::sleep(WATCH_RETRY).await;
                changes = self.metadata.watch(&key, revision);
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

    /// Cancels a push of a store that no record knows, if this router runs it. Returns whether it does.
    pub(super) fn cancel_here(&self, store: &str, push: &PushId) -> bool {
        let active = self.active();
        let of_store = active.get(push).filter(|active| active.store == store);
        of_store.inspect(|active| active.cancelled.cancel()).is_some()
    }

    async fn begin(
        &self,
        push: &Push,
        cancelled: &CancellationToken,
        progress: &Progress,
    ) -> Result<Changed, ChangeError> {
        self.wait_until_live().await?;
        let (started, mut tries) = (Instant::now(), 0);
        let cluster = self.cluster();
        while tries < BEGIN_TRIES {
            if cancelled.is_cancelled() {
                return Err(is_cancelled(push));
            }
            let known = match read(&*self.metadata, &push.store).await? {
                Some(known) => known,
                None if push.is_load => self.new_graph(&push.store, push.asker(&cluster)).await?,
                None => return Err(ChangeError::Unknown),
            };
            bounds::check_components(&push.components)?;
            self.check_folders(&known.document, push)?;
            let components = push.components_in(&known.document)?;
            let commands = push.beginning(&known.document, &components, self.coordinator.name());
            let (asker, new) = (push.asker(&cluster), New { components: &components, ..New::default() });
            match change_known(&*self.metadata, &known, asker, &commands, new).await {
                Ok(Some(changed)) => return Ok(changed),
                Ok(None) => tries += 1,
                Err(ChangeError::Refused(refusal @ Refusal::PushRunning { .. })) => {
                    if self.take_back_if_dead(&known.document).await? {
                        continue;
                    }
                    let waits = push.is_load && !progress.is_closed();
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
    async fn new_graph(&self, name: &str, asker: Asker<'_>) -> Result<Known, ChangeError> {
        let definition = DefinitionDocument::new(HoldsDocument::Graph);
        Ok(Known { document: self.new_store(name, definition, asker).await?, revision: 0 })
    }

    async fn flip(&self, push: &Push, said: Vec<Command>) -> Result<Served, ChangeError> {
        let commands: Vec<Command> =
            said.into_iter().chain([Command::Flip { push: push.push.clone() }]).collect();
        let cluster = self.cluster();
        let asker = push.asker(&cluster);
        let started = Instant::now();
        let changed = match change(&*self.metadata, &push.store, asker, &commands).await {
            Ok(changed) => changed,
            Err(error) => {
                if let ChangeError::Refused(_) = error {
                    self.give_up(push, &error).await;
                }
                // Otherwise the metadata store failed, and may have accepted the flip. If it has not, the push is taken back
                // later.
                return Err(error);
            }
        };
        FailPoint::PushFlipped.reach();
        let flip_us = flipped(&changed.document, started.elapsed());
        let routers = self.wait_until_served(changed.revision).await;
        let version = StoreVersion(changed.document.current().map_or(0, |current| current.version));
        self.clean(changed.before, changed.document).await;
        FailPoint::PushCleaned.reach();
        Ok(Served { version, flip_us: Some(flip_us), routers })
    }

    async fn give_up(&self, push: &Push, error: &ChangeError) {
        FailPoint::PushFailed.reach();
        let reason = error.to_status(&push.store).message().to_owned();
        let cluster = self.cluster();
        let asker = push.asker(&cluster);
        let end = match error {
            ChangeError::Refused(Refusal::PushCancelled { .. }) => {
                Command::Cancel { push: Some(push.push.clone()) }
            }
            _ => Command::Abort { push: push.push.clone(), reason },
        };
        match change(&*self.metadata, &push.store, asker, &[end]).await {
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
fn outcome(ended: &Result<Served, ChangeError>) -> Option<&'static str> {
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
