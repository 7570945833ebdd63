//! Registration of a process in the metadata: its document, and a leased key while it lives.

use crate::metadata::{LeaseId, MetadataError, MetadataStore, Write};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// A process that is silent for so long counts as gone in `kith cluster status`. Routing does not
/// wait for it: clients notice by themselves.
const LEASE_TTL: Duration = Duration::from_secs(3);
/// How often a lease is kept.
const LEASE_INTERVAL: Duration = Duration::from_secs(1);

/// A leased key: present while the process lives.
#[derive(Clone, Debug)]
pub struct Live {
    /// The key.
    pub key: String,
    /// Says which start of the process it is, where anybody wants to know.
    pub value: String,
}

impl Live {
    /// One that says no more than that it lives.
    pub fn of(key: String) -> Self {
        Self { key, value: String::new() }
    }
}

/// Keeps `document` under `key` and `live` present until `stop`. Goes on trying while the store is away.
pub fn register(
    metadata: Arc<dyn MetadataStore>,
    key: String,
    document: Vec<u8>,
    live: Live,
    stop: CancellationToken,
) {
    tokio::spawn(async move {
        let mut lease = None;
        loop {
            match keep(&*metadata, &key, &document, &live, lease).await {
                Ok(kept) => lease = Some(kept),
                Err(MetadataError::LeaseEnded(_)) => lease = None,
                Err(error) => tracing::debug!(%error, key, "registration waits for the metadata store"),
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(LEASE_INTERVAL) => {}
            }
        }
    });
}

async fn keep(
    metadata: &dyn MetadataStore,
    key: &str,
    document: &[u8],
    live: &Live,
    lease: Option<LeaseId>,
) -> Result<LeaseId, MetadataError> {
    if let Some(lease) = lease {
        metadata.keep_alive(lease).await?;
        return Ok(lease);
    }
    let lease = metadata.lease(LEASE_TTL).await?;
    let mut writes =
        vec![Write { key: live.key.clone(), value: Some(live.value.clone().into()), lease: Some(lease) }];
    // An unchanged document is not written again: it would look like a change of topology.
    let known = metadata.read(key).await?;
    if known.get(key).is_none_or(|entry| entry.value != document) {
        writes.push(Write::put(key, document.to_vec()));
    }
    metadata.commit(Vec::new(), writes).await?;
    Ok(lease)
}
