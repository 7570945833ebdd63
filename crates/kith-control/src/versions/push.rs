//! A push from its first write to its last: begin, prepare everywhere, flip, clean.

use super::{Active, Stores, clean, commands::check_name};
use futures::StreamExt;
use kith_metadata::{
    keys,
    records::{
        Asker, ChangeError, Changed, Known, New, bounds, change, change_known, conflict, now, read, state_of,
    },
};
use kith_objects::Objects;
use kith_process::{FailPoint, place};
use kith_types::{ErrorCode, StoreVersion};
use kith_versions::{Command, PushId, Refusal, Trust, version_last_of_dropped};
use kith_wire::{
    documents::{
        ClusterDocument, ComponentDocument, DOCUMENT_FORMAT, DefinitionDocument, Document, DroppedDocument,
        HoldsDocument, StoreDocument,
    },
    v1,
};
use std::{
    collections::btree_map::Entry,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

/// Others may change the store while a push begins; so often is looked again.
const BEGIN_TRIES: u32 = 20;
/// A load of a graph waits so long for another one of the same graph: both are to stand.
const LOAD_WAIT: Duration = Duration::from_secs(600);
/// How often it looks whether the other one has ended.
const LOAD_RETRY: Duration = Duration::from_millis(200);
/// A watch that ended is opened again after this time.
const WATCH_RETRY: Duration = Duration::from_secs(1);

/// Where progress goes; whoever listens may go away.
pub(crate) type Progress = mpsc::Sender<Result<v1::PublishProgress, Status>>;

/// What is to be served.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    pub store: String,
    /// Names it, however often it is asked for.
    pub push: PushId,
    pub who: String,
    /// What is known of them.
    pub standing: Trust,
    /// Where they asked from, for the audit log.
    pub peer: Option<SocketAddr>,
    /// They lie in the object store.
    pub components: Vec<ComponentDocument>,
    pub version: Option<StoreVersion>,
    /// How many nodes may be left out.
    pub missing_max: u32,
    /// Pass the guards whatever they say.
    pub force: bool,
    /// Nodes copy the version from each other where they can: one copy comes from the object store.
    pub from_peers: bool,
    /// How long nodes that are away are waited for.
    pub node_wait: Duration,
    pub size: Size,
}

impl Push {
    fn asker<'a>(&'a self, cluster: &'a ClusterDocument) -> Asker<'a> {
        Asker { who: &self.who, standing: self.standing, cluster }
    }
}

/// How the size of a version is known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    /// Told by whoever built it.
    Told { records: u64, bytes: u64 },
    /// The sum over a graph's components. Such a push is a load: it makes the graph if it is new, and waits for another load.
    OfGraph,
}

/// A push among the active ones of its router, until dropped.
struct Entered<'a> {
    stores: &'a Stores,
    push: &'a PushId,
    /// Cancelled with the push where no record could say so: its graph is yet to be made.
    cancelled: CancellationToken,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.stores.active().remove(self.push);
    }
}

/// What a push made.
#[derive(Clone, Debug)]
pub struct Served {
    /// What the store serves.
    pub version: StoreVersion,
    /// Microseconds of the one write that made it so; `None`: an earlier call made it.
    pub flip_us: Option<u64>,
    /// Other routers, and whether they serve it.
    pub routers: Vec<v1::FollowedRouter>,
}

/// Counts the one write that changed what a store serves, and tells it in the log; its microseconds.
pub(super) fn flipped(store: &StoreDocument, took: Duration) -> u64 {
    metrics::histogram!("kith_router_flip_seconds").record(took.as_secs_f64());
    let version = store.current().map_or(0, |current| current.version);
    let flip_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    tracing::info!(store = store.name, version, flip_us, "a version serves");
    flip_us
}

impl Stores {
    /// Makes `push` what its store serves. The same push asked for again after it ended is answered with what it made.
    ///
    /// # Errors
    /// As the caller is to be told. Unless the metadata store went away, what served before serves on.
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

    /// Returns once somebody else has ended a push that has begun: why.
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
            // A record that cannot be read is an error of whoever writes it next.
            let record = snapshot.get(&key).and_then(|entry| StoreDocument::decode(&entry.value).ok());
            match record.as_ref().map(state_of) {
                Some(Ok(state)) if !state.runs(&push.push) => return state.not_running(&push.push).into(),
                None if snapshot.get(&key).is_none() => return ChangeError::Unknown,
                _ => {}
            }
        }
    }

    /// Has a push of a store that no record knows of end, if this router runs it. Whether it does.
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
            let known = match (read(&*self.metadata, &push.store).await?, push.size) {
                (Some(known), _) => known,
                (None, Size::OfGraph) => self.new_graph(&push.store).await?,
                (None, Size::Told { .. }) => return Err(ChangeError::Unknown),
            };
            bounds::check_components(&push.components)?;
            self.check_folders(&known.document, push)?;
            let components = components_of(&known.document, push)?;
            let commands = beginning(push, &components, self.coordinator.name());
            let (asker, new) = (push.asker(&cluster), New { components: &components, ..New::default() });
            match change_known(&*self.metadata, &known, asker, &commands, new).await {
                Ok(Some(changed)) => return Ok(changed),
                Ok(None) => tries += 1,
                Err(ChangeError::Refused(refusal @ Refusal::PushRunning { .. })) => {
                    if self.take_back_if_dead(&known.document).await? {
                        continue;
                    }
                    let waits = matches!(push.size, Size::OfGraph) && !progress.is_closed();
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

    /// A graph that is loaded for the first time: written with its first push.
    async fn new_graph(&self, name: &str) -> Result<Known, ChangeError> {
        let definition = DefinitionDocument::new(HoldsDocument::Graph);
        Ok(Known { document: self.new_store(name, definition).await?, revision: 0 })
    }

    /// The record of a new store, above all numbers that a dropped one of its name used.
    pub(super) async fn new_store(
        &self,
        name: &str,
        definition: DefinitionDocument,
    ) -> Result<StoreDocument, ChangeError> {
        let key = keys::dropped(name);
        let snapshot = self.metadata.read(&key).await?;
        let dropped = snapshot.get(&key).map(|entry| DroppedDocument::decode(&entry.value)).transpose()?;
        Ok(StoreDocument {
            format: DOCUMENT_FORMAT,
            name: name.to_owned(),
            definition,
            version_last: dropped
                .map_or(0, |dropped| version_last_of_dropped(StoreVersion(dropped.version_last), now()).0),
            versions: Vec::new(),
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: Vec::new(),
        })
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
                // Else the metadata store went away: it may have taken the flip. If it has not, the push is taken back.
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

    /// Removes built files that no version needs.
    pub(super) async fn clean(&self, before: StoreDocument, store: StoreDocument) {
        let orphaned = self.uploads.orphaned();
        self.with_objects(move |objects| clean::remove_unnamed(objects, &before, &store, orphaned)).await;
    }

    /// Does something to the object store, if it is this cluster's, on a thread that may wait. What fails is told in the log, and
    /// done again by whoever comes next.
    pub(super) async fn with_objects(&self, work: impl FnOnce(&Objects) + Send + 'static) {
        let ClusterDocument { object_store: location, cluster_id, .. } = self.cluster();
        let done = tokio::task::spawn_blocking(move || match place::objects(&location) {
            Ok(objects) => match objects.claim(&cluster_id) {
                Ok(()) => work(&objects),
                Err(error) => tracing::error!(%error, location, "nothing is removed from the object store"),
            },
            Err(error) => tracing::warn!(%error, location, "the object store cannot be cleaned up"),
        });
        if let Err(error) = done.await {
            tracing::error!(%error, "a clean-up ended unexpectedly");
        }
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
            // The care-taker does it once it can.
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

/// How a push ended, for those who count. One of no store is not counted: anybody can think of names.
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

fn beginning(push: &Push, components: &[ComponentDocument], coordinator: &str) -> [Command; 2] {
    let (records, bytes) = match push.size {
        Size::Told { records, bytes } => (records, bytes),
        Size::OfGraph => {
            let sum = |of: fn(&ComponentDocument) -> u64| components.iter().map(of).sum();
            (sum(|component| component.edges), sum(|component| component.bytes))
        }
    };
    let id = || push.push.clone();
    let (version, missing_max) = (push.version, push.missing_max);
    [
        Command::Begin { push: id(), coordinator: coordinator.to_owned(), version, missing_max },
        Command::Offer { push: id(), records, bytes, force: push.force },
    ]
}

/// What the new version is made of: of a graph also what the load leaves as it is.
fn components_of(store: &StoreDocument, push: &Push) -> Result<Vec<ComponentDocument>, Status> {
    let is_graph = store.definition.holds == HoldsDocument::Graph;
    match push.size {
        Size::OfGraph if !is_graph => {
            let message = format!("store {:?} holds values, not a graph", store.name);
            let help = "load the graph under another name, or push to the store";
            Err(kith_wire::status(ErrorCode::NotAGraph, message, help))
        }
        _ if is_graph => merged(store, &push.components),
        _ => Ok(push.components.clone()),
    }
}

fn merged(store: &StoreDocument, loaded: &[ComponentDocument]) -> Result<Vec<ComponentDocument>, Status> {
    let mut components = store.served().components;
    for component in loaded {
        match components.iter_mut().find(|known| known.name == component.name) {
            Some(known) if known.role != component.role => {
                let message = format!(
                    "{:?} of graph {:?} is {}, the load makes it {}",
                    component.name, store.name, known.role, component.role
                );
                let help = "load it under another name, or drop the graph first";
                return Err(kith_wire::status(ErrorCode::RoleChanged, message, help));
            }
            Some(known) => *known = component.clone(),
            None => components.push(component.clone()),
        }
    }
    Ok(components)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::documents::VersionDocument;

    fn component(name: &str, role: &str, version: u64) -> ComponentDocument {
        ComponentDocument {
            name: name.into(),
            role: role.into(),
            version,
            manifest_hash: String::new(),
            columns: vec![],
            members: 0,
            edges: 0,
            bytes: 0,
            loaded_at: 0,
            schema: None,
            folder: None,
            url: None,
        }
    }

    fn graph(components: Vec<ComponentDocument>) -> StoreDocument {
        let version = VersionDocument {
            version: 9,
            state: "current".into(),
            components,
            records: 0,
            bytes: 0,
            pushed_at: 0,
            held: false,
            excluded: vec![],
        };
        StoreDocument {
            format: DOCUMENT_FORMAT,
            name: "g".into(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 9,
            versions: vec![version],
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: vec![],
        }
    }

    #[test]
    fn a_load_replaces_its_components_and_leaves_the_others() {
        let graph = graph(vec![component("connection", "undirected", 1), component("school", "entity", 1)]);
        let loaded = [component("connection", "undirected", 2), component("follows", "directed", 2)];
        let merged = merged(&graph, &loaded).unwrap();
        let versions: Vec<(&str, u64)> = merged.iter().map(|it| (it.name.as_str(), it.version)).collect();
        assert_eq!(versions, [("connection", 2), ("school", 1), ("follows", 2)]);
    }

    #[test]
    fn a_component_cannot_change_its_role() {
        let graph = graph(vec![component("follows", "directed", 1)]);
        let error = merged(&graph, &[component("follows", "undirected", 2)]).unwrap_err();
        assert_eq!(kith_wire::code_of(&error), ErrorCode::RoleChanged);
    }
}
