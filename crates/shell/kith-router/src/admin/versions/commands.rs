//! Commands that look at stores or change them, except pushes. Each change is one write.

use super::{
    active::ActivePushes,
    caretaker::Caretaker,
    clean::Cleaner,
    definition::{alter, check_retain},
    fence::{RouterFence, flipped},
    lifetime::StoreRegistry,
    properties::PropertyStores,
    push::{Progress, Push},
    run::{PushResult, Pushes},
};
use crate::admin::{ClusterHandle, ReadFrom, UploadSettings};
use kith_cluster::FailPoint;
use kith_cluster::metadata::records::{
    ChangeCaller, ChangeError, WrittenChange, bounds, change, define, read, unknown_command,
};
use kith_session::Session;
use kith_topology::versions::{Command, PushId, Trust};
use kith_types::StoreVersion;
use kith_wire::{
    documents::{Document, StoreDocument},
    v1::{self, store_request::Command as Asked},
};
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Changes stores, for one router.
#[derive(Clone)]
pub struct Stores {
    cluster: ClusterHandle,
    caretaker: Caretaker,
    cleaner: Cleaner,
    fence: RouterFence,
    pub(super) registry: StoreRegistry,
    pushes: Pushes,
}

impl Stores {
    /// Returns a value that runs no push yet. Versions that were built elsewhere are read only from `read_from`.
    pub fn new(
        cluster: ClusterHandle,
        session: Session,
        read_from: Vec<ReadFrom>,
        uploads: UploadSettings,
    ) -> Self {
        let active = ActivePushes::default();
        let caretaker = Caretaker { cluster: cluster.clone(), active: active.clone() };
        let cleaner = Cleaner { cluster: cluster.clone(), uploads };
        let fence = RouterFence { cluster: cluster.clone() };
        let registry = StoreRegistry {
            cluster: cluster.clone(),
            caretaker: caretaker.clone(),
            cleaner: cleaner.clone(),
        };
        let pushes = Pushes {
            cluster: cluster.clone(),
            active,
            caretaker: caretaker.clone(),
            cleaner: cleaner.clone(),
            fence: fence.clone(),
            registry: registry.clone(),
            session,
            read_from: read_from.into(),
        };
        Self { cluster, caretaker, cleaner, fence, registry, pushes }
    }

    /// Takes back the pushes of dead routers, and removes what killed uploads left behind, until `stop` is cancelled.
    pub fn take_care(&self, stop: &CancellationToken) {
        let (caretaker, stopped) = (self.caretaker.clone(), stop.clone());
        tokio::spawn(async move { stopped.run_until_cancelled(caretaker.run()).await });
        let (cleaner, stopped) = (self.cleaner.clone(), stop.clone());
        tokio::spawn(async move {
            let pause = || tokio::time::sleep(cleaner.uploads.sweep_interval());
            while stopped.run_until_cancelled(pause()).await.is_some() {
                cleaner.sweep().await;
            }
        });
    }

    /// Makes `push` the served version of its store.
    ///
    /// # Errors
    /// Returns the status for the caller. Unless the metadata store failed, the old version stays served.
    pub(crate) async fn push(&self, push: &Push, progress: &Progress) -> Result<PushResult, Status> {
        self.pushes.push(push, progress).await
    }

    /// Carries out a request.
    ///
    /// # Errors
    /// Returns the status for the caller. Nothing has changed in this case.
    pub async fn command(
        &self,
        request: v1::StoreRequest,
        standing: Trust,
    ) -> Result<v1::StoreReply, Status> {
        let v1::StoreRequest { store, who, command } = request;
        let command = command.ok_or_else(|| unknown_command("a store"))?;
        let cluster = self.cluster.cluster();
        let caller = ChangeCaller { who: &who, standing, cluster: &cluster };
        let done = self.try_command(&store, caller, command).await;
        done.map_err(|error| error.to_status(&store))
    }

    async fn try_command(
        &self,
        store: &str,
        caller: ChangeCaller<'_>,
        command: Asked,
    ) -> Result<v1::StoreReply, ChangeError> {
        let command = match command {
            Asked::List(_) => return self.list().await,
            Asked::Describe(_) => {
                let known = read(&*self.cluster.metadata, store).await?.ok_or(ChangeError::Unknown)?;
                return Ok(reply(&known.document, 0));
            }
            Asked::Create(create) => {
                let document = self.registry.create(store, &create.definition, caller).await?;
                return Ok(reply(&document, 0));
            }
            Asked::Drop(drop) => {
                self.registry.drop_store(store, drop.graph, caller).await?;
                return Ok(v1::StoreReply::default());
            }
            Asked::Alter(asked) => return self.alter(store, caller, &asked).await,
            Asked::Cancel(cancel) => {
                let push = (!cancel.push.is_empty()).then(|| bounds::push_id(&cancel.push)).transpose()?;
                return self.cancel(store, caller, push).await;
            }
            Asked::Freeze(freeze) => {
                if freeze.thaw {
                    Command::Thaw
                } else {
                    Command::Freeze
                }
            }
            Asked::Swap(swap) => Command::Swap { to: StoreVersion(swap.to), force: swap.force },
            Asked::Rollback(rollback) => {
                Command::Rollback { to: rollback.to.map(StoreVersion), force: rollback.force }
            }
            Asked::Hold(hold) => {
                let version = StoreVersion(hold.version);
                if hold.release { Command::Release { version } } else { Command::Hold { version } }
            }
            Asked::Block(block) => {
                let version = StoreVersion(block.version);
                if block.unblock { Command::Unblock { version } } else { Command::Block { version } }
            }
        };
        self.change_once(store, caller, command).await
    }

    /// Changes the definition of a store.
    async fn alter(
        &self,
        store: &str,
        caller: ChangeCaller<'_>,
        asked: &v1::AlterStore,
    ) -> Result<v1::StoreReply, ChangeError> {
        check_retain(asked.retain.unwrap_or_default())?;
        bounds::check_owner(asked.owner.as_deref())?;
        if let Some(properties) = asked.properties.as_deref().filter(|store| !store.is_empty()) {
            PropertyStores { cluster: &self.cluster }.check(store, properties).await?;
        }
        let altered = define(&*self.cluster.metadata, store, caller, |definition| alter(definition, asked));
        let WrittenChange { before, document, revision, effects } = altered.await?;
        self.cluster.wait_until_visible(revision).await;
        let reply = reply(&document, 0);
        self.cleaner.clean_dropped(before, document, &effects).await;
        Ok(reply)
    }

    /// Cancels a push. Only the router that runs it knows a push of a graph that does not exist yet.
    async fn cancel(
        &self,
        store: &str,
        caller: ChangeCaller<'_>,
        push: Option<PushId>,
    ) -> Result<v1::StoreReply, ChangeError> {
        match self.change_once(store, caller, Command::Cancel { push: push.clone() }).await {
            Err(ChangeError::Unknown) if push.is_some_and(|push| self.pushes.active.cancel(store, &push)) => {
                Ok(v1::StoreReply::default())
            }
            done => done,
        }
    }

    async fn change_once(
        &self,
        store: &str,
        caller: ChangeCaller<'_>,
        command: Command,
    ) -> Result<v1::StoreReply, ChangeError> {
        FailPoint::ChangeAsked.reach();
        let started = Instant::now();
        let changed = change(&*self.cluster.metadata, store, caller, &[command]).await?;
        FailPoint::ChangeWritten.reach();
        let took = started.elapsed();
        let WrittenChange { before, document, effects, revision } = changed;
        let (was, after) = (before.current(), document.current());
        let mut reply = reply(&document, was.map_or(0, |current| current.version));
        if was.map(|current| current.version) != after.map(|current| current.version) {
            reply.flip_us = flipped(&document, took);
            reply.routers = self.fence.wait_until_served(revision).await;
        } else {
            self.cluster.wait_until_visible(revision).await;
        }
        self.cleaner.clean_dropped(before, document, &effects).await;
        Ok(reply)
    }

    async fn list(&self) -> Result<v1::StoreReply, ChangeError> {
        let mut documents = self.cluster.stores().await?;
        documents.iter_mut().for_each(|document| document.history.clear());
        let records = documents.iter().map(|document| document.encode().into()).collect();
        Ok(v1::StoreReply { records, ..Default::default() })
    }
}

fn reply(document: &StoreDocument, before: u64) -> v1::StoreReply {
    v1::StoreReply { records: vec![document.encode().into()], before, ..Default::default() }
}
