//! Resolves the names of a query to the edges that it follows.

use crate::{ColumnFilter, GraphQuery, OperationError};
use kith_operators::NetworkKey;
use kith_schema::{Column, ColumnNumber, ColumnRange, EdgeSelector, GraphSchema, KindRole, KindSchema};
use kith_types::Direction;

/// The kind of vertices that the lists hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VertexKind {
    /// Members. The two members themselves do not count.
    Connections,
    /// Entities, whose ids belong to another space.
    Entities,
}

/// A query, with the schema that its names refer to.
pub(crate) struct Resolver<'a> {
    pub(in crate::operations) query: &'a GraphQuery,
    pub(in crate::operations) schema: &'a GraphSchema,
}

impl Resolver<'_> {
    /// The edges that the query follows.
    pub(in crate::operations) fn edge(&self) -> Result<EdgeSelector, OperationError> {
        let kind = match &self.query.edge_type {
            None => self.schema.default_edge_type().ok_or(OperationError::NoEdgeType)?,
            Some(name) => self.schema.kind(name).filter(|kind| kind.is_edge_type()).ok_or_else(|| {
                OperationError::UnknownEdgeType {
                    name: name.clone(),
                    known: self.names(KindSchema::is_edge_type),
                }
            })?,
        };
        self.directed(kind)
    }

    /// The edge type that a selector names.
    pub(in crate::operations) fn kind(&self, edge: &EdgeSelector) -> Result<&KindSchema, OperationError> {
        self.schema.kind(&edge.kind).ok_or(OperationError::NoEdgeType)
    }

    /// Restricts edges by a filter.
    pub(in crate::operations) fn filtered(
        &self,
        edge: EdgeSelector,
        filter: Option<&ColumnFilter>,
    ) -> Result<EdgeSelector, OperationError> {
        let Some(filter) = filter else { return Ok(edge) };
        let column = column_of(self.kind(&edge)?, &filter.column)?;
        let stored = |bound: Option<ColumnNumber>, open: u64| match bound {
            None => Ok(open),
            Some(number) => column.kind.store(number).ok_or_else(|| OperationError::NotOfKind {
                column: column.name.clone(),
                kind: column.kind,
                got: number,
            }),
        };
        let (low, high) = (stored(filter.low, 0)?, stored(filter.high, u64::MAX)?);
        Ok(EdgeSelector { filter: Some(ColumnRange { column: column.name.clone(), low, high }), ..edge })
    }

    /// Refuses a one-sided edge type, because `what` follows edges backwards.
    pub(in crate::operations) fn two_sided(
        &self,
        edge: &EdgeSelector,
        what: &'static str,
    ) -> Result<(), OperationError> {
        let kind = self.kind(edge)?;
        if kind.one_sided { Err(one_sided(kind, what)) } else { Ok(()) }
    }

    /// The key of the member's network over the query's edges.
    pub(in crate::operations) fn key(&self, id: u64) -> Result<NetworkKey, OperationError> {
        let EdgeSelector { kind, direction, .. } = self.edge()?;
        Ok(NetworkKey { id, edge_type: kind, direction })
    }

    /// The edges of an entity kind, from members (`Out`) or from entities (`In`).
    pub(in crate::operations) fn entity(
        &self,
        name: &str,
        direction: Direction,
    ) -> Result<EdgeSelector, OperationError> {
        match self.schema.kind(name) {
            Some(kind) if is_entity_kind(kind) => Ok(selector(kind, direction)),
            _ => {
                Err(OperationError::UnknownKind { name: name.to_owned(), known: self.names(is_entity_kind) })
            }
        }
    }

    /// The edges to what two members share. `None` and names of edge types mean connections, other kinds mean entities.
    pub(in crate::operations) fn shared(
        &self,
        name: Option<&str>,
    ) -> Result<(EdgeSelector, VertexKind), OperationError> {
        let Some(name) = name else { return Ok((self.edge()?, VertexKind::Connections)) };
        let asked = |kind: &KindSchema| kind.is_edge_type() || is_entity_kind(kind);
        match self.schema.kind(name) {
            Some(kind) if kind.is_edge_type() => Ok((self.directed(kind)?, VertexKind::Connections)),
            Some(kind) if is_entity_kind(kind) => Ok((selector(kind, Direction::Out), VertexKind::Entities)),
            _ => Err(OperationError::UnknownKind { name: name.to_owned(), known: self.names(asked) }),
        }
    }

    /// Whether the query names neither an edge type nor a direction, so that it may look at every kind.
    pub(in crate::operations) fn is_any_kind(&self) -> bool {
        self.query.edge_type.is_none() && self.query.direction.is_none()
    }

    /// The edges of every edge type in its usual direction, and from members to entities of every kind.
    pub(in crate::operations) fn every_shared(&self) -> Vec<(EdgeSelector, VertexKind)> {
        let kinds = self.schema.kinds.iter();
        let edges = kinds.clone().filter(|kind| kind.is_edge_type());
        let entities = kinds.filter(|kind| is_entity_kind(kind));
        let edges = edges.map(|kind| (kind.default_edge(), VertexKind::Connections));
        edges.chain(entities.map(|kind| (selector(kind, Direction::Out), VertexKind::Entities))).collect()
    }

    fn directed(&self, kind: &KindSchema) -> Result<EdgeSelector, OperationError> {
        match (kind.role, self.query.direction) {
            (_, None) => Ok(kind.default_edge()),
            (_, Some(Direction::In)) if kind.one_sided => Err(one_sided(kind, "direction \"in\"")),
            (_, Some(Direction::Both)) if kind.one_sided => Err(one_sided(kind, "direction \"both\"")),
            (KindRole::Undirected, Some(Direction::In | Direction::Out)) => {
                Err(OperationError::DirectionNotKept { name: kind.name.clone() })
            }
            (_, Some(direction)) => Ok(selector(kind, direction)),
        }
    }

    fn names(&self, which: impl Fn(&KindSchema) -> bool) -> Vec<String> {
        self.schema.kinds.iter().filter(|kind| which(kind)).map(|kind| kind.name.clone()).collect()
    }
}

fn one_sided(kind: &KindSchema, what: &'static str) -> OperationError {
    OperationError::OneSided { name: kind.name.clone(), what }
}

fn selector(kind: &KindSchema, direction: Direction) -> EdgeSelector {
    EdgeSelector { kind: kind.name.clone(), direction, filter: None }
}

fn is_entity_kind(kind: &KindSchema) -> bool {
    kind.role == KindRole::Entity
}

/// Looks up the column of this name.
///
/// # Errors
/// [`OperationError::UnknownColumn`] if there is no such column.
pub(in crate::operations) fn column_of<'a>(
    kind: &'a KindSchema,
    name: &str,
) -> Result<&'a Column, OperationError> {
    kind.column(name).ok_or_else(|| OperationError::UnknownColumn {
        kind: kind.name.clone(),
        column: name.to_owned(),
        known: kind.columns.iter().map(|column| column.name.clone()).collect(),
    })
}
