//! The lists of nodes as edges.

use super::ids::{VertexKey, edge_id, number_id};
use kith_gremlin::{
    GremlinError,
    value::{Edge, Property, Value, Vertex},
};
use kith_operators::{EdgesEntry, ListEntry, Operator, Value as Evaluated};
use kith_query::QueryError;
use kith_schema::{Column, ColumnKind, ColumnNumber, ColumnRange, EdgeSelector, KindRole, KindSchema};
use kith_traversal::graph::ElementTest;
use kith_types::{Direction as Side, ErrorCode};
use std::sync::Arc;

/// The edges of a vertex as a node returns them: the other ends, and the values of the columns of each.
pub(super) type Row = Vec<(u64, Vec<(Arc<str>, Value)>)>;

pub(super) fn selector(kind: &str, direction: Side) -> EdgeSelector {
    EdgeSelector { kind: kind.to_owned(), direction, filter: None }
}

pub(super) fn expand(edge: EdgeSelector, longest: u64) -> Operator {
    Operator::Expand { input: Box::new(Operator::Keys), edge, longest }
}

pub(super) fn lists(evaluated: Evaluated, expected: usize) -> Result<Vec<ListEntry>, GremlinError> {
    match evaluated {
        Evaluated::Lists(entries) if entries.len() == expected => Ok(entries),
        other => Err(unexpected(&other)),
    }
}

pub(super) fn unexpected(value: &Evaluated) -> GremlinError {
    let detail = format!("a fan-out of a traversal was answered by {}", value.kind().name());
    GremlinError::new(ErrorCode::Internal, QueryError::Internal { detail }.to_string())
}

/// The range of the first of these tests that nodes can apply to a column of a kind. Nodes take only one, and the traversal makes
/// all tests.
pub(super) fn column_range(kind: &KindSchema, tests: &[ElementTest]) -> Option<ColumnRange> {
    tests.iter().find_map(|ElementTest { key, test }| {
        let key = key.as_ref()?;
        let column = kind.columns.iter().find(|column| *column.name == **key)?;
        let stored = |bound: Option<&Value>| column.kind.store(comparable(column.kind, bound?)?);
        let (low, high) = test.bounds();
        let (low, high) = (stored(low), stored(high));
        let (low, high) = (low.unwrap_or(0), high.or(low.map(|_| u64::MAX))?);
        Some(ColumnRange { column: column.name.clone(), low, high })
    })
}

/// A number in the form in which a column compares it; `None` if the column would compare it in another way than Gremlin. A
/// column of `f64` rounds whole numbers beyond 2⁵³.
fn comparable(kind: ColumnKind, value: &Value) -> Option<ColumnNumber> {
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
    let whole = match value {
        Value::Byte(value) => Some(i64::from(*value)),
        Value::Short(value) => Some(i64::from(*value)),
        Value::Int(value) => Some(i64::from(*value)),
        Value::Long(value) => Some(*value),
        _ => None,
    };
    match (kind, whole, value) {
        (ColumnKind::F64, Some(whole), _) => {
            (whole.unsigned_abs() <= EXACT).then_some(ColumnNumber::I64(whole))
        }
        (ColumnKind::F64, None, Value::Double(value)) => Some(ColumnNumber::F64(*value)),
        (_, Some(whole), _) => Some(ColumnNumber::I64(whole)),
        _ => None,
    }
}

/// The edges of a page, with these columns.
pub(super) fn row_of(columns: &[Column], entry: EdgesEntry) -> Row {
    let EdgesEntry::Page(page) = entry else { return Row::new() };
    let value = |column: usize, stored: u64| match columns[column].kind.value(stored) {
        ColumnNumber::U64(number) => number_id(number),
        ColumnNumber::I64(number) => Value::Long(number),
        ColumnNumber::F64(number) => Value::Double(number),
    };
    let properties = |at: usize| {
        let named = columns.iter().zip(&page.columns).enumerate();
        named
            .map(|(column, (declared, values))| (declared.name.as_str().into(), value(column, values[at])))
            .collect()
    };
    page.ids.iter().enumerate().map(|(at, id)| (*id, properties(at))).collect()
}

/// The edges of a vertex. `is_out` says whether the edges begin there.
pub(super) fn edges_of(kind: &KindSchema, own: &VertexKey, is_out: bool, row: Row) -> Vec<Arc<Edge>> {
    let label: Arc<str> = kind.name.as_str().into();
    let own_vertex = own.vertex();
    let other = |id: u64| match (kind.role, own) {
        (KindRole::Entity, VertexKey::Member(_)) => VertexKey::Entity { kind: kind.name.clone(), id },
        _ => VertexKey::Member(id),
    };
    let edge = |(id, columns)| {
        let other = other(id).vertex();
        let (out_vertex, in_vertex) =
            if is_out { (own_vertex.clone(), other) } else { (other, own_vertex.clone()) };
        edge_of(&label, out_vertex, in_vertex, columns)
    };
    row.into_iter().map(edge).collect()
}

/// An edge with its properties.
pub(super) fn edge_of(
    label: &Arc<str>,
    out_vertex: Arc<Vertex>,
    in_vertex: Arc<Vertex>,
    properties: Vec<(Arc<str>, Value)>,
) -> Arc<Edge> {
    let id = edge_id(&out_vertex, label, &in_vertex);
    let reference = Edge { id, label: label.clone(), out_vertex, in_vertex, properties: None };
    let element = Value::Edge(Arc::new(reference.clone()));
    let property = |(key, value)| Arc::new(Property { key, value, element: Some(element.clone()) });
    Arc::new(Edge { properties: Some(properties.into_iter().map(property).collect()), ..reference })
}
