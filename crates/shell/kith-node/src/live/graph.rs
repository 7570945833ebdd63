//! One live graph on a node: a short list of its parts. Each part holds what it uses of the others.
//!
//! ```text
//! LiveEvaluator ─► ElementReader ─► RowReader ─┐
//!       │       ─► IndexReader                 ├─► Freshener ─► FollowedLogs ─► LiveLists ─► HeldPartitions
//!       └──────────────────────────────────────┘                                         ─► GraphDatabase
//! ```

use super::{
    database::GraphDatabase,
    evaluate::{LiveEvaluator, LiveValue},
    find::IndexReader,
    freshness::{Freshener, report_bytes},
    list_builder::ListBuilder,
    lists::LiveLists,
    logs::FollowedLogs,
    message::LeadMessage,
    partitions::HeldPartitions,
    read::ElementReader,
    rows::RowReader,
    scan::Scanner,
    types::KnownTypes,
};
use kith_database::Database;
use kith_live::GraphTypes;
use kith_topology::leaders_of;
use kith_types::{NodeId, PartitionCount, PartitionId, Term};
use kith_wire::{documents::TopologyDocument, v1};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// The parts of a live graph.
pub(super) struct LiveGraphParts {
    pub name: String,
    pub node: NodeId,
    pub count: PartitionCount,
    pub types: Arc<GraphTypes>,
    pub database: Arc<dyn Database>,
    pub partitions: Arc<HeldPartitions>,
}

/// One live graph on a node.
pub(crate) struct LiveGraph {
    name: String,
    node: NodeId,
    pub(super) count: PartitionCount,
    types: Arc<KnownTypes>,
    pub(super) database: Arc<GraphDatabase>,
    pub(super) partitions: Arc<HeldPartitions>,
    pub(super) lists: Arc<LiveLists>,
    pub(super) logs: Arc<FollowedLogs>,
    pub(super) freshener: Arc<Freshener>,
    pub(super) evaluator: LiveEvaluator,
    pub(super) scanner: Scanner,
    /// The channel to the task that leads.
    pub(super) lead: mpsc::UnboundedSender<LeadMessage>,
    stop: CancellationToken,
}

impl LiveGraph {
    /// Returns a graph that leads and follows no partitions until its tasks run and [`LiveGraph::follow`] is called.
    pub(super) fn new(
        parts: LiveGraphParts,
        lead: mpsc::UnboundedSender<LeadMessage>,
        stop: CancellationToken,
    ) -> Self {
        let LiveGraphParts { name, node, count, types, database, partitions } = parts;
        let database = Arc::new(GraphDatabase::new(database));
        let (shared, held) = (|| Arc::clone(&database), || Arc::clone(&partitions));
        let lists = Arc::new(LiveLists::new(count, &types, shared(), held()));
        partitions.set_types(Arc::clone(&types));
        let types = Arc::new(KnownTypes::new(types));
        let known = || Arc::clone(&types);
        let logs = Arc::new(FollowedLogs {
            graph: name.clone(),
            database: shared(),
            partitions: held(),
            types: known(),
            lists: Arc::clone(&lists),
            lead: lead.clone(),
        });
        let freshener = Arc::new(Freshener::new(Arc::clone(&logs)));
        let rows = Arc::new(RowReader::new(Arc::clone(&logs), Arc::clone(&freshener)));
        let evaluator = LiveEvaluator {
            graph: name.clone(),
            node,
            count,
            partitions: held(),
            types: known(),
            logs: Arc::clone(&logs),
            freshener: Arc::clone(&freshener),
            lists: Arc::clone(&lists),
            elements: ElementReader { count, types: known(), rows },
            indexes: IndexReader {
                database: shared(),
                partitions: held(),
                types: known(),
                logs: Arc::clone(&logs),
            },
        };
        let scanner = Scanner { database: shared(), partitions: held(), types: known() };
        Self {
            name,
            node,
            count,
            types,
            database,
            partitions,
            lists,
            logs,
            freshener,
            evaluator,
            scanner,
            lead,
            stop,
        }
    }

    /// Returns the builder of this graph's lists.
    pub(super) fn list_builder(&self) -> ListBuilder {
        ListBuilder {
            graph: self.name.clone(),
            database: Arc::clone(&self.database),
            partitions: Arc::clone(&self.partitions),
            types: Arc::clone(&self.types),
            lists: Arc::clone(&self.lists),
        }
    }

    /// Takes over the types, and leads and follows the partitions that the topology gives to this node. A partition that
    /// this node still leads is kept until it is handed over.
    pub(super) fn follow(&self, topology: &TopologyDocument, types: Arc<GraphTypes>) {
        let known = self.types();
        if !Arc::ptr_eq(&types, &known) && types != known {
            // Reads that find a type here also find its lists.
            self.lists.set_types(&types);
            self.partitions.set_types(Arc::clone(&types));
            self.types.set(Arc::clone(&types));
            let _ = self.lead.send(LeadMessage::Types(types));
        }
        let leads = led_by(topology, (&self.name, self.count), self.node);
        let mut own = owned(topology, self.node);
        own.extend(leads.keys());
        self.partitions.hold(&own).into_iter().for_each(|lost| self.lists.close(lost));
        let _ = self.lead.send(LeadMessage::Leads(leads));
    }

    /// Returns the identity of the graph.
    pub fn identity(&self) -> u64 {
        self.types().identity
    }

    /// Returns the types of the graph.
    pub fn types(&self) -> Arc<GraphTypes> {
        self.types.get()
    }

    /// Evaluates a request over this graph.
    ///
    /// # Errors
    /// The status for the caller.
    pub async fn evaluate(&self, request: &v1::EvaluateRequest) -> Result<LiveValue, Status> {
        self.evaluator.evaluate(request).await
    }

    /// Returns the positions that all held partitions have applied, and why the database does not work, if it does not.
    pub(super) fn applied_logs(&self) -> v1::AppliedLogs {
        let applied = self.partitions.all_applied();
        let unbuilt =
            applied.iter().filter(|(partition, _)| !self.lists.are_built(*partition)).count() as u32;
        let logs = applied.into_iter().map(|(partition, point)| (partition.0, point.position.0));
        let (partitions, positions): (Vec<u32>, Vec<u64>) = logs.unzip();
        let error = self.database.last_error().map(|error| error.to_string()).unwrap_or_default();
        v1::AppliedLogs { graph: self.name.clone(), partitions, positions, error, unbuilt }
    }

    /// Stops leading and following, and closes the database.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        report_bytes(&self.name, 0, 0);
        self.database.close().await;
    }
}

/// Returns the partitions of a graph that a node leads according to the topology, with the terms.
pub(super) fn led_by(
    topology: &TopologyDocument,
    (graph, count): (&str, PartitionCount),
    node: NodeId,
) -> BTreeMap<PartitionId, Term> {
    let leaders = topology.leaders.iter().find(|leaders| leaders.graph == graph);
    let leaders = leaders.map(leaders_of).unwrap_or_default();
    let led = count.iter().filter_map(|partition| {
        let leader = leaders.of(partition).filter(|leader| leader.node == node)?;
        Some((partition, leader.term))
    });
    led.collect()
}

/// Returns the partitions that a node owns in any group.
fn owned(topology: &TopologyDocument, node: NodeId) -> BTreeSet<PartitionId> {
    let groups = topology.cluster.groups.iter();
    groups
        .flat_map(|group| group.owners.iter().enumerate())
        .filter(|(_, owner)| **owner == node.0)
        .map(|(partition, _)| PartitionId(partition as u32))
        .collect()
}
