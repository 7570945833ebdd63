//! The topology as one document, kept up to date from the metadata store and cached on disk. If the store is lost, changes
//! stop, but reads go on.

use crate::{
    data_dir::{DataDirError, write_atomically},
    freshness::Freshness,
};
use futures::StreamExt;
use kith_metadata::{MetadataError, MetadataStore, Snapshot, keys};
use kith_wire::documents::{
    ClusterDocument, DOCUMENT_FORMAT, DatabaseDocument, Document, DocumentError, LeadersDocument,
    LiveGraphDocument, NodeDocument, RebalanceDocument, RouterDocument, StoreDocument, TopologyDocument,
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

/// The age of a copy whose age is unknown, because the clock was set back since it was written: such a copy counts as old.
const AGE_UNKNOWN: Duration = Duration::from_secs(86_400);

/// Receives the latest topology; clones receive the same one.
pub type TopologyReceiver = watch::Receiver<Arc<TopologyDocument>>;

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
    let path = copy_in(data);
    match fs::remove_file(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(DataDirError::Io { path, source }),
        _ => Ok(()),
    }
}

/// A topology that is kept up to date.
pub struct Followed {
    /// The latest topology.
    pub topology: TopologyReceiver,
    /// How old the topology may be. Until the metadata store has answered, that is the age of the copy on disk.
    pub freshness: Freshness,
}

/// Follows the metadata store until `stop` is cancelled. Starts from the copy in `cache` if the store cannot be reached, and
/// keeps that copy up to date.
///
/// # Errors
/// If neither the store nor the copy gives a topology.
pub async fn follow(
    store: Arc<dyn MetadataStore>,
    cache: Option<PathBuf>,
    stop: CancellationToken,
) -> Result<Followed, TopologyError> {
    let (first, age) = match store.read("").await {
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
    if age.is_zero() {
        save(&cache, &first);
    }
    let revision = first.revision;
    let (sender, receiver) = watch::channel(Arc::new(first));
    tokio::spawn(async move {
        let mut snapshots = store.watch("", revision).take_until(Box::pin(stop.cancelled_owned()));
        while let Some(snapshot) = snapshots.next().await {
            match document_of(&snapshot) {
                Ok(document) => {
                    save(&cache, &document);
                    sender.send_replace(Arc::new(document));
                }
                Err(error) => {
                    tracing::error!(%error, "a change of the metadata cannot be read: keeping the previous topology")
                }
            }
        }
    });
    Ok(Followed { topology: receiver, freshness })
}

/// The copy on disk, and how long ago it was written.
fn cached(cache: &Option<PathBuf>) -> Result<Option<(TopologyDocument, Duration)>, DocumentError> {
    let Some(Ok(bytes)) = cache.as_ref().map(fs::read) else { return Ok(None) };
    let written = cache.as_ref().and_then(|path| fs::metadata(path).ok()?.modified().ok());
    let age = written.and_then(|written| written.elapsed().ok()).unwrap_or(AGE_UNKNOWN);
    Ok(Some((TopologyDocument::decode(&bytes)?, age.max(Duration::from_millis(1)))))
}

fn save(cache: &Option<PathBuf>, document: &TopologyDocument) {
    if let Some(path) = cache
        && let Err(error) = write_atomically(path, &document.encode())
    {
        tracing::warn!(%error, "the copy of the topology could not be written to disk");
    }
}
