//! The topology as one document, kept up to date from the metadata store and cached on disk. If the store is lost, changes
//! stop, but reads go on.

use crate::metadata::{MetadataError, MetadataStore, Snapshot, keys};
use crate::{
    data_dir::{DataDirError, write_atomically},
    freshness::Freshness,
    types::{TYPES_FOLDER, TypesReader},
};
use futures::StreamExt;
use kith_wire::documents::{
    ClusterDocument, DOCUMENT_FORMAT, DatabaseDocument, Document, DocumentError, LeadersDocument,
    LiveGraphDocument, NodeDocument, RebalanceDocument, RouterDocument, StoreDocument, TopologyDocument,
    TypesTexts,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The file in the data directory of a node or router with the topology that it saw last.
const COPY_FILE: &str = "topology.json";

/// The pause before types that could not be read are read again.
const TYPES_RETRY: Duration = Duration::from_millis(500);

/// The age of a copy whose age is unknown, because the clock was set back since it was written: such a copy counts as old.
const AGE_UNKNOWN: Duration = Duration::from_secs(86_400);

/// Receives the latest topology; clones receive the same one.
pub type TopologyReceiver = watch::Receiver<Arc<TopologyDocument>>;

/// Waits for at most `wait` until the topology is at least as new as a revision of the metadata, and returns whether it is.
/// A revision that changed only leases never arrives.
pub async fn catch_up(topology: &TopologyReceiver, revision: u64, wait: Duration) -> bool {
    let mut topology = topology.clone();
    let new_enough = topology.wait_for(|topology| revision <= topology.revision);
    matches!(tokio::time::timeout(wait, new_enough).await, Ok(Ok(_)))
}

/// The topology cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The metadata store has no cluster document.
    #[error("the metadata store holds no cluster yet")]
    NoCluster,
    /// A document in the metadata store cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The store cannot be reached, and there is no copy on disk.
    #[error("no topology: neither from the metadata store nor from disk")]
    Unavailable(#[source] MetadataError),
}

/// The topology that a snapshot of all keys describes.
///
/// # Errors
/// If there is no cluster or a document cannot be read.
pub fn document_of(snapshot: &Snapshot) -> Result<TopologyDocument, TopologyError> {
    let cluster = snapshot.get(keys::CLUSTER).ok_or(TopologyError::NoCluster)?;
    let stores = decode_under::<StoreDocument>(snapshot, keys::STORES)?;
    let live = decode_under::<LiveGraphDocument>(snapshot, keys::LIVE_GRAPHS)?;
    Ok(TopologyDocument {
        format: DOCUMENT_FORMAT,
        revision: snapshot.revision,
        cluster: ClusterDocument::decode(&cluster.value)?,
        nodes: decode_under::<NodeDocument>(snapshot, keys::NODES)?,
        routers: decode_under::<RouterDocument>(snapshot, keys::ROUTERS)?,
        stores: stores.iter().map(StoreDocument::served).collect(),
        kept: stores.iter().flat_map(StoreDocument::kept).collect(),
        live: live.into_iter().filter(|graph| !graph.dropping).collect(),
        types: TypesTexts::new(),
        leaders: decode_under::<LeadersDocument>(snapshot, keys::LEADERS)?,
        databases: decode_under::<DatabaseDocument>(snapshot, keys::DATABASES)?,
        rebalance: rebalance_of(snapshot)?,
    })
}

/// The rebalance that nodes may still keep files of: one under way, or one that ended and has not freed everything yet.
fn rebalance_of(snapshot: &Snapshot) -> Result<Option<String>, DocumentError> {
    for key in [keys::REBALANCE, keys::REBALANCE_ENDED] {
        let Some(entry) = snapshot.get(key) else { continue };
        let document = RebalanceDocument::decode(&entry.value)?;
        if key == keys::REBALANCE || !document.reclaims.is_empty() {
            return Ok(Some(document.id));
        }
    }
    Ok(None)
}

/// Finds the address of a process with databases by its id, in the topology as it is at the time of the call.
pub fn database_addresses(topology: TopologyReceiver) -> Arc<dyn Fn(u32) -> Option<String> + Send + Sync> {
    Arc::new(move |database| {
        let topology = topology.borrow();
        let document = topology.databases.iter().find(|document| document.database == database)?;
        Some(document.addr.clone())
    })
}

fn decode_under<D: Document>(snapshot: &Snapshot, prefix: &str) -> Result<Vec<D>, DocumentError> {
    let entries = snapshot.entries.iter().filter(|entry| entry.key.starts_with(prefix));
    entries.map(|entry| D::decode(&entry.value)).collect()
}

/// The copy of the topology in a process's data directory.
pub fn copy_in(data: &Path) -> PathBuf {
    data.join(COPY_FILE)
}

/// Removes the copy from a data directory in which no process updates it any more. A process that started from it would serve
/// an old state.
///
/// # Errors
/// [`DataDirError::Io`].
pub fn forget_copy(data: &Path) -> Result<(), DataDirError> {
    let (copy, types) = (copy_in(data), data.join(TYPES_FOLDER));
    for (removed, path) in [(fs::remove_file(&copy), copy), (fs::remove_dir_all(&types), types)] {
        if let Err(source) = removed
            && source.kind() != io::ErrorKind::NotFound
        {
            return Err(DataDirError::Io { path, source });
        }
    }
    Ok(())
}

/// A topology that is kept up to date.
pub struct FollowedTopology {
    /// The latest topology.
    pub topology: TopologyReceiver,
    /// The greatest possible age of the topology. Until the metadata store has answered, that is the age of the copy on
    /// disk.
    pub freshness: Freshness,
}

/// Follows the metadata store until `stop` is cancelled. Starts from the copy in `cache` if the store cannot be reached, and
/// keeps that copy up to date. The types of live graphs are read too, each of them once.
///
/// # Errors
/// If neither the store nor the copy gives a topology.
pub async fn follow(
    store: Arc<dyn MetadataStore>,
    cache: Option<PathBuf>,
    stop: CancellationToken,
) -> Result<FollowedTopology, TopologyError> {
    let folder = cache.as_ref().map(|path| path.with_file_name(TYPES_FOLDER));
    let types = TypesReader::new(Arc::clone(&store), folder);
    follow_with(store, cache, Some(types), stop).await
}

/// Follows the metadata store as [`follow`] does, for a process that needs no types of live graphs.
///
/// # Errors
/// If neither the store nor the copy gives a topology.
pub async fn follow_without_types(
    store: Arc<dyn MetadataStore>,
    cache: Option<PathBuf>,
    stop: CancellationToken,
) -> Result<FollowedTopology, TopologyError> {
    follow_with(store, cache, None, stop).await
}

async fn follow_with(
    store: Arc<dyn MetadataStore>,
    cache: Option<PathBuf>,
    mut types: Option<TypesReader>,
    stop: CancellationToken,
) -> Result<FollowedTopology, TopologyError> {
    let (mut first, age) = match store.read("").await {
        Ok(snapshot) => (document_of(&snapshot)?, Duration::ZERO),
        Err(error) => match cached(&cache)? {
            Some((document, age)) => {
                tracing::warn!(%error, revision = document.revision, age_s = age.as_secs(), "metadata store is unavailable: serving from the topology on disk");
                (document, age)
            }
            None => return Err(TopologyError::Unavailable(error)),
        },
    };
    let freshness = Freshness::new(age);
    let mut lacks_types = false;
    if age.is_zero() {
        lacks_types = complete(&mut types, &mut first).await;
        save(&cache, types.as_ref(), &first);
    } else if let Some(types) = &mut types {
        types.add_copies_to(&mut first);
    }
    let revision = first.revision;
    let (sender, receiver) = watch::channel(Arc::new(first));
    tokio::spawn(async move {
        let mut snapshots = store.watch("", revision).take_until(Box::pin(stop.cancelled_owned()));
        loop {
            let snapshot = tokio::select! {
                snapshot = snapshots.next() => match snapshot {
                    Some(snapshot) => document_of(&snapshot),
                    None => return,
                },
                () = tokio::time::sleep(TYPES_RETRY), if lacks_types => Ok((**sender.borrow()).clone()),
            };
            let mut document = match snapshot {
                Ok(document) => document,
                Err(error) => {
                    tracing::error!(%error, "a change of the metadata cannot be read: keeping the previous topology");
                    continue;
                }
            };
            lacks_types = complete(&mut types, &mut document).await;
            if document != **sender.borrow() {
                save(&cache, types.as_ref(), &document);
                sender.send_replace(Arc::new(document));
            }
        }
    });
    Ok(FollowedTopology { topology: receiver, freshness })
}

/// Adds the types of its graphs to a topology. Returns whether some could not be read.
async fn complete(types: &mut Option<TypesReader>, document: &mut TopologyDocument) -> bool {
    match types {
        Some(types) => types.add_to(document).await,
        None => false,
    }
}

/// The copy on disk, and how long ago it was written.
fn cached(cache: &Option<PathBuf>) -> Result<Option<(TopologyDocument, Duration)>, DocumentError> {
    let Some(Ok(bytes)) = cache.as_ref().map(fs::read) else { return Ok(None) };
    let written = cache.as_ref().and_then(|path| fs::metadata(path).ok()?.modified().ok());
    let age = written.and_then(|written| written.elapsed().ok()).unwrap_or(AGE_UNKNOWN);
    Ok(Some((TopologyDocument::decode(&bytes)?, age.max(Duration::from_millis(1)))))
}

fn save(cache: &Option<PathBuf>, types: Option<&TypesReader>, document: &TopologyDocument) {
    let Some(path) = cache else { return };
    if let Some(types) = types {
        types.save_copies(document);
    }
    match write_atomically(path, &document.encode()) {
        Ok(()) => types.into_iter().for_each(|types| types.remove_other_copies(document)),
        Err(error) => tracing::warn!(%error, "the copy of the topology could not be written to disk"),
    }
}
