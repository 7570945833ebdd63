//! What kinds of edges a graph has.

use crate::{EdgeSelector, OperationError};
use kith_schema::Column;
use kith_types::{Direction, StoreVersion};

/// The edge types and entity kinds of one graph version, in the order in which they were first loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphSchema {
    /// Every kind; names are distinct.
    pub kinds: Vec<KindSchema>,
}

/// One edge type or entity kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindSchema {
    /// As in the load command or the entities file.
    pub name: String,
    /// What it joins.
    pub role: KindRole,
    /// Which build of it: a load replaces the kinds that it brings and keeps the others.
    pub version: StoreVersion,
    /// The columns kept beside its ids.
    pub columns: Vec<Column>,
    /// Whether only the lists of [`Direction::Out`] are there: nothing tells who leads to an id. So it is with associations of a live
    /// graph that have no inverse.
    pub one_sided: bool,
}

/// What a kind joins, and whether its edges have a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KindRole {
    /// Member to member, both ways: one list per member; `Direction::Both` only.
    Undirected,
    /// Member to member along arcs: an out and an in list.
    Directed,
    /// Member to entity (school, company …): out lists by member, in lists by entity.
    Entity,
    /// No edges: a list of members only.
    MembersOnly,
}

impl KindSchema {
    /// Whether it joins members with members.
    pub fn is_edge_type(&self) -> bool {
        matches!(self.role, KindRole::Undirected | KindRole::Directed)
    }

    /// The column of this name.
    ///
    /// # Errors
    /// [`OperationError::UnknownColumn`].
    pub fn column(&self, name: &str) -> Result<&Column, OperationError> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| OperationError::UnknownColumn {
            kind: self.name.clone(),
            column: name.to_owned(),
            known: self.columns.iter().map(|column| column.name.clone()).collect(),
        })
    }

    /// The edges that a query follows which names no direction.
    pub fn default_edge(&self) -> EdgeSelector {
        let direction = if self.role == KindRole::Undirected { Direction::Both } else { Direction::Out };
        EdgeSelector { kind: self.name.clone(), direction, filter: None }
    }
}

impl GraphSchema {
    /// The kind of this name.
    pub fn kind(&self, name: &str) -> Option<&KindSchema> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// The graph's first edge type: the default of every query.
    pub fn default_edge_type(&self) -> Option<&KindSchema> {
        self.kinds.iter().find(|kind| kind.is_edge_type())
    }
}
