//! Looking at stores and changing them, besides pushes: each change is one write.

use super::{Stores, clean, push::flipped};
use kith_metadata::{
    Committed, Condition, Write, keys,
    records::{
        Asker, ChangeError, Changed, Known, bounds, change, conflict, define, policy_of, read,
        unknown_command,
    },
};
use kith_process::FailPoint;
use kith_schema::Schema;
use kith_types::{ErrorCode, InvalidName, StoreVersion, check_store_name};
use kith_versions::{Command, Effect, PushId, Refusal, Trust};
use kith_wire::{
    documents::{
        DOCUMENT_FORMAT, DefinitionDocument, Document, DroppedDocument, HoldsDocument, StoreDocument,
    },
    v1::{self, store_request::Command as Asked},
};
use std::{num::NonZeroU64, time::Instant};
use tonic::Status;

/// Most versions that may be kept: each is a copy of the store on every node.
const RETAIN_MAX: u32 = 100;

impl Stores {
    /// Does what a request asks.
    ///
    /// # Errors
    /// As the caller is to be told; nothing is changed then.
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
            Asked::Create(create) => return self.create(store, &create.definition).await,
            Asked::Drop(_) => {
                self.drop_store(store, asker, |_| true).await?;
                return Ok(v1::StoreReply::default());
            }
            Asked::Alter(alter) => {
                check_retain(alter.retain.unwrap_or_default())?;
                bounds::check_owner(alter.owner.as_deref())?;
                let altered = define(&*self.metadata, store, asker, |definition| {
                    alter_definition(definition, &alter);
                });
                let Changed { before, document, revision, effects } = altered.await?;
                self.wait_until_visible(revision).await;
                let reply = reply(&document, 0);
                self.clean_dropped(before, document, &effects).await;
                return Ok(reply);
            }
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

    /// Ends a push. One of a graph that is yet to be made is known to the router that runs it alone.
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

    async fn create(&self, store: &str, definition: &[u8]) -> Result<v1::StoreReply, ChangeError> {
        check_name(store)?;
        bounds::check_definition_bytes(definition)?;
        let definition: DefinitionDocument =
            serde_json::from_slice(definition).map_err(|error| unreadable_definition(&error))?;
        check_definition(&definition, self.topology.borrow().cluster.groups.len())?;
        let document = self.new_store(store, definition).await?;
        let key = keys::store(store);
        let only_if_new = Condition { key: key.clone(), revision: 0 };
        let write = Write::put(key, document.encode());
        match self.metadata.commit(vec![only_if_new], vec![write]).await? {
            Committed::At(revision) => {
                self.wait_until_visible(revision).await;
                Ok(reply(&document, 0))
            }
            Committed::Conflict => {
                let message = format!("there is a store {store:?} already");
                let help = "choose another name, or drop it first";
                Err(kith_wire::status(ErrorCode::StoreExists, message, help).into())
            }
        }
    }

    /// Drops a store, unless it is somebody else's, is pushed to or is not what `may` allows; the revision.
    pub(super) async fn drop_store(
        &self,
        store: &str,
        asker: Asker<'_>,
        may: impl Fn(&StoreDocument) -> bool,
    ) -> Result<u64, ChangeError> {
        let known = read(&*self.metadata, store).await?.ok_or(ChangeError::Unknown)?;
        if !may(&known.document) {
            return Err(ChangeError::Unknown);
        }
        let is_keeper = |known: &Known| {
            policy_of(&known.document.definition).guards.check_keeper(asker.who, asker.standing)
        };
        is_keeper(&known)?;
        if let Some(frozen) = &known.document.frozen {
            return Err(Refusal::StoreFrozen { who: frozen.who.clone() }.into());
        }
        if let Some(running) = &known.document.running
            && !self.take_back_if_dead(&known.document).await?
        {
            let version = StoreVersion(running.version);
            let (push, who) = (running.push.as_str().into(), running.who.clone());
            return Err(Refusal::PushRunning { push, version, who }.into());
        }
        let known = read(&*self.metadata, store).await?.ok_or(ChangeError::Unknown)?;
        is_keeper(&known)?;
        let key = keys::store(store);
        let dropped = DroppedDocument { format: DOCUMENT_FORMAT, version_last: known.document.version_last };
        let condition = Condition { key: key.clone(), revision: known.revision };
        let writes = vec![Write::delete(key), Write::put(keys::dropped(store), dropped.encode())];
        match self.metadata.commit(vec![condition], writes).await? {
            Committed::At(revision) => {
                self.wait_until_visible(revision).await;
                let (record, orphaned) = (known.document, self.uploads.orphaned());
                self.with_objects(move |objects| clean::remove_dropped(objects, &record, orphaned)).await;
                Ok(revision)
            }
            Committed::Conflict => Err(conflict(store).into()),
        }
    }

    /// Drops a graph; the revision.
    ///
    /// # Errors
    /// As the caller is to be told.
    pub async fn drop_graph(&self, graph: &str, who: &str, standing: Trust) -> Result<u64, Status> {
        let cluster = self.cluster();
        let asker = Asker { who, standing, cluster: &cluster };
        let dropped =
            self.drop_store(graph, asker, |store| store.definition.holds == HoldsDocument::Graph).await;
        dropped.map_err(|error| match error {
            ChangeError::Unknown => {
                let known = self.topology.borrow().graphs().map(|graph| graph.name.clone()).collect();
                kith_api::QueryError::UnknownGraph { name: graph.to_owned(), known }.to_status()
            }
            other => other.to_status(graph),
        })
    }
}

fn alter_definition(definition: &mut DefinitionDocument, alter: &v1::AlterStore) {
    if let Some(keys) = alter.read_quota_keys {
        definition.read_quota_keys = NonZeroU64::new(keys);
    }
    if let Some(bytes) = alter.read_quota_bytes {
        definition.read_quota_bytes = NonZeroU64::new(bytes);
    }
    if let Some(retain) = alter.retain {
        definition.retain = retain;
    }
    if let Some(bytes) = alter.quota_bytes {
        definition.quota_bytes = (0 < bytes).then_some(bytes);
    }
    if let Some(records) = alter.records_min {
        definition.records_min = records;
    }
    if let Some(percent) = alter.drop_percent_max {
        definition.drop_percent_max = u8::try_from(percent).ok().filter(|percent| *percent <= 100);
    }
    if let Some(owner) = &alter.owner {
        definition.owner = (!owner.is_empty()).then(|| owner.clone());
    }
}

fn reply(document: &StoreDocument, before: u64) -> v1::StoreReply {
    v1::StoreReply { records: vec![document.encode().into()], before, ..Default::default() }
}

fn unreadable_definition(error: &serde_json::Error) -> Status {
    let message = format!("the definition of the store cannot be read: {error}");
    let help = "no store was made; a definition is a JSON object with at least `holds`, `retain` and `required_reads`";
    kith_wire::status(ErrorCode::BadRequest, message, help)
}

/// What a caller is told whose name is none.
fn invalid_name(error: &InvalidName) -> Status {
    let help = format!("a name is {}", error.rule);
    let message = format!("a {} cannot be called {:?}", error.what, error.name);
    kith_wire::status(ErrorCode::InvalidName, message, help)
}

/// Refuses names that cannot be folders.
pub(super) fn check_name(name: &str) -> Result<(), Status> {
    check_store_name(name).map_err(|error| invalid_name(&error))
}

fn check_retain(retain: u32) -> Result<(), Status> {
    if retain <= RETAIN_MAX {
        return Ok(());
    }
    let (message, help) = (format!("{retain} versions to keep"), "keep at most 100");
    Err(kith_wire::status(ErrorCode::BadDefinition, message, help))
}

fn check_definition(definition: &DefinitionDocument, groups: usize) -> Result<(), Status> {
    let bad = |message: String, help: &str| Err(kith_wire::status(ErrorCode::BadDefinition, message, help));
    if let HoldsDocument::Values { key, value, .. } = &definition.holds {
        for (what, got, known) in [
            ("key", key, &["id", "string", "bytes"][..]),
            ("value", value, &["text", "bytes", "json", "record"][..]),
        ] {
            if !known.contains(&got.as_str()) {
                return bad(format!("a {what} cannot be {got:?}"), &format!("one of {}", known.join(", ")));
            }
        }
    }
    if let Some(schema) = &definition.schema {
        let is_of_records =
            matches!(&definition.holds, HoldsDocument::Values { value, .. } if value == "record");
        if !is_of_records {
            return bad(
                "a schema requires `--value record`".to_owned(),
                "make a store of records, or leave it out",
            );
        }
        if let Err(error) = schema.parse::<Schema>() {
            return bad(
                format!("its schema cannot be read: {error}"),
                "see docs/formats/schema.md for the language",
            );
        }
    }
    bounds::check_texts(definition)?;
    let copies = definition.replication.unwrap_or(groups as u32);
    if copies == 0 || (groups as u32) < copies {
        return bad(format!("{copies} copies, and the cluster has {groups} groups"), "ask for at most that");
    }
    if definition.required_reads == 0 || copies < definition.required_reads {
        let message = format!("{} answers that must agree, of {copies} copies", definition.required_reads);
        return bad(message, "ask for 1 up to the number of copies");
    }
    check_retain(definition.retain)?;
    if definition.drop_percent_max.is_some_and(|percent| 100 < percent) {
        return bad("a drop of more than 100 %".to_owned(), "give 0 to 100");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_folders_are_refused() {
        for good in ["v", "kith-village", "0", "a.b_c-d", &"x".repeat(63)] {
            check_name(good).unwrap();
        }
        for bad in ["", "V", ".hidden", "..", "../x", "a/b", "é", &"x".repeat(64)] {
            assert_eq!(kith_wire::code_of(&check_name(bad).unwrap_err()), ErrorCode::InvalidName, "{bad}");
        }
    }

    #[test]
    fn definitions_that_cannot_be_kept_are_refused() {
        let values = HoldsDocument::Values { key: "id".into(), value: "text".into(), key_field: None };
        let good = DefinitionDocument::new(values);
        check_definition(&good, 2).unwrap();
        const SCHEMA: &str = r#"{"fields":[{"name":"score","type":"f64"}]}"#;
        let holds = |key: &str, value: &str| {
            let holds = HoldsDocument::Values { key: key.into(), value: value.into(), key_field: None };
            DefinitionDocument { holds, ..good.clone() }
        };
        let records = DefinitionDocument { schema: Some(SCHEMA.to_owned()), ..holds("id", "record") };
        check_definition(&records, 2).unwrap();
        for bad in [
            holds("uuid", "text"),
            holds("id", "xml"),
            DefinitionDocument { replication: Some(3), ..good.clone() },
            DefinitionDocument { replication: Some(0), ..good.clone() },
            DefinitionDocument { required_reads: 0, ..good.clone() },
            DefinitionDocument { replication: Some(1), required_reads: 2, ..good.clone() },
            DefinitionDocument { retain: 101, ..good.clone() },
            DefinitionDocument { drop_percent_max: Some(101), ..good.clone() },
            DefinitionDocument { schema: Some(SCHEMA.to_owned()), ..good.clone() },
            DefinitionDocument { schema: Some("{".to_owned()), ..holds("id", "record") },
        ] {
            assert!(check_definition(&bad, 2).is_err(), "{bad:?}");
        }
    }
}
