//! Fetches a component, from peers that have it or from where it was built, and opens it.

use super::{
    PrepareError, PrepareOptions, Progress, Replicas, Supplier, cannot_open,
    component::Component,
    folders::ComponentFolders,
    origins::{Origins, REQUESTS_AT_A_TIME, WantedFiles},
};
use crate::{
    repair::heal::{fetch_anew, heal},
    versions::{peer::PeerSource, throttle::ThrottledSource},
};
use kith_cluster::FailPoint;
use kith_engine::{
    Damage, FetchError, FetchOptions, FetchProgress, OpenError, Source, SplicedSource, read_manifest,
};
use kith_net::security::Dialer;
use kith_types::PartitionId;
use kith_wire::documents::{ComponentDocument, ServedDocument};
use std::{
    collections::BTreeSet,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;

/// A callback for the progress of a fetch.
type OnFetch<'a> = dyn FnMut(&FetchProgress) -> ControlFlow<()> + 'a;

/// Fetches components into their folders.
pub struct Fetcher {
    pub folders: Arc<ComponentFolders>,
    pub origins: Arc<Origins>,
}

impl Fetcher {
    /// Fetches what is missing, repairs what is damaged, and opens the component.
    pub fn pull(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        partitions: &[PartitionId],
        options: &PrepareOptions,
        progress: Progress<'_>,
    ) -> Result<Component, PrepareError> {
        // An intact component is served without its source, which may be unreachable when a node starts.
        if let Ok(whole) = self.folders.try_open(store, component, partitions) {
            return Ok(whole);
        }
        self.fetch(store, component, partitions, options, progress)?;
        // The fetch did not read the files that were here before, so they may be damaged inside.
        let opened = self.folders.try_open(store, component, partitions);
        opened.or_else(|error| match error {
            OpenError::Damaged(_) => {
                self.make_whole(store, component, partitions, None, &options.replicas)?;
                self.folders.open(store, component, partitions)
            }
            error => Err(cannot_open(component, error)),
        })
    }

    /// Fetches what is missing of some partitions, without opening anything.
    pub fn fetch(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        partitions: &[PartitionId],
        options: &PrepareOptions,
        progress: Progress<'_>,
    ) -> Result<(), PrepareError> {
        self.folders.check_home().map_err(PrepareError::Directory)?;
        let target = self.folders.path_of(&store.name, component);
        let objects = self.origins.object_store_of(&store.name, component)?;
        let fetch_options = FetchOptions {
            threads: REQUESTS_AT_A_TIME,
            manifest_hash: Some(component.manifest_hash.clone()),
            quota_bytes: options.bytes_max,
            held: other_versions(&target),
        };
        let mut reused = 0;
        let mut on_fetch = |state: &FetchProgress| {
            progress(&component.name, state.bytes_done, state.bytes);
            // If a fetch from peers fails, another fetch follows, which counts from zero.
            metrics::counter!("kith_node_reused_bytes_total")
                .increment(state.bytes_reused.saturating_sub(reused));
            reused = state.bytes_reused;
            FailPoint::NodeFetching.reach();
            if options.given_up.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let peers = peers(&self.origins.dialer, store, component, &options.suppliers);
        let throttle = |source| self.origins.throttled(source).until(&options.given_up);
        let peers: Vec<_> =
            peers.iter().map(|(peer, partitions)| (throttle(peer as &dyn Source), *partitions)).collect();
        let rest = throttle(&objects);
        let fetched = match copy(&target, &peers, &rest, partitions, &fetch_options, &mut on_fetch) {
            Some(copied) => copied.map_err(|source| cannot_fetch(component, source)),
            None => {
                let (objects, replicas, given_up) = (&objects, &options.replicas, &options.given_up);
                let wanted = WantedFiles { store, component, partitions, objects, replicas, given_up };
                self.origins.take_from_any(&wanted, &mut |source, threads| {
                    let options = FetchOptions { threads, ..fetch_options.clone() };
                    fetch_anew(&target, source, partitions, options, &mut on_fetch)
                })
            }
        };
        self.folders.forget_sources();
        fetched?;
        FailPoint::NodeFetched.reach();
        Ok(())
    }

    /// Fetches the damaged files of a component, or all of it if the folder cannot be the version, from any origin that has
    /// them.
    pub fn make_whole(
        &self,
        store: &ServedDocument,
        component: &ComponentDocument,
        partitions: &[PartitionId],
        damages: Option<&[Damage]>,
        replicas: &Replicas,
    ) -> Result<(), PrepareError> {
        self.folders.check_home().map_err(PrepareError::Directory)?;
        let target = self.folders.path_of(&store.name, component);
        let objects = self.origins.object_store_of(&store.name, component)?;
        let given_up = &CancellationToken::new();
        let wanted = WantedFiles { store, component, partitions, objects: &objects, replicas, given_up };
        let healed = heal(&target, component, partitions, damages, &mut |take| {
            self.origins.take_from_any(&wanted, take)
        });
        self.folders.forget_sources();
        healed
    }
}

/// Returns the folders of other versions beside a version's folder. Files that they share need not be fetched (Voldemort §8:
/// incremental load).
fn other_versions(target: &Path) -> Vec<PathBuf> {
    let beside = target.parent().and_then(|parent| fs::read_dir(parent).ok());
    let folders = beside.into_iter().flatten().flatten().map(|entry| entry.path());
    folders.filter(|folder| folder != target).collect()
}

/// Returns the peers with the partitions that they have. A peer with an invalid address is left out.
fn peers<'a>(
    dialer: &Dialer,
    store: &ServedDocument,
    component: &ComponentDocument,
    suppliers: &'a [Supplier],
) -> Vec<(PeerSource, &'a BTreeSet<PartitionId>)> {
    let peers = suppliers.iter().filter_map(|supplier| {
        let (addr, version) = (&supplier.addr, component.version);
        let peer = PeerSource::new(dialer, addr, &store.name, &component.name, version).ok()?;
        Some((peer, &supplier.partitions))
    });
    peers.collect()
}

/// Copies from peers, and from the object store what they turn out not to have. `None` if there is no peer to copy from, or
/// the data of the peers fails its checks. What was copied so far is kept, and verified again before it is used.
fn copy(
    target: &Path,
    peers: &[(ThrottledSource<'_>, &BTreeSet<PartitionId>)],
    rest: &dyn Source,
    partitions: &[PartitionId],
    options: &FetchOptions,
    progress: &mut OnFetch<'_>,
) -> Option<Result<(), FetchError>> {
    let manifest =
        peers.iter().find_map(|(peer, _)| read_manifest(peer, options.manifest_hash.as_deref()).ok())?;
    let sources = peers.iter().map(|(peer, partitions)| (peer as &dyn Source, (*partitions).clone()));
    let wanted = partitions.iter().copied().collect();
    let source = SplicedSource::new(manifest, sources.collect(), rest, wanted);
    let copied = fetch_anew(target, &source, partitions, options.clone(), progress);
    let failed = source.failed().len();
    match copied {
        Err(error @ (FetchError::Damaged(_) | FetchError::Manifest(_) | FetchError::Source(_))) => {
            tracing::warn!(%error, target = %target.display(), "peers cannot supply the component: fetching all of it from the object store");
            None
        }
        ended => {
            if 0 < failed {
                let target = target.display();
                tracing::warn!(failed, %target, "peers failed: the object store supplied the rest");
            }
            Some(ended)
        }
    }
}

fn cannot_fetch(component: &ComponentDocument, source: FetchError) -> PrepareError {
    PrepareError::Fetch { component: component.name.clone(), version: component.version, source }
}
