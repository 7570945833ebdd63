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
};
use tonic::{Code, Status};

/// Passes queries on to the routers that own their members.
#[derive(Debug)]
pub(super) struct Forwarder {
    topology: TopologyReceiver,
    own: u32,
    /// By address.
    clients: Mutex<HashMap<String, RouterClient>>,
}

impl Forwarder {
    pub fn new(topology: TopologyReceiver, own: u32) -> Self {
        Self { topology, own, clients: Mutex::default() }
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
        match client.forward(request).await {
            Ok(mut reply) => {
                if let Some(profile) = &mut reply.profile {
                    profile.cache = format!("{} (forwarded to {})", profile.cache, client.addr());
                }
                metrics::counter!("kith_router_forwarded_total").increment(1);
                Some(Ok(reply))
            }
            // An owner that is away costs a cache miss here, not the query.
            Err(status)
                if matches!(status.code(), Code::Unavailable | Code::Cancelled | Code::ResourceExhausted) =>
            {
                None
            }
            Err(status) => Some(Err(status)),
        }
    }

    /// A client of the router that owns `member`; `None` if it is this one.
    fn owner(&self, member: u64) -> Option<RouterClient> {
        let topology = self.topology.borrow();
        let ids: Vec<u64> = topology.routers.iter().map(|router| u64::from(router.router)).collect();
        let owner = &topology.routers[owner_of(member, &ids)?];
        if owner.router == self.own {
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

/// The member whose network the query reads through the cache.
fn cached_member(operand: &Operand) -> Option<u64> {
    match operand {
        Operand::Network { id, .. } => Some(*id),
        Operand::Distance { from, .. } => Some(*from),
        _ => None,
    }
}
