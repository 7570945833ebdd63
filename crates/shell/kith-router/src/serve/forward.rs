//! Forwards queries to the routers that own their members (rendezvous hashing), so that the routers together keep one
//! network cache and not copies of it. A query that needs a member's network is forwarded to its owner, at most once.

use futures::future::join_all;
use kith_cache::owner_of;
use kith_client::RouterClient;
use kith_cluster::topology::TopologyReceiver;
use kith_net::security::Dialer;
use kith_query::{CacheMode, QueryError, QueryOptions, Question, Reply, Request, Service};
use kith_routing::{OwnerChoice, OwnerOutcome, OwnerVerdict, Owners};
use kith_types::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;
use tonic::Code;

/// The interval at which the connections to the other routers are checked. Clients probe nodes that are down as often.
const WARM_INTERVAL: Duration = Duration::from_millis(200);
/// The time that a starting router waits for these connections. A frozen router delays the start no longer than a
/// frozen node does.
const WARM_TIMEOUT: Duration = Duration::from_secs(1);

/// Forwards queries to the routers that own their members.
#[derive(Debug)]
pub(crate) struct Forwarder {
    topology: TopologyReceiver,
    own: u32,
    dialer: Dialer,
    /// The clients of the other routers, by address.
    clients: Mutex<HashMap<String, RouterClient>>,
    /// The owners that are worth asking. Every forwarded query writes it.
    owners: Mutex<Owners>,
    /// The start of the time that `owners` uses.
    started: Instant,
}

impl Forwarder {
    pub fn new(topology: TopologyReceiver, own: u32, dialer: Dialer) -> Self {
        let (clients, owners) = (Mutex::default(), Mutex::default());
        Self { topology, own, dialer, clients, owners, started: Instant::now() }
    }

    /// Opens the connections to the other routers, for which it waits a limited time, and keeps them open until `stop`. So
    /// no query has to wait for a connection.
    pub async fn warm(self: &Arc<Self>, stop: CancellationToken) {
        let _ = tokio::time::timeout(WARM_TIMEOUT, self.open_all()).await;
        let forwarder = Arc::clone(self);
        let kept = async move {
            loop {
                tokio::time::sleep(WARM_INTERVAL).await;
                forwarder.open_all().await;
            }
        };
        tokio::spawn(async move { stop.run_until_cancelled(kept).await });
    }

    /// Opens missing connections, and drops the clients of routers that are gone.
    async fn open_all(&self) {
        let topology = Arc::clone(&self.topology.borrow());
        let others = || topology.routers.iter().filter(|router| router.router != self.own);
        self.clients().retain(|addr, _| others().any(|router| router.addr == *addr));
        let clients = others().filter_map(|router| self.client(&router.addr));
        join_all(clients.map(async |client| client.warm().await)).await;
    }

    /// Forwards a request to the owner of its member. Returns `None` if this router must answer it: because it is the owner
    /// itself, the request is not to be forwarded, or the owner does not answer.
    pub async fn forward(&self, request: &Request) -> Option<Result<Reply, QueryError>> {
        let Request { question: Question::Graph { graph, query }, options } = request else { return None };
        let member = query.operation.cached_member()?;
        // Networks of live graphs are not cached.
        let is_live = || self.topology.borrow().live.iter().any(|live| live.name == *graph);
        if options.forwarded || options.cache_mode() == CacheMode::Bypass || is_live() {
            return None;
        }
        let client = self.owner(member)?;
        let choice = self.owners().choose(client.addr(), options.deadline, self.now());
        let OwnerChoice::Ask { timeout } = choice else { return None };
        let options = QueryOptions { forwarded: true, ..options.clone() };
        let passed_on = Arc::new(Request { question: request.question.clone(), options });
        let reply = tokio::time::timeout(timeout, client.call(passed_on)).await;
        let outcome = reply.as_ref().map_or(OwnerOutcome::Silent, outcome_of);
        let verdict = self.owners().on(client.addr(), outcome, self.now());
        match (verdict, reply) {
            (OwnerVerdict::PassOn, Ok(reply)) => Some(reply.map(|reply| with_owner(reply, client.addr()))),
            (OwnerVerdict::GoAround, _) | (_, Err(_)) => {
                let addr = client.addr();
                tracing::warn!(
                    addr,
                    ?outcome,
                    "the owner of a member did not answer: answering the query here"
                );
                None
            }
        }
    }

    fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock()
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.started.elapsed())
    }

    /// A client of the router that owns `member`; `None` if that is this router.
    fn owner(&self, member: u64) -> Option<RouterClient> {
        let topology = self.topology.borrow();
        let ids: Vec<u64> = topology.routers.iter().map(|router| u64::from(router.router)).collect();
        let owner = &topology.routers[owner_of(member, &ids)?];
        if owner.router == self.own {
            return None;
        }
        self.client(&owner.addr)
    }

    /// A client of the router at `addr`; `None` if `addr` is not an address.
    fn client(&self, addr: &str) -> Option<RouterClient> {
        let mut clients = self.clients();
        if let Some(client) = clients.get(addr) {
            return Some(client.clone());
        }
        let client = RouterClient::lazy(addr.to_owned(), &self.dialer).ok()?;
        clients.insert(addr.to_owned(), client.clone());
        Some(client)
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<String, RouterClient>> {
        self.clients.lock()
    }
}

fn outcome_of(reply: &Result<Reply, QueryError>) -> OwnerOutcome {
    match reply.as_ref().map_err(|error| error.to_status().code()) {
        Ok(_) => OwnerOutcome::Answered,
        Err(Code::Unavailable) => OwnerOutcome::Unreachable,
        Err(Code::Cancelled) => OwnerOutcome::Broken,
        Err(Code::ResourceExhausted) => OwnerOutcome::Overloaded,
        Err(_) => OwnerOutcome::Refused,
    }
}

/// Adds the address of the owner to the profile of its reply.
fn with_owner(mut reply: Reply, addr: &str) -> Reply {
    if let Some(Some(profile)) = reply.profile_mut() {
        profile.cache = format!("{} (forwarded to {addr})", profile.cache);
    }
    metrics::counter!("kith_router_forwarded_total").increment(1);
    reply
}
