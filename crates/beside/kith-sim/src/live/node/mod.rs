//! A node: a process that leads and follows partitions, as `kith-node/src/live` does.

mod follow;
mod lead;
mod read;

pub(super) use follow::ReadError;
pub(super) use read::ReadRequest;

use super::Shared;
use super::config::LiveConfig;
use super::metadata::SeenLeaders;
use super::promise::Giver;
use super::{Rules, executor::TaskId};
use kith_cache::live::LiveCaches;
use kith_live::{ClockReading, DeliveryError, Duties, GraphTypes, Leader, WriteAnswer, WriteError};
use kith_routing::RoutingTable;
use kith_types::{LogPoint, NodeId, PartitionCount, PartitionId, Timestamp};
use rand::RngExt;
use rand::rngs::StdRng;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The interval at which a node renews its lease.
const LEASE_INTERVAL: Duration = Duration::from_secs(1);

/// One process of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Me {
    pub(super) index: usize,
    pub(super) incarnation: u32,
}

/// A process of a node, for its tasks.
#[derive(Clone)]
pub(super) struct NodeProcess {
    pub(super) world: Shared,
    pub(super) me: Me,
}

pub(super) type WriteGiver = Giver<Result<WriteAnswer, WriteError>>;

pub(super) struct Node {
    id: NodeId,
    /// The partitions that the node holds.
    held: Vec<PartitionId>,
    pub(super) incarnation: u32,
    pub(super) is_up: bool,
    pub(super) frozen_until: Timestamp,
    /// The number of seconds that the node's clock advances in one second.
    pub(super) clock_rate: f64,
    started: Timestamp,
    leader: Leader,
    duties: Duties,
    pub(super) caches: LiveCaches<Giver<()>>,
    /// For each partition, the right to read its log. Only one task at a time may have it.
    turns: BTreeMap<PartitionId, Rc<Turn>>,
    callers: BTreeMap<u64, WriteGiver>,
    senders: BTreeMap<u64, Giver<Result<LogPoint, DeliveryError>>>,
    last_id: u64,
    /// The time at which the leader is woken, unless an event wakes it earlier.
    timer: Option<Timestamp>,
    seen: SeenLeaders,
}

#[derive(Default)]
struct Turn {
    is_taken: Cell<bool>,
    waits: RefCell<Vec<TaskId>>,
}

impl Node {
    pub(super) fn new(
        config: &LiveConfig,
        rules: &Rules,
        table: &RoutingTable,
        index: usize,
        types: &Arc<GraphTypes>,
        random: &mut StdRng,
    ) -> Self {
        let count = table.partition_count();
        let id = table.nodes()[index].id;
        let is_here = |partition: &PartitionId| {
            table.replicas(*partition).iter().any(|replica| table.node_at(*replica).id == id)
        };
        let drift = config.drift * (random.random::<f64>() * 2.0 - 1.0);
        let mut node = Self {
            id,
            held: count.iter().filter(is_here).collect(),
            incarnation: 0,
            is_up: true,
            frozen_until: Timestamp::ZERO,
            clock_rate: 1.0 + drift,
            started: Timestamp::ZERO,
            leader: Leader::new(Arc::clone(types), count).with_guards(rules.leaders),
            duties: Duties::default(),
            caches: LiveCaches::new(config.caches),
            turns: BTreeMap::new(),
            callers: BTreeMap::new(),
            senders: BTreeMap::new(),
            last_id: 0,
            timer: None,
            seen: SeenLeaders::default(),
        };
        node.open_caches(config, rules);
        node
    }

    fn open_caches(&mut self, config: &LiveConfig, rules: &Rules) {
        self.caches = LiveCaches::new(config.caches);
        for &partition in &self.held {
            let mut cache = self.caches.open(partition, LogPoint::default());
            if let Some(guard) = rules.caches_without {
                cache.switch_off(guard);
            }
            self.turns.insert(partition, Rc::default());
        }
    }

    /// Resets all state that a process keeps in memory.
    fn forget(&mut self, config: &LiveConfig, rules: &Rules, parts: (&Arc<GraphTypes>, PartitionCount)) {
        self.leader = Leader::new(Arc::clone(parts.0), parts.1).with_guards(rules.leaders);
        self.duties = Duties::default();
        self.callers.clear();
        self.senders.clear();
        self.timer = None;
        self.seen = SeenLeaders::default();
        self.open_caches(config, rules);
    }

    /// Returns the time that the node's clock shows.
    fn local(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.since(self.started).mul_f64(self.clock_rate))
    }

    fn time(&self, now: Timestamp) -> ClockReading {
        let since_start = self.local(now);
        ClockReading { since_start, since_1970: since_start.0.as_millis() as u64 }
    }

    /// Returns the time at which the node's clock shows `local`, rounded up.
    fn when(&self, local: Timestamp) -> Timestamp {
        self.started + local.0.div_f64(self.clock_rate) + Duration::from_micros(2)
    }

    fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

/// Starts the tasks of a process.
pub(super) fn start(world: &Shared, index: usize) {
    let incarnation = world.nodes[index].borrow().incarnation;
    let me = Me { index, incarnation };
    world.send_news(index);
    follow::start(&NodeProcess { world: world.clone(), me });
    let own = world.clone();
    world.executor.spawn(me.process(), async move {
        loop {
            if own.back().await.is_some() {
                let node = own.nodes[index].borrow().id;
                own.metadata.borrow_mut().renew_lease(node, own.executor.now());
            }
            own.executor.sleep(LEASE_INTERVAL).await;
        }
    });
}

/// Ends the process of a node, which loses everything in memory.
pub(super) fn crash(world: &Shared, index: usize) {
    let me = {
        let mut node = world.nodes[index].borrow_mut();
        let me = Me { index, incarnation: node.incarnation };
        node.is_up = false;
        node.frozen_until = Timestamp::ZERO;
        me
    };
    world.executor.kill(me.process());
    let mut node = world.nodes[index].borrow_mut();
    node.forget(&world.config, &world.rules, (&world.types, world.count));
}

/// Starts a new process of a node that is down.
pub(super) fn restart(world: &Shared, index: usize) {
    {
        let mut node = world.nodes[index].borrow_mut();
        if node.is_up {
            return;
        }
        node.incarnation += 1;
        node.is_up = true;
        node.started = world.executor.now();
    }
    start(world, index);
}
