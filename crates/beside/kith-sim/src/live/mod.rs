//! A simulated cluster that serves a live graph with the production code of leaders, caches and the assignment of leaders
//! (`docs/design/0019-live-graph.md`, "Simulated").
//!
//! Everything happens in virtual time, in an order that depends only on the seed. Clients write to the leaders that routers
//! know, and read from replicas. Nodes lead and follow partitions. A database and a metadata store hold the same data as in
//! a real cluster. Messages are lost, delayed, reordered and repeated. Nodes crash and freeze, and their clocks run too fast
//! or too slow. Answers to commits are lost, and the database is down for a while or is replaced by an older copy of itself.
//! `Truth` sees every transaction and every answer, and records every broken promise.
//!
//! `node` repeats the logic of `kith-node/src/live` that waits for databases and messages, because that code is bound to
//! tokio. The decisions are not repeated: `node` calls [`kith_live::Leader`], [`kith_live::Duties`],
//! [`kith_routing::Leaders`] and [`kith_cache::live`], as real nodes do.
//!
//! ```
//! use kith_sim::live::{Rules, simulate};
//!
//! let report = simulate(7, &Rules::default());
//! assert_eq!(report.violations, Vec::<String>::new());
//! assert_eq!(report, simulate(7, &Rules::default()), "equal seeds, equal runs");
//! ```

mod client;
mod config;
mod database;
mod executor;
mod faults;
mod metadata;
mod network;
mod node;
mod promise;
mod report;
mod router;
mod truth;
mod writes;

pub use report::Report;

use config::LiveConfig;
use database::Database;
use executor::{Executor, Process};
use kith_cache::live::Guard;
use kith_live::{GraphTypes, Guards, Ticket, testing::fixture};
use kith_routing::{RoutingTable, placement::uniform_table};
use kith_types::{NodeId, PartitionCount, PartitionId, Timestamp};
use metadata::{Metadata, SeenLeaders};
use network::Network;
use node::{Me, Node, NodeProcess};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use truth::Truth;

const ROUTERS: usize = 2;
/// The time after the last fault within which the cluster must recover and complete all intents.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// The time that the last reads and writes may take together.
const LAST_WITHIN: Duration = Duration::from_secs(12);

/// The rules that the code keeps; by default all of them. A simulation with one rule switched off shows which fault this
/// rule prevents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// The rules of leaders.
    pub leaders: Guards,
    /// A rule of caches that is switched off.
    pub caches_without: Option<Guard>,
    /// Whether clients believe the error of a repeated write, although the first attempt may have taken effect.
    pub clients_trust_errors: bool,
}

/// Runs a cluster for about half a minute of virtual time, which takes some milliseconds.
pub fn simulate(seed: u64, rules: &Rules) -> Report {
    World::run(LiveConfig::of_seed(seed), rules)
}

type Shared = Rc<World>;

/// The state of a run.
struct World {
    config: LiveConfig,
    rules: Rules,
    executor: Executor,
    network: Network,
    table: RoutingTable,
    count: PartitionCount,
    types: Arc<GraphTypes>,
    database: RefCell<Database>,
    truth: RefCell<Truth>,
    metadata: RefCell<Metadata>,
    nodes: Vec<RefCell<Node>>,
    /// The leaders as each router knows them.
    routers: RefCell<Vec<SeenLeaders>>,
    /// The node that is being drained, if there is one.
    leaving: Cell<Option<NodeId>>,
    /// The ticket of each client, which covers its writes.
    tickets: RefCell<Vec<Ticket>>,
    /// The number of the last reads and writes that have not ended.
    last_left: Cell<usize>,
    report: RefCell<Report>,
}

impl World {
    fn new(config: LiveConfig, rules: &Rules) -> Self {
        let count = PartitionCount::new(config.partitions).expect("a cluster has partitions");
        let table = uniform_table(config.groups, config.nodes_per_group, count, config.seed);
        let table = table.expect("a cluster has nodes");
        let types = Arc::new(fixture::types());
        let mut random = StdRng::seed_from_u64(config.seed ^ 0x6b69_7468_7369_6d00);
        let nodes = (0..table.nodes().len())
            .map(|index| Node::new(&config, rules, &table, index, &types, &mut random))
            .map(RefCell::new);
        Self {
            executor: Executor::default(),
            nodes: nodes.collect(),
            network: Network::new(random, config.slow_one_in),
            count,
            database: RefCell::new(Database::new(count)),
            truth: RefCell::new(Truth::new(count, Arc::clone(&types))),
            metadata: RefCell::default(),
            routers: RefCell::new(vec![SeenLeaders::default(); ROUTERS]),
            leaving: Cell::default(),
            tickets: RefCell::new(vec![Ticket::new(types.identity); config.clients]),
            last_left: Cell::default(),
            report: RefCell::default(),
            rules: *rules,
            table,
            types,
            config,
        }
    }

    fn run(config: LiveConfig, rules: &Rules) -> Report {
        let faults_end = Timestamp(config.faults_end);
        let world = Rc::new(Self::new(config, rules));
        (0..ROUTERS).for_each(|_| router::start(&world));
        (0..world.nodes.len()).for_each(|index| node::start(&world, index));
        (0..world.config.clients).for_each(|number| client::start(&world, number));
        faults::schedule(&world);
        world.executor.run_until(&world, faults_end);
        faults::end(&world);
        world.executor.run_until(&world, faults_end + SETTLES_WITHIN);
        world.truth.borrow_mut().check_settled(&world.database.borrow());
        client::finish(&world);
        world.executor.run_until(&world, faults_end + SETTLES_WITHIN + LAST_WITHIN);
        let mut truth = world.truth.borrow_mut();
        truth.check_answers(&world.database.borrow());
        if world.last_left.get() != 0 {
            truth.fault(format!("{} of the last reads and writes did not end", world.last_left.get()));
        }
        let violations = std::mem::take(&mut truth.violations);
        drop(truth);
        let refused = world.nodes.iter().map(|node| node.borrow().caches.counters().refused).sum();
        world.executor.end();
        let report = std::mem::take(&mut *world.report.borrow_mut());
        let truth = world.truth.borrow();
        Report {
            violations,
            commits: truth.commits,
            terms: truth.terms,
            replaced: truth.replaced_times(),
            fills_refused: refused,
            ..report
        }
    }

    fn index_of(&self, node: NodeId) -> Option<usize> {
        self.table.nodes().iter().position(|known| known.id == node)
    }

    /// Whether a node holds a partition.
    fn holds(&self, index: usize, partition: PartitionId) -> bool {
        let id = self.table.nodes()[index].id;
        self.table.replicas(partition).iter().any(|replica| self.table.node_at(*replica).id == id)
    }

    fn any_replica(&self, partition: PartitionId) -> usize {
        let replicas: Vec<usize> =
            (0..self.nodes.len()).filter(|index| self.holds(*index, partition)).collect();
        replicas[self.network.below(replicas.len() as u64) as usize]
    }

    /// Returns the time until which a node is frozen; `None` if it is not frozen.
    fn frozen_until(&self, index: usize) -> Option<Timestamp> {
        let until = self.nodes[index].borrow().frozen_until;
        (self.executor.now() < until).then_some(until)
    }

    /// Delivers a message to the current process of a node. `work` is carried out once the process is not frozen; it is
    /// dropped if the process is down.
    fn arrive(self: &Shared, index: usize, work: impl FnOnce(&NodeProcess) + 'static) {
        let (is_up, incarnation) = {
            let node = self.nodes[index].borrow();
            (node.is_up, node.incarnation)
        };
        if is_up {
            self.when_it_runs(Me { index, incarnation }, work);
        }
    }

    /// Carries out `work` in a process as soon as the process is not frozen, unless it has ended by then.
    fn when_it_runs(self: &Shared, me: Me, work: impl FnOnce(&NodeProcess) + 'static) {
        if !self.is_alive(me) {
            return;
        }
        match self.frozen_until(me.index) {
            Some(until) => {
                let delay = until.since(self.executor.now());
                self.executor.after(delay, move |world| world.when_it_runs(me, work));
            }
            None => work(&NodeProcess { world: self.clone(), me }),
        }
    }

    /// Whether a process is still running (it may be frozen).
    fn is_alive(&self, me: Me) -> bool {
        let node = self.nodes[me.index].borrow();
        node.is_up && node.incarnation == me.incarnation
    }
}

impl Me {
    fn process(self) -> Process {
        Process::Node { index: self.index, incarnation: self.incarnation }
    }
}
