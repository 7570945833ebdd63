//! The questions one can ask of a graph.

use kith_types::{Direction, Workflow};

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
pub enum Operand {
    /// The first degree of a member.
    Connections {
        /// The member.
        id: u64,
    },
    /// The entities of one kind of a member.
    Entities {
        /// The member.
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
    /// First degree, exactly-second degree, their union and the raw union of the first degree's lists.
    Network {
        /// The member.
        id: u64,
        /// `Size` or `Ids`.
        want: Want,
    },
    /// Distance badge 0, 1, 2, 3 or unknown, of one source to many targets (Moolle, Algorithm 1).
    Distance {
        /// The source.
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
        /// The other.
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
        /// The member.
        id: u64,
        /// How many, `1..=10_000`.
        k: u32,
    },
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
