//! The data that moves with a partition: the bytes of all kept versions of every store, from their manifests.

use super::{Dead, nodes::addr_of};
use kith_cluster::PeerObjects;
use kith_engine::{FileKind, Manifest, ObjectError, Source, read_manifest};
use kith_files::objects::Objects;
use kith_net::security::Dialer;
use kith_routing::rebalance::StoreSizes;
use kith_types::{ErrorCode, NodeId};
use kith_wire::documents::{ComponentDocument, ServedDocument, TopologyDocument};
use std::collections::{BTreeMap, BTreeSet};
use tonic::Status;

/// Reads the sizes of stores, through connections to nodes where the object store does not have a manifest.
pub(super) struct SizeReader<'a> {
    pub dialer: &'a Dialer,
}

impl SizeReader<'_> {
    /// Returns the stores with their sizes. Manifests are read from the object store, or from any live node that has them.
    pub async fn sizes(&self, topology: &TopologyDocument, dead: &Dead) -> Result<Vec<StoreSizes>, Status> {
        let mut stores: BTreeMap<&str, StoreSizes> = BTreeMap::new();
        // Versions of a graph share components, so count each component once.
        let mut counted: BTreeSet<(&str, String, u64)> = BTreeSet::new();
        for version in kith_topology::wanted(topology) {
            let served = topology.stores.iter().find(|store| store.name == version.name);
            let Some(name) = served.map(|store| store.name.as_str()) else { continue };
            let sizes = stores.entry(name).or_insert_with(|| {
                let bytes = vec![0; topology.cluster.partitions as usize];
                let (name, definition) = (name.to_owned(), &version.definition);
                let (replication, required_reads) = (definition.replication, definition.required_reads);
                StoreSizes { name, replication, required_reads, bytes, excluded: Vec::new() }
            });
            sizes.excluded.extend(version.excluded.iter().copied().map(NodeId));
            for component in &version.components {
                if counted.insert((name, component.name.clone(), component.version)) {
                    let manifest = self.manifest(topology, dead, &version, component).await?;
                    add(&mut sizes.bytes, &manifest);
                }
            }
        }
        Ok(stores.into_values().collect())
    }

    async fn manifest(
        &self,
        topology: &TopologyDocument,
        dead: &Dead,
        store: &ServedDocument,
        component: &ComponentDocument,
    ) -> Result<Manifest, Status> {
        let sources = self.sources_of(topology, dead, store, component)?;
        let hash = Some(component.manifest_hash.clone()).filter(|hash| !hash.is_empty());
        let read = tokio::task::spawn_blocking(move || {
            let mut last = None;
            for source in &sources {
                match read_manifest(&**source, hash.as_deref()) {
                    Ok(manifest) => return Ok(manifest),
                    Err(error) => last = Some(error.to_string()),
                }
            }
            Err(last.unwrap_or_default())
        });
        let read = read.await.map_err(|error| Status::internal(error.to_string()))?;
        read.map_err(|detail| {
            let (store, name, version) = (&store.name, &component.name, component.version);
            let message =
                format!("the manifest of {store}/{name} version {version} cannot be read: {detail}");
            let help = "start the nodes that hold it (see `kith cluster status`)";
            kith_wire::status(ErrorCode::ManifestUnreadable, message, help)
        })
    }

    /// Returns the sources from which a component's manifest can be read: the object store and, as a fallback, the nodes that hold
    /// it.
    fn sources_of(
        &self,
        topology: &TopologyDocument,
        dead: &Dead,
        store: &ServedDocument,
        component: &ComponentDocument,
    ) -> Result<Vec<Box<dyn Source>>, Status> {
        let (name, version) = (&component.name, component.version);
        let built = Objects::named(&topology.cluster.object_store).and_then(|objects| {
            objects.component(&store.name, name, &component.folder(), component.url.as_deref())
        });
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        if let Ok(built) = built {
            sources.push(Box::new(built));
        }
        let owners: BTreeSet<u32> = topology
            .cluster
            .groups
            .iter()
            .filter(|group| group.is_filled())
            .flat_map(|group| group.owners.clone())
            .collect();
        for node in owners.into_iter().map(NodeId).filter(|node| !dead.contains(node)) {
            if let Some(addr) = addr_of(topology, node) {
                let peer = PeerObjects::new(self.dialer, &addr, &store.name, name, version)?;
                sources.push(Box::new(PeerManifest(peer)));
            }
        }
        Ok(sources)
    }
}

/// A component version on a node, of which only the manifest is read.
struct PeerManifest(PeerObjects);

impl Source for PeerManifest {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        match self.0.read(object, offset, into) {
            Ok(Some(count)) => Ok(count),
            Ok(None) => Err(ObjectError::Missing { object: object.to_owned() }),
            Err(status) => Err(ObjectError::Failed { object: object.to_owned(), source: status.into() }),
        }
    }
}

fn add(bytes: &mut [u64], manifest: &Manifest) {
    for file in &manifest.files {
        let Some(id) = file.id().filter(|id| id.kind != FileKind::Dictionary) else { continue };
        if let Some(sum) = bytes.get_mut(id.partition.index()) {
            *sum += file.bytes;
        }
    }
}
