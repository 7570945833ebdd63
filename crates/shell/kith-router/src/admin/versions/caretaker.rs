//! Takes back pushes whose router died. Any router does it within seconds, and the next push of the store does it at once.

use super::{Coordinator, Stores, clean, observe::show};
use futures::StreamExt;
use kith_cluster::FailPoint;
use kith_cluster::metadata::{
    MetadataError, MetadataStore, keys,
    records::{Asker, ChangeError, change, now, read},
};
use kith_types::ErrorCode;
use kith_versions::{Command, PushId};
use kith_wire::documents::{Document, RunningDocument, StoreDocument};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The interval between checks that the routers of running pushes are alive.
const CARE_INTERVAL: Duration = Duration::from_secs(1);
/// The time that a router waits after its start until others can see its lease.
const LIVE_WAIT: Duration = Duration::from_secs(10);
/// The interval at which it checks this.
const LIVE_RETRY: Duration = Duration::from_millis(50);

/// Takes back the pushes of dead routers, and removes what killed uploads left behind, until `stop` is cancelled.
pub fn take_care(stores: Stores, stop: CancellationToken) {
    sweep_now_and_then(stores.clone(), stop.clone());
    tokio::spawn(async move {
        let mut changes = stores.metadata.watch(keys::STORES, 0);
        let mut all: Vec<StoreDocument> = Vec::new();
        let mut shown = BTreeMap::new();
        let mut interval = tokio::time::interval(CARE_INTERVAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                snapshot = changes.next() => match snapshot {
                    Some(snapshot) => {
                        let documents = snapshot.entries.iter();
                        let documents = documents.filter_map(|entry| StoreDocument::decode(&entry.value).ok());
                        all = documents.collect();
                    }
                    None => {
                        tokio::time::sleep(CARE_INTERVAL).await;
                        changes = stores.metadata.watch(keys::STORES, 0);
                    }
                },
                _ = interval.tick() => {
                    show(&all, &mut shown, now());
                    for store in all.iter().filter(|store| store.running.is_some()) {
                        if let Err(error) = stores.take_back_if_dead(store).await {
                            let error = error.to_status(&store.name);
                            tracing::debug!(error = error.message(), store = store.name, "a push may have lost its router");
                        }
                    }
                }
            }
        }
    });
}

fn sweep_now_and_then(stores: Stores, stop: CancellationToken) {
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(stores.uploads.sweep_interval()) => stores.sweep().await,
            }
        }
    });
}

impl Stores {
    /// Removes folders that no record names and that were not written to for long, for all stores.
    async fn sweep(&self) {
        let (metadata, runtime) = (Arc::clone(&self.metadata), Handle::current());
        let orphaned = self.uploads.orphaned();
        self.with_objects(move |objects| {
            let record = |store: &str| {
                let known = runtime.block_on(read(&*metadata, store));
                known.map(|known| known.map(|known| known.document))
            };
            if let Err(error) = clean::sweep(objects, record, orphaned) {
                let error = error.to_status("");
                tracing::warn!(
                    error = error.message(),
                    "the object store could not be cleaned up; a later attempt follows"
                );
            }
        })
        .await;
    }

    /// Takes the running push back if its router is dead. Returns whether the store has no running push now.
    pub(super) async fn take_back_if_dead(&self, store: &StoreDocument) -> Result<bool, ChangeError> {
        let Some(running) = &store.running else { return Ok(true) };
        if self.is_run(running).await? {
            return Ok(false);
        }
        let cluster = self.cluster();
        let asker = Asker::own(self.coordinator.name(), &cluster);
        let recover = Command::Recover { push: PushId(running.push.clone()) };
        FailPoint::RecoveryBegun.reach();
        match change(&*self.metadata, &store.name, asker, &[recover]).await {
            Ok(changed) => {
                FailPoint::RecoveryWritten.reach();
                let (store, push) = (&changed.document.name, &running.push);
                tracing::warn!(
                    store,
                    push,
                    coordinator = running.coordinator,
                    "took back a push whose router is gone"
                );
                Ok(true)
            }
            // Another router took it back, or the store was dropped.
            Err(ChangeError::Refused(_) | ChangeError::Unknown) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether the router that began a push still runs it.
    async fn is_run(&self, running: &RunningDocument) -> Result<bool, MetadataError> {
        if running.coordinator == self.coordinator.name() {
            return Ok(self.active().contains_key(&PushId(running.push.clone())));
        }
        is_live(&*self.metadata, &running.coordinator).await
    }

    /// Waits until other routers can see this one. Otherwise they would take its push back.
    pub(super) async fn wait_until_live(&self) -> Result<(), ChangeError> {
        wait_until_live(&*self.metadata, &self.coordinator).await
    }
}

/// Whether the router with this coordinator name still has a lease.
pub(crate) async fn is_live(metadata: &dyn MetadataStore, coordinator: &str) -> Result<bool, MetadataError> {
    let live = metadata.read(keys::LIVE).await?;
    Ok(live.entries.iter().any(|entry| entry.value == coordinator.as_bytes()))
}

/// Waits for at most [`LIVE_WAIT`] until other routers can see that this one is alive.
pub(crate) async fn wait_until_live(
    metadata: &dyn MetadataStore,
    coordinator: &Coordinator,
) -> Result<(), ChangeError> {
    let started = Instant::now();
    while !is_live(metadata, coordinator.name()).await? {
        if LIVE_WAIT < started.elapsed() {
            let message = "this router has not registered with the metadata store yet";
            let help = "try again, or ask another router";
            return Err(kith_wire::status(ErrorCode::MetadataUnavailable, message, help).into());
        }
        tokio::time::sleep(LIVE_RETRY).await;
    }
    Ok(())
}
