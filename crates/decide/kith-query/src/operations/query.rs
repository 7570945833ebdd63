//! The queries of graphs.

use crate::EdgesQuery;
use kith_live::{AssociationRead, ObjectFind, Select};
use kith_schema::ColumnNumber;
use kith_types::{Direction, OperationName, PartitionCount, Workflow};

/// One query, as the caller states it. [`crate::Operation::new`] resolves its names with the graph's
/// [`kith_schema::GraphSchema`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphQuery {
    /// The kind of query, with its parameters.
    pub operand: Operand,
    /// The edge type to follow; `None` is the graph's first.
    pub edge_type: Option<String>,
    /// The direction; `None` is `Both` for an undirected edge type, and `Out` for a directed one.
    pub direction: Option<Direction>,
    /// Whether somebody waits for the answer.
    pub workflow: Workflow,
}

/// The kind of query, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Operand {
    /// The first degree of a member.
    Connections { id: u64 },
    /// The entities of one kind that a member has edges to.
    Entities {
        id: u64,
        /// The entity kind.
        kind: String,
    },
    /// The members that have edges to an entity.
    Members {
        /// The entity kind.
        kind: String,
        /// The entity; unique only together with its kind.
        entity: u64,
    },
    /// The number of connections of each member.
    Degree {
        /// The members, in any order, repeats allowed.
        ids: Vec<u64>,
        /// Restricts the edges to those whose value in a column lies in a range.
        filter: Option<ColumnFilter>,
    },
    /// The edges of a member with their columns, in an order, page by page.
    Edges(EdgesQuery),
    /// Objects of a live graph (TAO, `obj_get`).
    Objects {
        /// The ids, in any order; repeats are allowed.
        ids: Vec<u64>,
        /// Whether a single object was requested: `ids` has one id, and the answer is [`crate::GraphAnswer::Object`].
        is_single: bool,
    },
    /// The ids of objects of a live graph that have one of the given values in a field with an index.
    Find(ObjectFind),
    /// Associations of a live graph (TAO, `assoc_get`, `assoc_count`, `assoc_range`, `assoc_time_range`).
    Associations {
        /// The object that the associations leave.
        id1: u64,
        /// The part of its list to read.
        read: AssociationRead,
    },
    /// The first degree, the members at distance exactly 2, their union, and the raw union of the first degree's lists.
    Network {
        id: u64,
        /// Either `Size` or `Ids`.
        want: Want,
    },
    /// Distance badges 0, 1, 2, 3 or unknown, from one source to many targets (Moolle, Algorithm 1).
    Distance {
        from: u64,
        /// The targets, in any order, repeats allowed.
        to: Vec<u64>,
    },
    /// A shortest path.
    Path {
        /// The start.
        from: u64,
        /// The end.
        to: u64,
        /// The longest path to search for, `0..=6`.
        max: u32,
    },
    /// The common connections or entities of two members (Moolle, Algorithm 3).
    Common {
        /// One member.
        id: u64,
        to: u64,
        /// An edge type or an entity kind. `None` means the edge type of the query, but for `Want::Exists` in a query that
        /// names neither an edge type nor a direction, every kind.
        kind: Option<String>,
        /// The requested form of the set.
        want: Want,
        /// The plan for finding them.
        plan: CommonPlan,
    },
    /// The people that a member may know: the first `k` members of the second degree by number of common connections.
    Suggest {
        id: u64,
        /// The number of suggestions, `1..=10_000`.
        k: u32,
    },
}

impl Operand {
    /// The operation that answers the query.
    pub fn operation(&self) -> OperationName {
        match self {
            Operand::Connections { .. } => OperationName::Connections,
            Operand::Entities { .. } => OperationName::Entities,
            Operand::Members { .. } => OperationName::Members,
            Operand::Degree { .. } => OperationName::Degree,
            Operand::Edges(_) => OperationName::Edges,
            Operand::Objects { .. } => OperationName::ObjectGet,
            Operand::Find(_) => OperationName::ObjectFind,
            Operand::Associations { read, .. } => match read.select {
                Select::Ids { .. } => OperationName::AssocGet,
                Select::Count => OperationName::AssocCount,
                Select::Range { .. } => OperationName::AssocRange,
                Select::Times { .. } => OperationName::AssocTimeRange,
            },
            Operand::Network { .. } => OperationName::Network,
            Operand::Distance { .. } => OperationName::Distance,
            Operand::Path { .. } => OperationName::Path,
            Operand::Common { .. } => OperationName::Common,
            Operand::Suggest { .. } => OperationName::Suggest,
        }
    }

    /// Whether the query asks for objects or associations, which only live graphs have.
    pub fn needs_live_graph(&self) -> bool {
        matches!(self, Operand::Objects { .. } | Operand::Find(_) | Operand::Associations { .. })
    }
}

/// Selects the edges whose value in a column lies in a range, both ends included. The bounds are numbers of the column's
/// kind, not stored values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnFilter {
    /// The name of a column of the edge type.
    pub column: String,
    /// The least value; `None` means that there is no lower bound.
    pub low: Option<ColumnNumber>,
    /// The greatest value; `None` means that there is no upper bound.
    pub high: Option<ColumnNumber>,
}

/// The requested form of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Want {
    /// The ids.
    Ids,
    /// The number of ids.
    #[default]
    Size,
    /// Whether there is any id.
    Exists,
}

/// The way to fetch a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkPlan {
    /// First the first degree, then the union of its lists from the nodes that hold them (Moolle, Algorithm 2).
    #[default]
    InTurn,
    /// Both degrees from every partition in one exchange: the members that the inverted index finds, and the union of their
    /// lists. All nodes of a group are asked, even for few connections.
    AtOnce,
}

/// The number of partitions per node up to which looking up all of them costs less than another exchange.
const PARTITIONS_PER_NODE_MAX: usize = 16;

impl NetworkPlan {
    /// The plan for a cluster of this shape. [`NetworkPlan::AtOnce`] applies if one group holds everything, so that there
    /// is no fan-out to choose, and has at most `nodes_max` nodes with few partitions each.
    pub fn of(groups: usize, nodes: usize, partitions: PartitionCount, nodes_max: usize) -> Self {
        let is_few = partitions.get() as usize <= PARTITIONS_PER_NODE_MAX * nodes;
        if groups == 1 && nodes <= nodes_max && is_few { Self::AtOnce } else { Self::InTurn }
    }
}

/// The way to intersect two members' lists (Moolle §II-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommonPlan {
    /// Decides by the lengths of the lists.
    #[default]
    Auto,
    /// Fetches both lists and intersects them at the caller.
    Fetch,
    /// Asks every partition's inverted index.
    Push,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_one_exchange_where_there_is_no_fan_out_to_choose() {
        let plan = |groups, nodes, partitions| {
            let partitions = PartitionCount::new(partitions).expect("a valid count");
            NetworkPlan::of(groups, nodes, partitions, 4)
        };
        assert_eq!(plan(1, 3, 24), NetworkPlan::AtOnce);
        assert_eq!(plan(1, 4, 64), NetworkPlan::AtOnce);
        assert_eq!(plan(1, 5, 24), NetworkPlan::InTurn, "too many nodes");
        assert_eq!(plan(1, 3, 240), NetworkPlan::InTurn, "too many partitions");
        assert_eq!(plan(2, 6, 24), NetworkPlan::InTurn, "two groups");
    }
}
