//! The topology as one document, kept fresh from the metadata store and cached on disk:
//! losing the store stops changes, never reads.

use crate::{
    data_dir::write_atomically,
    metadata::{MetadataError, MetadataStore, Snapshot, keys},
};
use futures::StreamExt;
use kith_wire::documents::{
    ClusterDocument, DOCUMENT_FORMAT, Document, DocumentError, NodeDocument, RebalanceDocument,
    RouterDocument, StoreDocument, TopologyDocument,
};
use std::{fs, path::PathBuf, sync::Arc};
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The latest topology; clones see the same.
pub type TopologyReceiver = watch::Receiver<Arc<TopologyDocument>>;

/// The topology cannot be learnt.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The metadata store has no cluster in it.
    #[error("the metadata store holds no cluster yet")]
    NoCluster,
    /// A document in it cannot be read.
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
    Ok(TopologyDocument {
        format: DOCUMENT_FORMAT,
        revision: snapshot.revision,
        cluster: ClusterDocument::decode(&cluster.value)?,
        nodes: decode_under::<NodeDocument>(snapshot, keys::NODES)?,
        routers: decode_under::<RouterDocument>(snapshot, keys::ROUTERS)?,
        stores: stores.iter().map(StoreDocument::served).collect(),
        kept: stores.iter().flat_map(StoreDocument::kept).collect(),
        rebalance: rebalance_of(snapshot)?,
    })
}

/// The rebalance that files lie about of: one under way, or one that ended and has still something to free.
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

fn decode_under<D: Document>(snapshot: &Snapshot, prefix: &str) -> Result<Vec<D>, DocumentError> {
    let entries = snapshot.entries.iter().filter(|entry| entry.key.starts_with(prefix));
    entries.map(|entry| D::decode(&entry.value)).collect()
}

/// Follows the store until `stop`. Starts from the copy in `cache` if the store cannot be reached, and keeps that copy fresh.
///
/// # Errors
/// If neither the store nor the copy gives a topology.
pub async fn follow(
    store: Arc<dyn MetadataStore>,
    cache: Option<PathBuf>,
    stop: CancellationToken,
) -> Result<TopologyReceiver, TopologyError> {
    let first = match store.read("").await {
        Ok(snapshot) => document_of(&snapshot)?,
        Err(error) => match cached(&cache)? {
            Some(document) => {
                tracing::warn!(%error, revision = document.revision, "metadata store is unavailable: serving from the topology on disk");
                document
            }
            None => return Err(TopologyError::Unavailable(error)),
        },
    };
    save(&cache, &first);
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
                    tracing::error!(%error, "a change of the metadata cannot be read: staying with the topology before")
                }
            }
        }
    });
    Ok(receiver)
}

fn cached(cache: &Option<PathBuf>) -> Result<Option<TopologyDocument>, DocumentError> {
    match cache.as_ref().map(fs::read) {
        Some(Ok(bytes)) => TopologyDocument::decode(&bytes).map(Some),
        _ => Ok(None),
    }
}

fn save(cache: &Option<PathBuf>, document: &TopologyDocument) {
    if let Some(path) = cache
        && let Err(error) = write_atomically(path, &document.encode())
    {
        tracing::warn!(%error, "the topology could not be kept on disk");
    }
}
