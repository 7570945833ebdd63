//! One live graph on a node: its database, the caches and adjacency lists of the held partitions, and the channel to the
//! task that leads.

use super::{ends::Ends, message::LeadMessage, turns::Turns, types::KnownTypes};
use kith_cache::{
    adjacency::{Adjacency, AdjacencyOptions},
    live::{Filled, LiveCacheOptions, LiveCaches, Progress},
};
use kith_database::{Database, DatabaseError};
use kith_live::{Change, GraphTypes};
use kith_topology::leaders_of;
use kith_types::{LogPoint, NodeId, PartitionCount, PartitionId, Position, Term, Timestamp};
use kith_wire::documents::TopologyDocument;
use parking_lot::{Mutex, RwLock};
use rustix::time::{ClockId, clock_gettime};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// A read that waits for rows that another read fetches. It gets the rows, which need not be kept in memory; `None` if a
/// change has overtaken them.
pub(super) type Waiter = oneshot::Sender<Result<Option<Filled>, DatabaseError>>;

pub(super) struct LiveGraphParts {
    pub name: String,
    pub node: NodeId,
    pub count: PartitionCount,
    pub types: Arc<GraphTypes>,
    pub database: Arc<dyn Database>,
}

/// One live graph on a node.
pub(crate) struct LiveGraph {
    pub(super) name: String,
    pub(super) count: PartitionCount,
    pub(super) known_types: KnownTypes,
    pub(super) database: Arc<dyn Database>,
    /// The error of the last call by which this node leads or follows a partition; `None` if the call succeeded.
    database_error: Mutex<Option<DatabaseError>>,
    /// The caches of all held partitions. The lock is only held for microseconds.
    pub(super) caches: Mutex<LiveCaches<Waiter>>,
    /// The turns of reads that fetch rows from the database.
    pub(super) turns: Turns,
    /// The reads of the ends of logs.
    pub(super) ends: Arc<Ends>,
    /// The adjacency lists that graph queries read.
    pub(super) adjacency: Adjacency,
    /// The partitions whose lists are being built, with the position from which each build reads the log.
    pub(super) building: Mutex<BTreeMap<PartitionId, Position>>,
    /// The partitions that this node holds. The lock of a partition lets only one task at a time read its log.
    pub(super) partitions: RwLock<BTreeMap<PartitionId, Arc<tokio::sync::Mutex<()>>>>,
    /// The channel to the task that leads.
    pub(super) lead: mpsc::UnboundedSender<LeadMessage>,
    node: NodeId,
    started: Duration,
    stop: CancellationToken,
}

impl LiveGraph {
    /// Returns a graph that leads and follows no partitions until the task behind `lead` runs and [`LiveGraph::follow`] is
    /// called.
    pub(super) fn new(
        parts: LiveGraphParts,
        lead: mpsc::UnboundedSender<LeadMessage>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            name: parts.name,
            count: parts.count,
            adjacency: Adjacency::new(parts.count, &parts.types, AdjacencyOptions::default()),
            known_types: KnownTypes::new(parts.types),
            database: parts.database,
            database_error: Mutex::default(),
            caches: Mutex::new(LiveCaches::new(LiveCacheOptions::default())),
            turns: Turns::default(),
            ends: Arc::default(),
            building: Mutex::default(),
            partitions: RwLock::default(),
            lead,
            node: parts.node,
            started: boot_time(),
            stop,
        }
    }

    /// Records whether the database has done what it was asked.
    pub(super) fn note_database(&self, error: Option<&DatabaseError>) {
        let mut last = self.database_error.lock();
        if last.as_ref() != error {
            *last = error.cloned();
        }
    }

    /// Returns why the database did not do what it was last asked, if it did not.
    pub(super) fn database_error(&self) -> Option<DatabaseError> {
        self.database_error.lock().clone()
    }

    /// Takes over the types, and leads and follows the partitions that the topology gives to this node.
    pub(super) fn follow(&self, topology: &TopologyDocument, types: Arc<GraphTypes>) {
        let known = self.types();
        if !Arc::ptr_eq(&types, &known) && types != known {
            // Reads that find a type here also find its lists.
            self.adjacency.set_types(&types);
            self.known_types.set(Arc::clone(&types));
            let _ = self.lead.send(LeadMessage::Types(types));
        }
        let leads = led_by(topology, self, self.node);
        self.hold(topology, &leads);
        let _ = self.lead.send(LeadMessage::Leads(leads));
    }

    /// Begins to follow the logs of partitions that this node has got, and stops following those that it has lost. A
    /// partition that this node still leads is kept until it is handed over.
    fn hold(&self, topology: &TopologyDocument, leads: &BTreeMap<PartitionId, Term>) {
        let mut own = owned(topology, self.node);
        own.extend(leads.keys());
        let mut partitions = self.partitions.write();
        let mut caches = self.caches.lock();
        partitions.retain(|partition, _| {
            let stays = own.contains(partition);
            if !stays {
                caches.close(*partition);
                self.close_lists(*partition);
            }
            stays
        });
        for partition in own {
            partitions.entry(partition).or_insert_with(|| {
                caches.open(partition, LogPoint::default());
                Arc::default()
            });
        }
    }

    /// Returns the id of this node.
    pub(super) fn node(&self) -> u32 {
        self.node.0
    }

    /// Returns the identity of the graph.
    pub fn identity(&self) -> u64 {
        self.types().identity
    }

    /// Returns the types of the graph.
    pub fn types(&self) -> Arc<GraphTypes> {
        self.known_types.get()
    }

    /// Returns the partitions that this node holds.
    pub(super) fn held(&self) -> Vec<PartitionId> {
        self.partitions.read().keys().copied().collect()
    }

    /// Returns the time since this graph was opened, by a clock that also advances while the machine is suspended.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp(boot_time().saturating_sub(self.started))
    }

    /// Applies the changes of this node's leader that follow `after`. If the cache lacks changes before them, returns the
    /// place of the last change, so that the caller can read the log up to there.
    pub(super) fn apply(
        &self,
        partition: PartitionId,
        after: LogPoint,
        changes: &[Change],
    ) -> Option<LogPoint> {
        let now = self.now();
        let mut caches = self.caches.lock();
        let mut cache = caches.partition(partition)?;
        cache.saw(after);
        let (mut previous, mut has_gap) = (after, false);
        for change in changes {
            self.known_types.note(change);
            let point = LogPoint { position: previous.position.next(), ..after };
            cache.saw(point);
            let progress = cache.apply_after(previous, point, change, now);
            has_gap |= matches!(progress, Progress::Gap { .. });
            self.publish_to_lists(partition, previous, point, change);
            previous = point;
        }
        has_gap.then_some(previous)
    }

    /// Drops the lists of a partition. Freeing large lists takes long, so another thread does it.
    pub(super) fn close_lists(&self, partition: PartitionId) {
        let closed = self.adjacency.close(partition);
        tokio::task::spawn_blocking(move || drop(closed));
    }

    /// Sets the metrics of the memory that caches and lists take.
    pub(super) fn report_bytes(&self) {
        self.set_bytes(self.caches.lock().counters().bytes, self.adjacency.bytes());
    }

    fn set_bytes(&self, cached: u64, listed: u64) {
        let set = |name: &'static str, bytes: u64| {
            metrics::gauge!(name, "graph" => self.name.clone()).set(bytes as f64);
        };
        set("kith_live_cache_bytes", cached);
        set("kith_live_list_bytes", listed);
    }

    /// Stops leading and following, and closes the database.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.set_bytes(0, 0);
        self.database.close().await;
    }
}

/// Returns the partitions of a graph that a node leads according to the topology, with the terms.
pub(super) fn led_by(
    topology: &TopologyDocument,
    graph: &LiveGraph,
    node: NodeId,
) -> BTreeMap<PartitionId, Term> {
    let leaders = topology.leaders.iter().find(|leaders| leaders.graph == graph.name);
    let leaders = leaders.map(leaders_of).unwrap_or_default();
    let led = graph.count.iter().filter_map(|partition| {
        let leader = leaders.of(partition).filter(|leader| leader.node == node)?;
        Some((partition, leader.term))
    });
    led.collect()
}

/// Returns the partitions that a node owns in any group.
fn owned(topology: &TopologyDocument, node: NodeId) -> Vec<PartitionId> {
    let groups = topology.cluster.groups.iter();
    let mut own: Vec<PartitionId> = groups
        .flat_map(|group| group.owners.iter().enumerate())
        .filter(|(_, owner)| **owner == node.0)
        .map(|(partition, _)| PartitionId(partition as u32))
        .collect();
    own.sort_unstable();
    own.dedup();
    own
}

fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.max(0) as u64, now.tv_nsec.max(0) as u32)
}
