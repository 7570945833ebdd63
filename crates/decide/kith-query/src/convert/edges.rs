//! Edges with their columns on the wire: filters, plans for nodes, and parts of nodes.

use super::ConvertError;
use crate::ColumnFilter;
use kith_operators::{EdgePage, EdgePosition, EdgesEntry, EdgesPlan};
use kith_schema::ColumnNumber;
use kith_wire::v1::{self, column_number::Number};

pub(crate) fn filter_to_wire(filter: &ColumnFilter) -> v1::ColumnFilter {
    v1::ColumnFilter {
        column: filter.column.clone(),
        low: filter.low.map(number_to_wire),
        high: filter.high.map(number_to_wire),
    }
}

pub(crate) fn filter_from_wire(wire: v1::ColumnFilter) -> Result<ColumnFilter, ConvertError> {
    let number = |wire: Option<v1::ColumnNumber>| wire.map(number_from_wire).transpose();
    Ok(ColumnFilter { column: wire.column, low: number(wire.low)?, high: number(wire.high)? })
}

fn number_to_wire(number: ColumnNumber) -> v1::ColumnNumber {
    let number = match number {
        ColumnNumber::U64(number) => Number::Unsigned(number),
        ColumnNumber::I64(number) => Number::Signed(number),
        ColumnNumber::F64(number) => Number::Floating(number),
    };
    v1::ColumnNumber { number: Some(number) }
}

fn number_from_wire(wire: v1::ColumnNumber) -> Result<ColumnNumber, ConvertError> {
    Ok(match wire.number.ok_or(ConvertError::Missing("filter.number"))? {
        Number::Unsigned(number) => ColumnNumber::U64(number),
        Number::Signed(number) => ColumnNumber::I64(number),
        Number::Floating(number) => ColumnNumber::F64(number),
    })
}

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
