//! Registration of a process in the metadata: its document, and a leased key while it lives. An id belongs to whoever holds its
//! leased key and answers: a second process with it does not start, and one that was thought dead and replaced waits.

use crate::{
    StartError,
    freshness::{Freshness, LEASE_TTL},
};
use kith_metadata::{Committed, Condition, LeaseId, MetadataError, MetadataStore, Write, keys};
use serde::Deserialize;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// How often a lease is kept.
const LEASE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a process that starts waits for the lease of another with its id to end: of one that died its lease has ended by then.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// An address that takes no connection for so long says nothing.
const CONNECT_PATIENCE: Duration = Duration::from_millis(500);

/// The id of a node or router, and its keys.
#[derive(Clone, Debug)]
pub struct ProcessId {
    /// As people call it: `node 3`.
    name: String,
    /// The key of its document.
    key: String,
    /// Its leased key: present while it lives.
    live_key: String,
}

/// What a process says of itself.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Which it is.
    pub id: ProcessId,
    /// The value of its leased key: which start of the process it is, where anybody wants to know.
    pub live_value: String,
    /// Its document.
    pub document: Vec<u8>,
    /// Where it listens, as its document has it.
    pub addr: String,
}

/// What every document of a process has.
#[derive(Deserialize)]
struct Addressed {
    addr: String,
}

/// How an id is registered.
struct Holder {
    /// Where the process listens, if its lease has not ended.
    addr: Option<String>,
    /// The revision of the leased key; 0 if it is not there.
    live_revision: u64,
    document: Option<Vec<u8>>,
}

impl ProcessId {
    /// Of a node.
    pub fn node(node: u32) -> Self {
        Self { name: format!("node {node}"), key: keys::node(node), live_key: keys::live_node(node) }
    }

    /// Of a router.
    pub fn router(router: u32) -> Self {
        Self {
            name: format!("router {router}"),
            key: keys::router(router),
            live_key: keys::live_router(router),
        }
    }

    /// Waits until no other process has this id. `addr` is where this one shall listen: whoever listened there is gone once it does.
    /// A metadata store that is away tells nothing, and holds nobody up.
    ///
    /// # Errors
    /// [`StartError::IdTaken`] if a process that has it lives on.
    pub async fn wait_until_free(
        &self,
        metadata: &dyn MetadataStore,
        addr: SocketAddr,
    ) -> Result<(), StartError> {
        let (addr, until) = (addr.to_string(), Instant::now() + PATIENCE);
        loop {
            let Ok(holder) = self.holder(metadata).await else { return Ok(()) };
            match holder.other_than(&addr).await {
                None => return Ok(()),
                Some(other) if until <= Instant::now() => {
                    return Err(StartError::IdTaken { name: self.name.clone(), addr: other });
                }
                Some(_) => sleep(LOOK_INTERVAL).await,
            }
        }
    }

    async fn holder(&self, metadata: &dyn MetadataStore) -> Result<Holder, MetadataError> {
        let lives = metadata.read(&self.live_key).await?;
        let live = lives.get(&self.live_key);
        let document = metadata.read(&self.key).await?.get(&self.key).map(|entry| entry.value.clone());
        let addressed = document.as_ref().and_then(|document| serde_json::from_slice(document).ok());
        Ok(Holder {
            addr: live.and(addressed).map(|Addressed { addr }| addr),
            live_revision: live.map_or(0, |entry| entry.revision),
            document,
        })
    }
}

impl Holder {
    /// Where it listens, if it is another process and may live.
    async fn other_than(&self, addr: &str) -> Option<String> {
        let other = self.addr.as_ref().filter(|other| *other != addr)?;
        may_live(other).await.then(|| other.clone())
    }
}

/// Only a refusal shows that nobody is there; of an address that says nothing the lease tells.
async fn may_live(addr: &str) -> bool {
    match timeout(CONNECT_PATIENCE, TcpStream::connect(addr)).await {
        Ok(Err(error)) => error.kind() != io::ErrorKind::ConnectionRefused,
        _ => true,
    }
}

/// Keeps a process registered until `stop`. Goes on trying while the store is away, or another process has its id: one that was
/// frozen for long, and replaced, does not take it back.
pub fn register(
    metadata: Arc<dyn MetadataStore>,
    registration: Registration,
    freshness: Freshness,
    stop: CancellationToken,
) {
    tokio::spawn(async move {
        let mut lease = None;
        let mut told = None;
        loop {
            let sent = Instant::now();
            match keep(&*metadata, &registration, lease).await {
                Ok(Kept::Registered(kept)) => {
                    freshness.renewed(sent.into_std());
                    (lease, told) = (Some(kept), None);
                }
                Ok(Kept::Taken(addr)) => {
                    lease = None;
                    if told.as_ref() != Some(&addr) {
                        let name = &registration.id.name;
                        tracing::warn!(addr, "another process is {name}: this one waits, unregistered");
                        told = Some(addr);
                    }
                }
                Ok(Kept::Changed) | Err(MetadataError::LeaseEnded(_)) => lease = None,
                Err(error) => {
                    let key = &registration.id.key;
                    tracing::debug!(%error, key, "registration waits for the metadata store");
                }
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(LEASE_INTERVAL) => {}
            }
        }
    });
}

/// What came of one try to be registered.
enum Kept {
    Registered(LeaseId),
    /// By the process at this address.
    Taken(String),
    /// Somebody registered at the same time.
    Changed,
}

async fn keep(
    metadata: &dyn MetadataStore,
    registration: &Registration,
    lease: Option<LeaseId>,
) -> Result<Kept, MetadataError> {
    if let Some(lease) = lease {
        metadata.keep_alive(lease).await?;
        return Ok(Kept::Registered(lease));
    }
    let Registration { id, live_value, document, addr } = registration;
    let holder = id.holder(metadata).await?;
    if let Some(other) = holder.other_than(addr).await {
        return Ok(Kept::Taken(other));
    }
    let lease = metadata.lease(LEASE_TTL).await?;
    let value = Some(live_value.clone().into());
    let mut writes = vec![Write { key: id.live_key.clone(), value, lease: Some(lease) }];
    // An unchanged document is not written again: it would look like a change of topology.
    if holder.document.is_none_or(|known| known != *document) {
        writes.push(Write::put(&id.key, document.clone()));
    }
    let unchanged = Condition { key: id.live_key.clone(), revision: holder.live_revision };
    Ok(match metadata.commit(vec![unchanged], writes).await? {
        Committed::At(_) => Kept::Registered(lease),
        Committed::Conflict => Kept::Changed,
    })
}
