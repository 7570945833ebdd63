//! The edge types and entity kinds of a graph, and what selects edges of them.

use crate::Column;
use kith_types::{Direction, StoreVersion};

/// The edge types and entity kinds of one version of a graph, in the order in which they were first loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphSchema {
    /// Every kind; names are distinct.
    pub kinds: Vec<KindSchema>,
}

/// One edge type or entity kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindSchema {
    /// The name, as given in the load command or the entities file.
    pub name: String,
    /// The vertices that it joins.
    pub role: KindRole,
    /// The version of the component. A load replaces the kinds that it contains and keeps the others.
    pub version: StoreVersion,
    /// The columns that are kept beside its ids.
    pub columns: Vec<Column>,
    /// Whether only the lists of [`Direction::Out`] exist, so that the edges into an id cannot be looked up. This applies
    /// to association types of a live graph without an inverse.
    pub one_sided: bool,
}

/// The vertices that a kind joins, and whether its edges have a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KindRole {
    /// Member to member, in both directions: one list per member; only `Direction::Both`.
    Undirected,
    /// Member to member, directed: an outgoing and an incoming list.
    Directed,
    /// Member to entity (school, company …): outgoing lists by member, incoming lists by entity.
    Entity,
    /// No edges: only a list of members.
    MembersOnly,
}

impl KindSchema {
    /// Whether it joins members with members.
    pub fn is_edge_type(&self) -> bool {
        matches!(self.role, KindRole::Undirected | KindRole::Directed)
    }

    /// Looks up the column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The edges that a query without a direction follows.
    pub fn default_edge(&self) -> EdgeSelector {
        let direction = if self.role == KindRole::Undirected { Direction::Both } else { Direction::Out };
        EdgeSelector { kind: self.name.clone(), direction, filter: None }
    }
}

impl GraphSchema {
    /// Looks up the kind of this name.
    pub fn kind(&self, name: &str) -> Option<&KindSchema> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// The graph's first edge type, which is the default of every query.
    pub fn default_edge_type(&self) -> Option<&KindSchema> {
        self.kinds.iter().find(|kind| kind.is_edge_type())
    }
}

/// Selects the edges to follow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeSelector {
    /// The name of an edge type or entity kind of the graph.
    pub kind: String,
    /// The direction in which to follow it.
    pub direction: Direction,
    /// Restricts the edges to those whose column lies in a range; `None` keeps all.
    pub filter: Option<ColumnRange>,
}

/// An inclusive range of values of a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnRange {
    /// Name of the column.
    pub column: String,
    /// The least value, as it is stored ([`crate::ColumnKind::store`]).
    pub low: u64,
    /// The greatest value, as it is stored.
    pub high: u64,
}
