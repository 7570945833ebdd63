//! Edges with their columns on the wire: plans for nodes, and parts of nodes.

use crate::convert::ConvertError;
use kith_operators::{EdgePage, EdgePosition, EdgesEntry, EdgesPlan};
use kith_wire::v1;

pub(super) fn plan_to_wire(plan: &EdgesPlan, edge: v1::EdgeSelector) -> v1::EdgesOperator {
    v1::EdgesOperator {
        edge: Some(edge),
        columns: plan.columns.clone(),
        order_by: plan.order_by.clone(),
        descending: plan.descending,
        after: plan.after.map(position_to_wire),
        limit: (plan.limit != u64::MAX).then_some(plan.limit),
    }
}

pub(super) fn plan_from_wire(wire: &v1::EdgesOperator, edge: kith_schema::EdgeSelector) -> EdgesPlan {
    EdgesPlan {
        edge,
        columns: wire.columns.clone(),
        order_by: wire.order_by.clone(),
        descending: wire.descending,
        after: wire.after.as_ref().map(position_from_wire),
        limit: wire.limit.unwrap_or(u64::MAX),
    }
}

fn position_to_wire(position: EdgePosition) -> v1::EdgePosition {
    v1::EdgePosition { value: position.value, id: position.id }
}

fn position_from_wire(wire: &v1::EdgePosition) -> EdgePosition {
    EdgePosition { value: wire.value, id: wire.id }
}

pub(super) fn entries_to_wire(entries: &[EdgesEntry]) -> v1::EdgesOfKeys {
    let entry = |entry: &EdgesEntry| match entry {
        EdgesEntry::NotInGraph => v1::EdgesOfKey { not_in_graph: true, ..Default::default() },
        EdgesEntry::Page(page) => v1::EdgesOfKey {
            not_in_graph: false,
            ids: page.ids.clone(),
            columns: page.columns.iter().map(|stored| v1::StoredColumn { stored: stored.clone() }).collect(),
            next: page.next.map(position_to_wire),
        },
        EdgesEntry::Unanswered => unreachable!("a node answers all its keys"),
    };
    v1::EdgesOfKeys { entries: entries.iter().map(entry).collect() }
}

pub(super) fn entries_from_wire(wire: v1::EdgesOfKeys) -> Result<Vec<EdgesEntry>, ConvertError> {
    let entry = |wire: v1::EdgesOfKey| {
        if wire.not_in_graph {
            return Ok(EdgesEntry::NotInGraph);
        }
        let columns: Vec<Vec<u64>> = wire.columns.into_iter().map(|column| column.stored).collect();
        if columns.iter().any(|stored| stored.len() != wire.ids.len()) {
            return Err(ConvertError::Missing("value.edges.columns"));
        }
        let next = wire.next.as_ref().map(position_from_wire);
        Ok(EdgesEntry::Page(EdgePage { ids: wire.ids, columns, next }))
    };
    wire.entries.into_iter().map(entry).collect()
}
