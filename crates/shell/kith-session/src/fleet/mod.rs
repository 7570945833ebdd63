//! The nodes as this process sees them: connections, health, load, and which of them may be asked now.

mod tasks;

use arc_swap::ArcSwap;
use kith_net::transport::Transport;
use kith_routing::{
    Availability, Health, HealthChange, HealthEvent, HealthOptions, LoadMeter, RoutingTable, StoreReach,
};
use kith_topology::Topology;
use kith_types::{NodeId, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{Notify, broadcast, watch};

/// The longest time that a process waits for the connections to its nodes before it takes queries. A frozen node delays
/// it no longer than a probe.
const WARM_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of node failures that a slow execution may lag behind. An execution that missed some checks the health of all
/// nodes.
const DOWN_QUEUE: usize = 256;

/// The nodes of one cluster. Probes them in the background until it is dropped.
pub struct Fleet {
    transport: Arc<dyn Transport>,
    /// The origin of this process's [`Timestamp`]s.
    started: Instant,
    health: Mutex<Health>,
    /// The meter of requests and their outcomes. The lock is held for microseconds, at the start of a fan-out and of
    /// each request.
    load: Mutex<LoadMeter>,
    /// Nodes that get no further requests for now because too many are pending. They are written when that changes.
    avoided: Mutex<Vec<NodeId>>,
    /// The nodes that may be asked. It is replaced as a whole when a node's health or the table changes.
    reach: ArcSwap<Reach>,
    downs: broadcast::Sender<NodeId>,
    /// The signal that a node turned out to be up or down, or that the table changed.
    turned: Notify,
    /// The id by which nodes tell clients apart.
    client: u64,
}

struct Reach {
    table: Arc<RoutingTable>,
    availability: Arc<Availability>,
}

impl Fleet {
    /// Follows the topology and probes its nodes until dropped. With `tells_waits`, it reports to nodes how long this
    /// process waits for them.
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
        tokio::spawn(tasks::follow(Arc::downgrade(&fleet), topology));
        tokio::spawn(tasks::probe(Arc::downgrade(&fleet)));
        if tells_waits {
            fleet.with_load(|load, _| load.keep_waits());
            tokio::spawn(tasks::tell_waits(Arc::downgrade(&fleet)));
        }
        fleet
    }

    /// The transport of requests.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// The id by which nodes count this process.
    pub fn client(&self) -> u64 {
        self.client
    }

    /// The current time, for decisions.
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// Converts an instant, for decisions.
    pub fn at(&self, instant: Instant) -> Timestamp {
        Timestamp(instant.saturating_duration_since(self.started))
    }

    /// Converts a time back to an instant, for timers.
    pub fn instant(&self, at: Timestamp) -> Instant {
        self.started + at.0
    }

    /// Lets `work` update or read the load meter. If a node's pending requests come to exceed the limit by it, or fall
    /// below it again, the node is avoided or used again from then on.
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

    /// The nodes of `table` that may be asked now.
    pub fn availability(&self, table: &Arc<RoutingTable>) -> Arc<Availability> {
        let reach = self.reach.load();
        if Arc::ptr_eq(&reach.table, table) {
            return Arc::clone(&reach.availability);
        }
        Arc::new(self.reachable(table))
    }

    /// The nodes of `table` that may be asked now for a version that only the replicas in `reach` hold.
    pub fn availability_within(&self, table: &Arc<RoutingTable>, reach: &StoreReach) -> Arc<Availability> {
        let availability = self.availability(table);
        if reach.is_everything() {
            return availability;
        }
        Arc::new(availability.for_store(table, reach))
    }

    /// Waits, for a limited time, until each node has been probed over the connection that its requests will take. Does not
    /// wait for nodes that are down.
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
        if tokio::time::timeout(WARM_TIMEOUT, settled).await.is_err() {
            tracing::warn!(
                "some nodes have neither answered a probe nor failed to in time: going on without them"
            );
        }
    }

    /// Receives the nodes that go down from now on.
    pub fn downs(&self) -> broadcast::Receiver<NodeId> {
        self.downs.subscribe()
    }

    /// Whether a node is up, as far as this process knows.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.lock().is_up(node)
    }

    /// Takes in the outcome of a request or probe.
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
            // It does not matter if nobody receives it.
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
