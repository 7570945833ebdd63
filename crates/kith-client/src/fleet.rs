//! The nodes as this process sees them: connections, health, what they owe, who may be asked now.

use crate::{topology::Topology, transport::Transport};
use arc_swap::ArcSwap;
use kith_routing::{
    Availability, Health, HealthChange, HealthEvent, HealthOptions, LoadMeter, RoutingTable, StoreReach,
};
use kith_types::{NodeId, Timestamp};
use kith_wire::v1;
use parking_lot::{Mutex, MutexGuard};
use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::sync::{Notify, broadcast, watch};

/// How often due probes are looked for: a fraction of the probe interval. The load meter takes three
/// missed ticks for a pause of this process.
const PROBE_TICK: Duration = Duration::from_millis(50);
/// How often nodes are told how long this process waits for them: as often as they look.
const TELL_INTERVAL: Duration = Duration::from_millis(500);
/// How long somebody who is about to take queries waits for the connections to its nodes: for those that are frozen no longer than for
/// a probe.
const WARM_PATIENCE: Duration = Duration::from_secs(1);
/// Deaths that a slow execution may be behind; one that missed some looks everything up.
const DOWN_QUEUE: usize = 256;

/// The nodes of one cluster. Probes them in the background for as long as it exists.
pub struct Fleet {
    transport: Arc<dyn Transport>,
    /// Where this process's [`Timestamp`]s start.
    started: Instant,
    health: Mutex<Health>,
    /// What was asked and how it went. Locked for microseconds, at the start of a fan-out and at each request's.
    load: Mutex<LoadMeter>,
    /// Nodes with too many requests pending to get more, for now. Written when that changes.
    avoided: Mutex<Vec<NodeId>>,
    /// Who may be asked; swapped whole when a node's health or the table changes.
    reach: ArcSwap<Reach>,
    downs: broadcast::Sender<NodeId>,
    /// Told when a node turned out to be up or down, and when the table changed.
    turned: Notify,
    /// Tells nodes one client from another.
    client: u64,
}

struct Reach {
    table: Arc<RoutingTable>,
    availability: Arc<Availability>,
}

impl Fleet {
    /// Follows the topology and probes its nodes until dropped; with `tells_waits`, nodes are told how long this process waits for them.
    pub fn new(
        topology: watch::Receiver<Arc<Topology>>,
        transport: Arc<dyn Transport>,
        tells_waits: bool,
    ) -> Arc<Self> {
        let table = Arc::clone(&topology.borrow().table);
        let mut health = Health::new(HealthOptions::default());
        health.follow(&table, Timestamp::ZERO);
        let reach = Reach { availability: Arc::new(reachable(&health, &[], &table)), table };
        let fleet = Arc::new(Self {
            transport,
            started: Instant::now(),
            health: Mutex::new(health),
            load: Mutex::default(),
            avoided: Mutex::default(),
            reach: ArcSwap::from_pointee(reach),
            downs: broadcast::channel(DOWN_QUEUE).0,
            turned: Notify::new(),
            client: rand::random(),
        });
        tokio::spawn(follow(Arc::downgrade(&fleet), topology));
        tokio::spawn(probe(Arc::downgrade(&fleet)));
        if tells_waits {
            fleet.with_load(|load, _| load.keep_waits());
            tokio::spawn(tell_waits(Arc::downgrade(&fleet)));
        }
        fleet
    }

    /// Carries requests.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// This process, as nodes count it.
    pub fn client(&self) -> u64 {
        self.client
    }

    /// The time, for decisions.
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// An instant, for decisions.
    pub fn at(&self, instant: Instant) -> Timestamp {
        Timestamp(instant.saturating_duration_since(self.started))
    }

    /// A time, for timers.
    pub fn instant(&self, at: Timestamp) -> Instant {
        self.started + at.0
    }

    /// Tells or asks the load meter something. Nodes that came over, or back under, the limit of pending requests by it are
    /// avoided, or asked again, from here on.
    pub fn with_load<T>(&self, work: impl FnOnce(&mut LoadMeter, Timestamp) -> T) -> T {
        let now = self.now();
        let (result, changed) = {
            let mut load = self.load.lock();
            let result = work(&mut load, now);
            (result, load.newly_avoided(self.reach.load().table.nodes().len()))
        };
        if let Some(avoided) = changed {
            if !avoided.is_empty() {
                tracing::warn!(?avoided, "nodes with too many requests pending are avoided for now");
            }
            *self.avoided.lock() = avoided;
            let table = Arc::clone(&self.reach.load().table);
            self.refresh(table);
        }
        result
    }

    /// Which nodes of `table` may be asked now.
    pub fn availability(&self, table: &Arc<RoutingTable>) -> Arc<Availability> {
        let reach = self.reach.load();
        if Arc::ptr_eq(&reach.table, table) {
            return Arc::clone(&reach.availability);
        }
        Arc::new(self.reachable(table))
    }

    /// Which nodes of `table` may be asked now for a version that only `reach` holds.
    pub fn availability_within(&self, table: &Arc<RoutingTable>, reach: &StoreReach) -> Arc<Availability> {
        let availability = self.availability(table);
        if reach.is_everything() {
            return availability;
        }
        Arc::new(availability.for_store(table, reach))
    }

    /// Waits, not for long, until each node was asked whether it is well: over the connection that its requests will take. Those that
    /// are down are not waited for.
    pub async fn warm(&self) {
        let settled = async {
            loop {
                let turned = self.turned.notified();
                tokio::pin!(turned);
                turned.as_mut().enable();
                if self.lock().is_settled() {
                    return;
                }
                turned.await;
            }
        };
        if tokio::time::timeout(WARM_PATIENCE, settled).await.is_err() {
            tracing::warn!("not every node has answered a probe, or failed to, in time: going on without");
        }
    }

    /// Nodes that go down from now on.
    pub fn downs(&self) -> broadcast::Receiver<NodeId> {
        self.downs.subscribe()
    }

    /// Whether a node is up, as far as this process knows.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.lock().is_up(node)
    }

    /// Takes in what became of a request or probe.
    pub fn on(&self, node: NodeId, event: HealthEvent) {
        let now = self.now();
        let change = self.lock().on(node, event, now);
        let Some(change) = change else { return };
        tell(node, change);
        if change != HealthChange::Down {
            self.with_load(|load, _| load.on_return(node));
        }
        let table = Arc::clone(&self.reach.load().table);
        self.refresh(table);
        self.turned.notify_waiters();
        if change == HealthChange::Down {
            // Nobody listening is fine.
            let _ = self.downs.send(node);
        }
    }

    fn refresh(&self, table: Arc<RoutingTable>) {
        let availability = Arc::new(self.reachable(&table));
        self.reach.store(Arc::new(Reach { table, availability }));
    }

    fn reachable(&self, table: &RoutingTable) -> Availability {
        let avoided = self.avoided.lock().clone();
        reachable(&self.lock(), &avoided, table)
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock()
    }

    /// Has the transport let go of addresses that the table does not name any longer. More than it names are few, and seldom:
    /// queries that began with the table before may still ask there.
    fn forget_strangers(&self) {
        let table = Arc::clone(&self.reach.load().table);
        if table.nodes().len() < self.transport.addresses() {
            let known = table.nodes().iter().map(|node| node.address.as_str()).collect();
            self.transport.keep_only(&known);
        }
    }

    /// Probes the nodes whose turn it is.
    fn probe_due(self: &Arc<Self>) {
        self.forget_strangers();
        let now = self.now();
        let cut = self.transport.take_cut();
        let mut health = self.lock();
        if !cut.is_empty() {
            for node in self.reach.load().table.nodes().iter().filter(|node| cut.contains(&node.address)) {
                health.on(node.id, HealthEvent::ConnectionIdleLost, now);
            }
        }
        let due = health.probes_due(now);
        drop(health);
        for node in due {
            tokio::spawn(Arc::clone(self).probe_one(node));
        }
    }

    /// Tells each node how long its answers took since the last time. What is lost on the way is not told again.
    fn tell_waits(&self) {
        let (waits, table) =
            (self.with_load(|load, _| load.take_waits()), Arc::clone(&self.reach.load().table));
        for (node, waits) in waits {
            let Some(addr) = table.node(node).map(|node| node.address.clone()) else { continue };
            let transport = Arc::clone(&self.transport);
            let header =
                v1::RequestHeader { epoch: table.epoch().0, client: self.client, ..Default::default() };
            let waits = waits.counts().to_vec();
            let ping = v1::PingRequest { header: Some(header), waits, ..Default::default() };
            tokio::spawn(async move {
                let patience = HealthOptions::default().probe_timeout;
                // The next time tells of what comes after it.
                let _ = tokio::time::timeout(patience, transport.ping(&addr, ping)).await;
            });
        }
    }

    async fn probe_one(self: Arc<Self>, node: NodeId) {
        let table = Arc::clone(&self.reach.load().table);
        let Some(index) = table.node_index(node) else { return };
        let addr = table.node_at(index).address.clone();
        if addr.is_empty() {
            return self.on(node, HealthEvent::ProbeFailed);
        }
        let header = v1::RequestHeader { epoch: table.epoch().0, client: self.client, ..Default::default() };
        let ping = self.transport.ping(&addr, v1::PingRequest { header: Some(header), ..Default::default() });
        let answered = tokio::time::timeout(HealthOptions::default().probe_timeout, ping).await;
        let table = Arc::clone(&self.reach.load().table);
        if table.node(node).is_none_or(|node| node.address != addr) {
            // It listens elsewhere meanwhile, and is probed there.
            return;
        }
        let well = matches!(&answered, Ok(Ok(reply)) if reply.node == node.0);
        self.on(node, if well { HealthEvent::ProbeOk } else { HealthEvent::ProbeFailed });
    }
}

fn tell(node: NodeId, change: HealthChange) {
    match change {
        HealthChange::Down => tracing::warn!(%node, "node is down: routing around it"),
        HealthChange::Up => tracing::info!(%node, "node is back"),
        HealthChange::Joined => tracing::debug!(%node, "node answers"),
    }
}

fn reachable(health: &Health, avoided: &[NodeId], table: &RoutingTable) -> Availability {
    let mut availability = health.availability(table);
    avoided.iter().filter_map(|node| table.node_index(*node)).for_each(|node| availability.mark_down(node));
    for (index, node) in table.nodes().iter().enumerate() {
        if node.address.is_empty() {
            availability.exclude(kith_routing::NodeIndex(index as u32));
        }
    }
    availability.rescue(table);
    availability
}

async fn follow(fleet: Weak<Fleet>, mut topology: watch::Receiver<Arc<Topology>>) {
    while topology.changed().await.is_ok() {
        let Some(fleet) = fleet.upgrade() else { return };
        let table = Arc::clone(&topology.borrow_and_update().table);
        let now = fleet.now();
        fleet.lock().follow(&table, now);
        fleet.with_load(|load, _| load.follow(&table));
        fleet.refresh(table);
        fleet.turned.notify_waiters();
        fleet.probe_due();
    }
}

async fn probe(fleet: Weak<Fleet>) {
    let mut tick = tokio::time::interval(PROBE_TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(fleet) = fleet.upgrade() else { return };
        fleet.with_load(|load, now| load.on_tick(now));
        fleet.probe_due();
    }
}

async fn tell_waits(fleet: Weak<Fleet>) {
    loop {
        tokio::time::sleep(TELL_INTERVAL).await;
        let Some(fleet) = fleet.upgrade() else { return };
        fleet.tell_waits();
    }
}
