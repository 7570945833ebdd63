//! The questions one can ask of a graph.

use crate::EdgesQuery;
use kith_live::{AssociationRead, Select};
use kith_schema::ColumnNumber;
use kith_types::{Direction, OperationName, PartitionCount, Workflow};

/// One question, as the caller states it. Names are resolved against the
/// graph's [`crate::GraphSchema`] by [`crate::Operation::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphQuery {
    /// What is asked.
    pub operand: Operand,
    /// Edge type to follow; `None` is the graph's first.
    pub edge_type: Option<String>,
    /// Direction; `None` is `Both` for an undirected edge type, `Out` for a directed one.
    pub direction: Option<Direction>,
    /// Who waits for the answer.
    pub workflow: Workflow,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Operand {
    /// The first degree of a member.
    Connections { id: u64 },
    /// The entities of one kind of a member.
    Entities {
        id: u64,
        /// The entity kind.
        kind: String,
    },
    /// The members of an entity.
    Members {
        /// The entity kind.
        kind: String,
        /// The entity; unique only together with its kind.
        entity: u64,
    },
    /// How many connections each member has.
    Degree {
        /// The members, in any order, repeats allowed.
        ids: Vec<u64>,
        /// Only edges whose value in a column lies in a range.
        filter: Option<ColumnFilter>,
    },
    /// The edges of a member with their columns, in an order, page by page.
    Edges(EdgesQuery),
    /// Objects of a live graph (TAO, `obj_get`).
    Objects {
        /// Their ids, in any order, repeats allowed.
        ids: Vec<u64>,
        /// Whether one object was asked for by itself: `ids` has one id, and the answer is [`crate::GraphAnswer::Object`].
        is_single: bool,
    },
    /// Associations of a live graph (TAO, `assoc_get`, `assoc_count`, `assoc_range`, `assoc_time_range`).
    Associations {
        /// The object that the associations leave.
        id1: u64,
        /// What is read of its list.
        read: AssociationRead,
    },
    /// First degree, exactly-second degree, their union and the raw union of the first degree's lists.
    Network {
        id: u64,
        /// `Size` or `Ids`.
        want: Want,
    },
    /// Distance badge 0, 1, 2, 3 or unknown, of one source to many targets (Moolle, Algorithm 1).
    Distance {
        from: u64,
        /// The targets, in any order, repeats allowed.
        to: Vec<u64>,
    },
    /// A shortest path.
    Path {
        /// Where it starts.
        from: u64,
        /// Where it ends.
        to: u64,
        /// Longest path looked for, `0..=6`.
        max: u32,
    },
    /// What two members have in common (Moolle, Algorithm 3).
    Common {
        /// One member.
        id: u64,
        to: u64,
        /// An entity kind, or `None` for common connections.
        kind: Option<String>,
        /// Ids, their number, or whether there is one.
        want: Want,
        /// How to find them.
        plan: CommonPlan,
    },
    /// People you may know: the top `k` of the second degree by number of common connections.
    Suggest {
        id: u64,
        /// How many, `1..=10_000`.
        k: u32,
    },
}

impl Operand {
    /// The operation that answers it.
    pub fn operation(&self) -> OperationName {
        match self {
            Operand::Connections { .. } => OperationName::Connections,
            Operand::Entities { .. } => OperationName::Entities,
            Operand::Members { .. } => OperationName::Members,
            Operand::Degree { .. } => OperationName::Degree,
            Operand::Edges(_) => OperationName::Edges,
            Operand::Objects { .. } => OperationName::ObjectGet,
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

    /// Whether only live graphs answer it: it asks for objects or associations, which loaded graphs do not have.
    pub fn needs_live_graph(&self) -> bool {
        matches!(self, Operand::Objects { .. } | Operand::Associations { .. })
    }
}

/// The edges whose value in a column lies in a range, both ends included. The numbers are those of the column, however they are
/// stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnFilter {
    /// Name of a column of the edge type.
    pub column: String,
    /// The least value; `None`: any.
    pub low: Option<ColumnNumber>,
    /// The greatest value; `None`: any.
    pub high: Option<ColumnNumber>,
}

/// What of a set is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Want {
    /// The ids.
    Ids,
    /// Their number.
    #[default]
    Size,
    /// Whether there is one.
    Exists,
}

/// How to fetch a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkPlan {
    /// The first degree, then the union of its lists from the nodes that hold those (Moolle, Algorithm 2).
    #[default]
    InTurn,
    /// Both from every partition in one exchange: the members that the inverted index finds, and the union of their lists. All
    /// nodes of a group are asked, however few connections there are.
    AtOnce,
}

/// A node looks so many partitions up for one exchange while another exchange costs more.
const PARTITIONS_PER_NODE_MAX: usize = 16;

impl NetworkPlan {
    /// The plan for a cluster of such a shape. [`NetworkPlan::AtOnce`] where there is no fan-out to choose, as one group holds
    /// everything, and its nodes, `nodes_max` at the most, have few partitions each.
    pub fn of(groups: usize, nodes: usize, partitions: PartitionCount, nodes_max: usize) -> Self {
        let is_few = partitions.get() as usize <= PARTITIONS_PER_NODE_MAX * nodes;
        if groups == 1 && nodes <= nodes_max && is_few { Self::AtOnce } else { Self::InTurn }
    }
}

/// How to intersect two members' lists (Moolle §II-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommonPlan {
    /// By the lengths of the lists.
    #[default]
    Auto,
    /// Fetch both lists and intersect at the caller.
    Fetch,
    /// Ask every partition's inverted index.
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
