//! Members are owned by routers (rendezvous hashing): several routers hold one network
//! cache, not copies. A query that needs a member's network goes to its owner, once.

use crate::topology::TopologyReceiver;
use kith_cache::owner_of;
use kith_client::{CacheMode, QueryOptions, RouterClient, endpoint};
use kith_ops::{GraphQuery, Operand};
use kith_wire::v1;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tonic::{Code, Status};

/// An owner that is silent for so long, or for half of the query's deadline, is gone around: a cache
/// must not cost more than it saves.
const PATIENCE: Duration = Duration::from_secs(1);
/// And is then not asked for so long.
const AVOID_FOR: Duration = Duration::from_secs(2);

/// Passes queries on to the routers that own their members.
#[derive(Debug)]
pub(super) struct Forwarder {
    topology: TopologyReceiver,
    own: u32,
    /// By address.
    clients: Mutex<HashMap<String, RouterClient>>,
    /// Owners that did not answer, and since when; by address.
    silent: Mutex<HashMap<String, Instant>>,
}

impl Forwarder {
    pub fn new(topology: TopologyReceiver, own: u32) -> Self {
        Self { topology, own, clients: Mutex::default(), silent: Mutex::default() }
    }

    /// The owner's reply, if another router owns the member and can be reached.
    pub async fn forward(
        &self,
        query: &GraphQuery,
        options: &QueryOptions,
        request: v1::QueryRequest,
    ) -> Option<Result<v1::QueryReply, Status>> {
        let member = cached_member(&query.operand)?;
        if options.cache == CacheMode::Bypass {
            return None;
        }
        let client = self.owner(member)?;
        let patience = options.deadline.map_or(PATIENCE, |deadline| PATIENCE.min(deadline / 2));
        match tokio::time::timeout(patience, client.forward(request)).await {
            Ok(Ok(mut reply)) => {
                if let Some(profile) = &mut reply.profile {
                    profile.cache = format!("{} (forwarded to {})", profile.cache, client.addr());
                }
                metrics::counter!("kith_router_forwarded_total").increment(1);
                Some(Ok(reply))
            }
            // An owner that is away costs a cache miss here, not the query.
            Ok(Err(status)) if is_away(&status) => {
                self.avoid(client.addr());
                None
            }
            Ok(Err(status)) => Some(Err(status)),
            Err(_) => {
                self.avoid(client.addr());
                None
            }
        }
    }

    fn avoid(&self, addr: &str) {
        tracing::warn!(addr, "a router that owns members does not answer: serving them here for a while");
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.insert(addr.to_owned(), Instant::now());
    }

    fn is_avoided(&self, addr: &str) -> bool {
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.get(addr).is_some_and(|since| since.elapsed() < AVOID_FOR)
    }

    /// A client of the router that owns `member`; `None` if it is this one.
    fn owner(&self, member: u64) -> Option<RouterClient> {
        let topology = self.topology.borrow();
        let ids: Vec<u64> = topology.routers.iter().map(|router| u64::from(router.router)).collect();
        let owner = &topology.routers[owner_of(member, &ids)?];
        if owner.router == self.own || self.is_avoided(&owner.addr) {
            return None;
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&owner.addr) {
            return Some(client.clone());
        }
        let channel = endpoint(&owner.addr).ok()?.connect_lazy();
        let client = RouterClient::over(owner.addr.clone(), channel);
        clients.insert(owner.addr.clone(), client.clone());
        Some(client)
    }
}

fn is_away(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Cancelled | Code::ResourceExhausted)
}

/// The member whose network the query reads through the cache.
fn cached_member(operand: &Operand) -> Option<u64> {
    match operand {
        Operand::Network { id, .. } => Some(*id),
        Operand::Distance { from, .. } => Some(*from),
        _ => None,
    }
}
