//! Support for the property tests in the folders of the operations: random small graphs, with random placements and in both
//! directions of edges, and the same graphs as sets of pairs, over which the `twin.rs` of each operation gives its
//! definition. `None` stands for a member that is not in the graph.

use crate::{
    GraphAnswer, GraphQuery, NetworkPlan, Operation, OperationError,
    testing::{LocalCluster, MemoryGraph},
};
use kith_schema::{Column, ColumnKind, KindRole};
use kith_types::{Direction, PartitionCount, Workflow};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The number of random cases of each test.
pub(crate) const CASES: u32 = 512;

/// A random graph, the ids that queries name (one of them unknown), and its placement.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) directed: bool,
    pub(crate) direction: Option<Direction>,
    pub(crate) edges: Vec<(u64, u64)>,
    /// Pairs of (member, entity). Entity ids are member ids too.
    pub(crate) entities: Vec<(u64, u64)>,
    lonely: Vec<u64>,
    owners: Vec<u32>,
    background: bool,
    networks: NetworkPlan,
}

/// A column of the edges.
pub(crate) const WEIGHT: &str = "weight";

/// The value of an edge in the column. There are many ties, and an undirected edge has the same value in both directions.
pub(crate) fn weight(from: u64, to: u64) -> u64 {
    (from ^ to) % 5
}

const UNKNOWN: u64 = 999_999;

/// Maps a place to an id: some ids are close together, and some are far apart.
pub(crate) fn id(index: u64) -> u64 {
    if index.is_multiple_of(3) { index * 35_184_372_090 } else { index }
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let pair = || (0..14u64, 0..14u64).prop_map(|(a, b)| (id(a), id(b)));
    let direction = prop_oneof![
        Just(None),
        Just(Some(Direction::Out)),
        Just(Some(Direction::In)),
        Just(Some(Direction::Both))
    ];
    // Chains with a few chords add the long paths that random pairs lack.
    let chain = (vec(pair(), 0..4), 0..14u64).prop_map(|(chords, length)| {
        let links = (0..length).map(|index| (id(index), id(index + 1)));
        links.chain(chords).collect::<Vec<_>>()
    });
    let edges = prop_oneof![2 => vec(pair(), 0..40), 1 => chain];
    let placement = (1..9usize, 1..5u32).prop_flat_map(|(partitions, nodes)| vec(0..nodes, partitions));
    let networks = prop_oneof![Just(NetworkPlan::InTurn), Just(NetworkPlan::AtOnce)];
    (any::<bool>(), direction, edges, vec(pair(), 0..30), placement, any::<bool>(), networks).prop_map(
        |(directed, direction, edges, entities, owners, background, networks)| {
            let direction =
                if directed { direction } else { direction.filter(|&kept| kept == Direction::Both) };
            Case {
                directed,
                direction,
                edges,
                entities,
                lonely: vec![id(20), id(21)],
                owners,
                background,
                networks,
            }
        },
    )
}

impl Case {
    pub(crate) fn cluster(&self) -> LocalCluster {
        let partitions = PartitionCount::new(self.owners.len() as u32).unwrap();
        let mut graph = MemoryGraph::new(partitions);
        graph.add_members(self.lonely.iter().copied());
        let role = if self.directed { KindRole::Directed } else { KindRole::Undirected };
        graph.add_kind("connection", role, &self.edges);
        graph.add_column(Column { name: WEIGHT.to_owned(), kind: ColumnKind::U64 }, weight);
        graph.add_kind("school", KindRole::Entity, &self.entities);
        LocalCluster::new(graph, self.owners.clone()).with_networks(self.networks)
    }

    pub(crate) fn twin(&self) -> Twin {
        let ends = self.edges.iter().filter(|(a, b)| a != b).flat_map(|&(a, b)| [a, b]);
        let members = ends.chain(self.lonely.iter().copied()).chain(self.entities.iter().map(|&(m, _)| m));
        let edges = self.edges.iter().copied().filter(|(a, b)| a != b).collect();
        let natural = if self.directed { Direction::Out } else { Direction::Both };
        Twin { members: members.collect(), edges, direction: self.direction.unwrap_or(natural) }
    }

    pub(crate) fn entity_twin(&self) -> Twin {
        let Twin { members, .. } = self.twin();
        Twin { members, edges: self.entities.iter().copied().collect(), direction: Direction::Out }
    }

    pub(crate) fn query(&self, operation: impl Into<Operation>) -> GraphQuery {
        let workflow = if self.background { Workflow::Background } else { Workflow::Interactive };
        GraphQuery { operation: operation.into(), edge_type: None, direction: self.direction, workflow }
    }
}

pub(crate) fn sorted(ids: BTreeSet<u64>) -> Vec<u64> {
    ids.into_iter().collect()
}

/// Whether the reported member is one of the named ones that are unknown.
pub(crate) fn not_found(got: &Result<GraphAnswer, OperationError>, twin: &Twin, named: &[u64]) -> bool {
    matches!(got, Err(OperationError::MemberNotFound { id }) if named.contains(id) && !twin.members.contains(id))
}

pub(crate) fn ends() -> impl Strategy<Value = (u64, u64)> {
    let end = || prop_oneof![14 => (0..14u64).prop_map(id), 1 => Just(id(20)), 1 => Just(UNKNOWN)];
    (end(), end())
}

/// A set of ids.
pub(crate) type Ids = BTreeSet<u64>;

/// The edges of one kind, among members or between members and entities.
#[derive(Clone, Debug)]
pub(crate) struct Twin {
    /// The members, including those without an edge.
    pub(crate) members: Ids,
    /// Pairs of (from, to).
    pub(crate) edges: BTreeSet<(u64, u64)>,
    /// The direction in which queries follow the edges.
    pub(crate) direction: Direction,
}

impl Twin {
    /// The neighbours of `id`.
    pub(crate) fn near(&self, id: u64) -> Ids {
        let mut near = Ids::new();
        for &(from, to) in &self.edges {
            if from == id && self.direction != Direction::In {
                near.insert(to);
            }
            if to == id && self.direction != Direction::Out {
                near.insert(from);
            }
        }
        near
    }

    pub(crate) fn known(&self, ids: &[u64]) -> Option<()> {
        ids.iter().all(|id| self.members.contains(id)).then_some(())
    }

    /// The first degree.
    pub(crate) fn connections(&self, id: u64) -> Option<Ids> {
        self.known(&[id]).map(|()| self.near(id))
    }
}
