//! Commands that look at stores or change them, except pushes. Each change is one write.

use super::{
    Stores,
    definition::{alter, check_retain},
    fence::flipped,
};
use kith_cluster::FailPoint;
use kith_cluster::metadata::{
    keys,
    records::{Asker, ChangeError, Changed, bounds, change, define, read, unknown_command},
};
use kith_types::StoreVersion;
use kith_versions::{Command, Effect, PushId, Trust};
use kith_wire::{
    documents::{Document, StoreDocument},
    v1::{self, store_request::Command as Asked},
};
use std::time::Instant;
use tonic::Status;

impl Stores {
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
        let cluster = self.cluster();
        let asker = Asker { who: &who, standing, cluster: &cluster };
        let done = self.try_command(&store, asker, command).await;
        done.map_err(|error| error.to_status(&store))
    }

    async fn try_command(
        &self,
        store: &str,
        asker: Asker<'_>,
        command: Asked,
    ) -> Result<v1::StoreReply, ChangeError> {
        let command = match command {
            Asked::List(_) => return self.list().await,
            Asked::Describe(_) => {
                let known = read(&*self.metadata, store).await?.ok_or(ChangeError::Unknown)?;
                return Ok(reply(&known.document, 0));
            }
            Asked::Create(create) => {
                let document = self.create(store, &create.definition, asker).await?;
                return Ok(reply(&document, 0));
            }
            Asked::Drop(drop) => {
                self.drop_store(store, drop.graph, asker).await?;
                return Ok(v1::StoreReply::default());
            }
            Asked::Alter(asked) => return self.alter(store, asker, &asked).await,
            Asked::Cancel(cancel) => {
                let push = (!cancel.push.is_empty()).then(|| bounds::push_id(&cancel.push)).transpose()?;
                return self.cancel(store, asker, push).await;
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
        self.change_once(store, asker, command).await
    }

    /// Changes the definition of a store.
    async fn alter(
        &self,
        store: &str,
        asker: Asker<'_>,
        asked: &v1::AlterStore,
    ) -> Result<v1::StoreReply, ChangeError> {
        check_retain(asked.retain.unwrap_or_default())?;
        bounds::check_owner(asked.owner.as_deref())?;
        if let Some(properties) = asked.properties.as_deref().filter(|store| !store.is_empty()) {
            self.check_properties(store, properties).await?;
        }
        let altered = define(&*self.metadata, store, asker, |definition| alter(definition, asked));
        let Changed { before, document, revision, effects } = altered.await?;
        self.wait_until_visible(revision).await;
        let reply = reply(&document, 0);
        self.clean_dropped(before, document, &effects).await;
        Ok(reply)
    }

    /// Cancels a push. Only the router that runs it knows a push of a graph that does not exist yet.
    async fn cancel(
        &self,
        store: &str,
        asker: Asker<'_>,
        push: Option<PushId>,
    ) -> Result<v1::StoreReply, ChangeError> {
        match self.change_once(store, asker, Command::Cancel { push: push.clone() }).await {
            Err(ChangeError::Unknown) if push.is_some_and(|push| self.cancel_here(store, &push)) => {
                Ok(v1::StoreReply::default())
            }
            done => done,
        }
    }

    async fn change_once(
        &self,
        store: &str,
        asker: Asker<'_>,
        command: Command,
    ) -> Result<v1::StoreReply, ChangeError> {
        FailPoint::ChangeAsked.reach();
        let started = Instant::now();
        let changed = change(&*self.metadata, store, asker, &[command]).await?;
        FailPoint::ChangeWritten.reach();
        let took = started.elapsed();
        let Changed { before, document, effects, revision } = changed;
        let (was, after) = (before.current(), document.current());
        let mut reply = reply(&document, was.map_or(0, |current| current.version));
        if was.map(|current| current.version) != after.map(|current| current.version) {
            reply.flip_us = flipped(&document, took);
            reply.routers = self.wait_until_served(revision).await;
        } else {
            self.wait_until_visible(revision).await;
        }
        self.clean_dropped(before, document, &effects).await;
        Ok(reply)
    }

    async fn clean_dropped(&self, before: StoreDocument, document: StoreDocument, effects: &[Effect]) {
        if effects.iter().any(|effect| matches!(effect, Effect::Drop { .. })) {
            self.clean(before, document).await;
        }
    }

    /// The records of all stores.
    pub async fn documents(&self) -> Result<Vec<StoreDocument>, ChangeError> {
        let snapshot = self.metadata.read(keys::STORES).await?;
        let documents = snapshot.entries.iter().map(|entry| StoreDocument::decode(&entry.value));
        Ok(documents.collect::<Result<_, _>>()?)
    }

    async fn list(&self) -> Result<v1::StoreReply, ChangeError> {
        let mut documents = self.documents().await?;
        documents.iter_mut().for_each(|document| document.history.clear());
        let records = documents.iter().map(|document| document.encode().into()).collect();
        Ok(v1::StoreReply { records, ..Default::default() })
    }
}

fn reply(document: &StoreDocument, before: u64) -> v1::StoreReply {
    v1::StoreReply { records: vec![document.encode().into()], before, ..Default::default() }
}
