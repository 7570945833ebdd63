//! Registration of a process in the metadata: its document, and a leased key while it lives. An id belongs to the process that
//! holds the leased key and accepts connections. A second process with the same id does not start. A process that was thought
//! dead and was replaced waits.

use crate::metadata::{CommitOutcome, Condition, LeaseId, MetadataError, MetadataStore, Write, keys};
use crate::{
    StartError,
    freshness::{Freshness, LEASE_TTL},
    lives::LEAVING,
};
use serde::Deserialize;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// The interval at which a lease is renewed.
const LEASE_INTERVAL: Duration = Duration::from_secs(1);
/// The time that a starting process waits for the lease of another process with its id to expire. If the other has
/// died, its lease has expired by then.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which a starting process checks that lease.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The time limit of a connection attempt; after that, it is unknown whether a process listens at the address.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The id of a process, and its keys.
#[derive(Clone, Debug)]
pub struct ProcessId {
    /// The id as it is shown to people: `node 3`.
    name: String,
    /// The key of its document.
    key: String,
    /// Its leased key: present while it lives.
    live_key: String,
}

/// The facts that a process writes about itself.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Its id.
    pub id: ProcessId,
    /// The value of its leased key, which may tell one start of the process from another, and may change.
    pub live_value: watch::Receiver<String>,
    /// Its document.
    pub document: Vec<u8>,
    /// The address at which it listens, as in its document.
    pub addr: String,
    /// The token that is cancelled when the process, a node, is about to end. Its leased key then says so, and
    /// [`crate::follow_lives`] reports it to all followers.
    pub leaving: CancellationToken,
}

impl Registration {
    /// The current value of its leased key.
    fn value(&self) -> String {
        match self.leaving.is_cancelled() {
            true => LEAVING.to_owned(),
            false => self.live_value.borrow().clone(),
        }
    }

    /// Waits until its leased key should have another value than this one.
    async fn changed(&mut self, value: &str) {
        loop {
            if self.value() != value {
                return;
            }
            let live_value = async {
                if self.live_value.changed().await.is_err() {
                    // It never changes again.
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = live_value => {}
                () = self.leaving.cancelled(), if value != LEAVING => {}
            }
        }
    }
}

/// The value of a leased key that never changes, unless the process is leaving.
pub fn fixed(live_value: String) -> watch::Receiver<String> {
    watch::channel(live_value).1
}

/// The part that the documents of all processes share.
#[derive(Deserialize)]
struct Addressed {
    addr: String,
}

/// The current registration of an id.
struct Holder {
    /// The address on which the registered process listens, if its lease has not ended.
    addr: Option<String>,
    /// The revision of the leased key; 0 if it is not there.
    live_revision: u64,
    document: Option<Vec<u8>>,
}

impl ProcessId {
    /// The id of a node.
    pub fn node(node: u32) -> Self {
        Self { name: format!("node {node}"), key: keys::node(node), live_key: keys::live_node(node) }
    }

    /// The id of a router.
    pub fn router(router: u32) -> Self {
        Self {
            name: format!("router {router}"),
            key: keys::router(router),
            live_key: keys::live_router(router),
        }
    }

    /// The id of a process with databases.
    pub fn database(database: u32) -> Self {
        Self {
            name: format!("database {database}"),
            key: keys::database(database),
            live_key: keys::live_database(database),
        }
    }

    /// Waits until no other process has this id. `addr` is the address at which this process will listen. A holder of the id
    /// with the same address does not count, because it is gone once this process listens there. If the metadata store cannot
    /// be reached, this does not wait.
    ///
    /// # Errors
    /// [`StartError::IdTaken`] if the process that has the id is still alive.
    pub async fn wait_until_free(
        &self,
        metadata: &dyn MetadataStore,
        addr: SocketAddr,
    ) -> Result<(), StartError> {
        let (addr, until) = (addr.to_string(), Instant::now() + TIMEOUT);
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
    /// The address of the holder, if it is another process and may be alive.
    async fn other_than(&self, addr: &str) -> Option<String> {
        let other = self.addr.as_ref().filter(|other| *other != addr)?;
        may_live(other).await.then(|| other.clone())
    }
}

/// Whether a process may listen at `addr`. Only a refused connection proves that none does. Without an answer, the
/// lease decides.
async fn may_live(addr: &str) -> bool {
    match timeout(CONNECT_TIMEOUT, TcpStream::connect(addr)).await {
        Ok(Err(error)) => error.kind() != io::ErrorKind::ConnectionRefused,
        _ => true,
    }
}

/// Keeps a process registered until `stop` is cancelled. Tries again while the store cannot be reached or another process has
/// the id: a process that was frozen for long and was replaced does not take its id back.
pub fn register(
    metadata: Arc<dyn MetadataStore>,
    mut registration: Registration,
    freshness: Freshness,
    stop: CancellationToken,
) {
    tokio::spawn(async move {
        let mut lease = None;
        let mut warned_of = None;
        loop {
            let (sent, value) = (Instant::now(), registration.value());
            match keep(&*metadata, &registration, &value, lease).await {
                Ok(Kept::Registered(kept)) => {
                    freshness.renewed(sent.into_std());
                    (lease, warned_of) = (Some(kept), None);
                }
                Ok(Kept::Taken(addr)) => {
                    lease = None;
                    if warned_of.as_ref() != Some(&addr) {
                        let name = &registration.id.name;
                        tracing::warn!(
                            addr,
                            "another process has the id of {name}: this one waits and is not registered"
                        );
                        warned_of = Some(addr);
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
                // It registers again, under a new lease.
                () = registration.changed(&value) => lease = None,
                () = sleep(LEASE_INTERVAL) => {}
            }
        }
    });
}

/// The outcome of one attempt to register.
enum Kept {
    Registered(LeaseId),
    /// The id is taken by the process at this address.
    Taken(String),
    /// Another process registered at the same time.
    Changed,
}

async fn keep(
    metadata: &dyn MetadataStore,
    registration: &Registration,
    live_value: &str,
    lease: Option<LeaseId>,
) -> Result<Kept, MetadataError> {
    if let Some(lease) = lease {
        metadata.keep_alive(lease).await?;
        return Ok(Kept::Registered(lease));
    }
    let Registration { id, document, addr, .. } = registration;
    let holder = id.holder(metadata).await?;
    if let Some(other) = holder.other_than(addr).await {
        return Ok(Kept::Taken(other));
    }
    let lease = metadata.lease(LEASE_TTL).await?;
    let value = Some(live_value.to_owned().into());
    let mut writes = vec![Write { key: id.live_key.clone(), value, lease: Some(lease) }];
    // An unchanged document is not written again: it would look like a change of topology.
    if holder.document.is_none_or(|known| known != *document) {
        writes.push(Write::put(&id.key, document.clone()));
    }
    let unchanged = Condition { key: id.live_key.clone(), revision: holder.live_revision };
    Ok(match metadata.commit(vec![unchanged], writes).await? {
        CommitOutcome::At(_) => Kept::Registered(lease),
        CommitOutcome::Conflict => Kept::Changed,
    })
}
