//! The origins of files: the object store, or else peers, as [`kith_topology::versions::origins`] decides.

use super::PrepareError;
use crate::{
    repair::heal::Take,
    versions::{
        peer::PeerSource,
        throttle::{Throttle, ThrottledSource},
    },
};
use kith_cluster::metadata::records::holders_of;
use kith_engine::{Damage, FetchError, FileId, FileKind, Source, SplicedSource, read_manifest};
use kith_files::objects::Objects;
use kith_net::security::Dialer;
use kith_topology::versions::{BRIEF, Donors, Origin, origins};
use kith_types::{NodeId, PartitionId};
use kith_wire::documents::{ComponentDocument, ServedDocument, TopologyDocument};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// The number of requests to an object store or to peers that are in flight at a time, to hide the latency of each
/// answer. A folder has no such latency.
pub(super) const REQUESTS_AT_A_TIME: usize = 4;

/// The peers that hold a store version, for a node that repairs itself.
#[derive(Clone, Debug, Default)]
pub struct Replicas {
    donors: Donors,
    addrs: BTreeMap<NodeId, String>,
}

impl Replicas {
    /// Returns the peers that the topology names, without `node` itself and without nodes that were left out of the version.
    pub fn of(topology: &TopologyDocument, node: u32, store: &ServedDocument) -> Self {
        let holders = holders_of(&topology.cluster, &store.name, store.definition.replication);
        let mut excluded: BTreeSet<NodeId> = store.excluded.iter().copied().map(NodeId).collect();
        let registered = topology.nodes.iter().filter(|document| !document.addr.is_empty());
        let addrs: BTreeMap<NodeId, String> =
            registered.map(|document| (NodeId(document.node), document.addr.clone())).collect();
        excluded.extend(holders.nodes().into_iter().filter(|node| !addrs.contains_key(node)));
        Self { donors: Donors::new(&holders, NodeId(node), &excluded), addrs }
    }
}

/// The files that are wanted, and the origins that may have them.
pub struct WantedFiles<'a> {
    pub store: &'a ServedDocument,
    pub component: &'a ComponentDocument,
    pub partitions: &'a [PartitionId],
    pub objects: &'a Objects,
    pub replicas: &'a Replicas,
    /// The token that is cancelled when the caller has given up.
    pub given_up: &'a CancellationToken,
}

/// The origins of a node, and the throttles of what it reads from them.
pub struct Origins {
    /// The cluster's object store, in the layout of the folders. Components with a URL are elsewhere.
    pub(super) object_store: Objects,
    /// The throttle of all fetches, copies and repairs, for any store and reason.
    pub fetches: Throttle,
    /// The throttle of reads by peers. It slows them down only if queries suffer.
    pub supplies: Throttle,
    /// Connects to peers.
    pub dialer: Dialer,
    /// The time at which the object store failed to answer; `None` if it has answered since.
    silent_since: Mutex<Option<Instant>>,
}

impl Origins {
    /// Returns origins whose object store is expected to answer.
    pub fn new(object_store: Objects, fetches: Throttle, dialer: Dialer) -> Self {
        let supplies = fetches.beside(None);
        Self { object_store, fetches, supplies, dialer, silent_since: Mutex::default() }
    }

    /// Returns `source` at the rate of fetches.
    pub fn throttled<'a>(&'a self, source: &'a dyn Source) -> ThrottledSource<'a> {
        ThrottledSource::new(source, &self.fetches)
    }

    /// Returns the object store that a component was built in.
    ///
    /// # Errors
    /// [`PrepareError::Place`] if its URL cannot be used.
    pub fn object_store_of(
        &self,
        store: &str,
        component: &ComponentDocument,
    ) -> Result<Objects, PrepareError> {
        let url = component.url.as_deref();
        let folder = self.object_store.component(store, &component.name, &component.folder(), url);
        folder.map_err(|source| PrepareError::Place {
            component: component.name.clone(),
            version: component.version,
            source: Box::new(source),
        })
    }

    /// Runs `take` with one origin after another until one supplies what it needs. Blocks.
    ///
    /// # Errors
    /// The object store's error if no origin could supply it, or the error of this node.
    pub fn take_from_any(&self, wanted: &WantedFiles<'_>, take: &mut Take<'_>) -> Result<(), PrepareError> {
        let (store, component, version) =
            (&wanted.store.name, &wanted.component.name, wanted.component.version);
        let has_peers = !wanted.replicas.donors.peers().is_empty();
        let mut reported = None;
        for origin in origins(self.silent_since().map(|since| since.elapsed()), has_peers) {
            let partitions = wanted.partitions.len();
            tracing::info!(?origin, store, component, version, partitions, "requesting files");
            let taken = match origin {
                Origin::ObjectStoreBriefly => {
                    self.take_from_objects(wanted, &wanted.objects.repeating_for(BRIEF), take)
                }
                Origin::ObjectStore => self.take_from_objects(wanted, wanted.objects, take),
                Origin::Peers => self.take_from_peers(wanted, take),
            };
            let error = match taken {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let ends = self.ends(wanted);
            if !ends {
                tracing::warn!(%error, ?origin, store, component, version, "the files could not be fetched from this origin");
            }
            let is_local = ends || !is_of_origin(&error);
            // The object store's error tells an operator more than the error of a peer.
            if reported.is_none() || *origin == Origin::ObjectStore || is_local {
                reported = Some(error);
            }
            if is_local {
                break;
            }
        }
        let source = reported.unwrap_or(FetchError::Cancelled);
        let (component, version) = (wanted.component.name.clone(), wanted.component.version);
        Err(PrepareError::Fetch { component, version, source })
    }

    fn take_from_objects(
        &self,
        wanted: &WantedFiles<'_>,
        objects: &Objects,
        take: &mut Take<'_>,
    ) -> Result<(), FetchError> {
        let threads = if objects.folder().is_some() { 1 } else { REQUESTS_AT_A_TIME };
        let taken = take(&self.throttled(objects).until(wanted.given_up), threads);
        let failed = matches!(taken, Err(FetchError::Source(_))) && !self.ends(wanted);
        let silent_since = failed.then(Instant::now);
        *self.silent_since.lock() = silent_since;
        taken
    }

    /// Whether a failure says nothing about an origin, because the node is stopping or the caller has given up.
    fn ends(&self, wanted: &WantedFiles<'_>) -> bool {
        wanted.given_up.is_cancelled() || self.fetches.ends()
    }

    /// The time since which the object store has not answered.
    fn silent_since(&self) -> Option<Instant> {
        *self.silent_since.lock()
    }

    /// Fetches from peers. If one supplies damaged bytes, asks others: each further attempt has one peer less, or asks one
    /// for less.
    fn take_from_peers(&self, wanted: &WantedFiles<'_>, take: &mut Take<'_>) -> Result<(), FetchError> {
        let mut donors = wanted.replicas.donors.clone();
        loop {
            let (ended, unfit) = self.take_from_donors(wanted, &donors, take);
            let damage = match ended {
                Err(FetchError::Damaged(damage)) => damage,
                ended => return ended,
            };
            if !donors.unfit(partition_of(&damage), &unfit) {
                return Err(damage.into());
            }
            let (store, component) = (&wanted.store.name, &wanted.component.name);
            tracing::warn!(%damage, store, component, "a peer gave damaged bytes: another one is asked");
        }
    }

    /// Returns the outcome, and the peers that failed meanwhile. What no peer has comes from the object store even in this
    /// case, because each of them may have a part.
    fn take_from_donors(
        &self,
        wanted: &WantedFiles<'_>,
        donors: &Donors,
        take: &mut Take<'_>,
    ) -> (Result<(), FetchError>, BTreeSet<NodeId>) {
        let peers = self.peers(wanted, donors);
        let throttled: Vec<(ThrottledSource<'_>, &BTreeSet<PartitionId>)> = peers
            .iter()
            .map(|(_, peer, partitions)| (self.throttled(peer).until(wanted.given_up), *partitions))
            .collect();
        let hash = Some(wanted.component.manifest_hash.as_str());
        let mut manifest = Err(FetchError::Cancelled);
        for (peer, _) in &throttled {
            manifest = read_manifest(peer, hash);
            if manifest.is_ok() {
                break;
            }
        }
        let manifest = match manifest {
            Ok(manifest) => manifest,
            Err(error) => return (Err(error), BTreeSet::new()),
        };
        let sources = throttled.iter().map(|(peer, partitions)| (peer as &dyn Source, (*partitions).clone()));
        let objects = self.throttled(wanted.objects).until(wanted.given_up);
        let partitions = wanted.partitions.iter().copied().collect();
        let source = SplicedSource::new(manifest, sources.collect(), &objects, partitions);
        let ended = take(&source, REQUESTS_AT_A_TIME);
        (ended, source.failed().into_iter().map(|index| peers[index].0).collect())
    }

    fn peers<'a>(
        &self,
        wanted: &WantedFiles<'_>,
        donors: &'a Donors,
    ) -> Vec<(NodeId, PeerSource, &'a BTreeSet<PartitionId>)> {
        let peers = donors.peers().iter().filter_map(|(node, partitions)| {
            let (addr, component) = (wanted.replicas.addrs.get(node)?, wanted.component);
            let (store, version) = (&wanted.store.name, component.version);
            let peer = PeerSource::new(&self.dialer, addr, store, &component.name, version).ok()?;
            Some((*node, peer, partitions))
        });
        peers.collect()
    }
}

/// Whether an error comes from the origin, so that another origin may succeed, and not from this node.
fn is_of_origin(error: &FetchError) -> bool {
    matches!(error, FetchError::Source(_) | FetchError::Damaged(_) | FetchError::Manifest(_))
}

/// Returns the partition of a damaged file. `None` for a dictionary, which belongs to all partitions.
fn partition_of(damage: &Damage) -> Option<PartitionId> {
    FileId::parse(&damage.file).filter(|id| id.kind != FileKind::Dictionary).map(|id| id.partition)
}
