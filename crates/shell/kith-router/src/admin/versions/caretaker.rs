//! Takes back pushes whose router died. Any router does it within seconds, and the next push of the store does it at once.

use super::{active::ActivePushes, observe::show};
use crate::admin::ClusterHandle;
use futures::StreamExt;
use kith_cluster::FailPoint;
use kith_cluster::metadata::{
    MetadataError, keys,
    records::{ChangeCaller, ChangeError, change, now},
};
use kith_topology::versions::{Command, PushId};
use kith_wire::documents::{Document, RunningDocument, StoreDocument};
use std::{collections::BTreeMap, time::Duration};

/// The interval between checks that the routers of running pushes are alive.
const CARE_INTERVAL: Duration = Duration::from_secs(1);

/// Takes back pushes whose router died.
#[derive(Clone)]
pub(super) struct Caretaker {
    pub cluster: ClusterHandle,
    /// The pushes that this router runs.
    pub active: ActivePushes,
}

impl Caretaker {
    /// Watches the stores, shows them in the metrics and takes back the pushes of dead routers. Does not return.
    pub async fn run(self) {
        let metadata = &self.cluster.metadata;
        let mut changes = metadata.watch(keys::STORES, 0);
        let mut all: Vec<StoreDocument> = Vec::new();
        let mut shown = BTreeMap::new();
        let mut interval = tokio::time::interval(CARE_INTERVAL);
        loop {
            tokio::select! {
                snapshot = changes.next() => match snapshot {
                    Some(snapshot) => {
                        let documents = snapshot.entries.iter();
                        let documents = documents.filter_map(|entry| StoreDocument::decode(&entry.value).ok());
                        all = documents.collect();
                    }
                    None => {
                        tokio::time::sleep(CARE_INTERVAL).await;
                        changes = metadata.watch(keys::STORES, 0);
                    }
                },
                _ = interval.tick() => {
                    show(&all, &mut shown, now());
                    self.take_back_dead(&all).await;
                }
            }
        }
    }

    async fn take_back_dead(&self, stores: &[StoreDocument]) {
        for store in stores.iter().filter(|store| store.running.is_some()) {
            if let Err(error) = self.take_back_if_dead(store).await {
                let error = error.to_status(&store.name);
                tracing::debug!(
                    error = error.message(),
                    store = store.name,
                    "a push may have lost its router"
                );
            }
        }
    }

    /// Takes the running push back if its router is dead. Returns whether the store has no running push now.
    pub async fn take_back_if_dead(&self, store: &StoreDocument) -> Result<bool, ChangeError> {
        let Some(running) = &store.running else { return Ok(true) };
        if self.is_run(running).await? {
            return Ok(false);
        }
        let cluster = self.cluster.cluster();
        let caller = ChangeCaller::own(self.cluster.coordinator.name(), &cluster);
        let recover = Command::Recover { push: PushId(running.push.clone()) };
        FailPoint::RecoveryBegun.reach();
        match change(&*self.cluster.metadata, &store.name, caller, &[recover]).await {
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
        if running.coordinator == self.cluster.coordinator.name() {
            return Ok(self.active.contains(&PushId(running.push.clone())));
        }
        self.cluster.is_live(&running.coordinator).await
    }
}
