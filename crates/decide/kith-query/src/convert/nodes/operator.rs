//! Operator trees on the wire.

use super::{edges, live_plans};
use crate::convert::{
    ConvertError,
    compute::{
        aggregate_plan_from_wire, aggregate_plan_to_wire, compute_plan_from_wire, compute_plan_to_wire,
    },
    direction_from_wire, direction_to_wire, live,
};
use kith_operators::{Operator, PlanSize};
use kith_schema::{ColumnRange, EdgeSelector};
use kith_types::Direction;
use kith_wire::{
    body::{decode_set, encode_set, key_count},
    v1::{self, operator::Op},
};
use std::sync::Arc;

/// Encodes an operator tree.
pub fn operator_to_wire(operator: &Operator) -> v1::Operator {
    let boxed = |inner: &Operator| Box::new(operator_to_wire(inner));
    let op = match operator {
        Operator::Keys => Op::Keys(v1::KeysOperator {}),
        Operator::Ids(ids) => Op::Ids(encode_set(ids)),
        Operator::Expand { input, edge, longest } => Op::Expand(Box::new(v1::ExpandOperator {
            input: Some(boxed(input)),
            edge: Some(edge_to_wire(edge)),
            longest: (*longest != u64::MAX).then_some(*longest),
        })),
        Operator::Postings { id, edge } => {
            Op::Postings(v1::PostingsOperator { id: *id, edge: Some(edge_to_wire(edge)) })
        }
        Operator::Union(inner) => Op::Union(boxed(inner)),
        Operator::Reach(edges) => {
            Op::Reach(v1::ReachOperator { edges: edges.iter().map(edge_to_wire).collect() })
        }
        Operator::Neighbourhood { input, edge } => {
            let (input, edge) = (Some(boxed(input)), Some(edge_to_wire(edge)));
            Op::Neighbourhood(Box::new(v1::NeighbourhoodOperator { input, edge }))
        }
        Operator::Tally(inner) => Op::Tally(boxed(inner)),
        Operator::Intersect(inputs) => {
            Op::Intersect(v1::IntersectOperator { inputs: inputs.iter().map(operator_to_wire).collect() })
        }
        Operator::Except { input, drop } => {
            Op::Except(Box::new(v1::ExceptOperator { input: Some(boxed(input)), drop: encode_set(drop) }))
        }
        Operator::Limit { input, count } => {
            Op::Limit(Box::new(v1::LimitOperator { input: Some(boxed(input)), count: *count }))
        }
        Operator::Count(inner) => Op::Count(boxed(inner)),
        Operator::Exists(inner) => Op::Exists(boxed(inner)),
        Operator::Edges(plan) => Op::Edges(edges::plan_to_wire(plan, edge_to_wire(&plan.edge))),
        Operator::Find(find) => Op::Find(live::find_to_wire(find)),
        Operator::Objects(fields) => Op::Objects(live_plans::fields_to_wire(fields)),
        Operator::Passing(tests) => {
            Op::Passing(v1::PassingOperator { tests: live_plans::tests_to_wire(tests) })
        }
        Operator::CountElements(counted) => Op::CountElements(live_plans::counted_to_wire(counted)),
        Operator::Total(edges) => {
            Op::Total(v1::TotalOperator { edges: edges.iter().map(edge_to_wire).collect() })
        }
        Operator::Associations(plan) => Op::Associations(live_plans::plan_to_wire(plan)),
        Operator::Lookup => Op::Lookup(v1::LookupOperator {}),
        Operator::Compute(plan) => Op::Compute(compute_plan_to_wire(plan)),
        Operator::Aggregate(plan) => Op::Aggregate(aggregate_plan_to_wire(plan)),
        Operator::Members { from } => Op::Members(v1::MembersOperator { from: *from }),
    };
    v1::Operator { op: Some(op) }
}

/// Decodes an operator tree.
///
/// # Errors
/// If a part is missing or malformed, or the tree is deeper than [`Operator::DEPTH_MAX`].
pub fn operator_from_wire(wire: &v1::Operator) -> Result<Operator, ConvertError> {
    tree(wire, Operator::DEPTH_MAX, &mut PlanSize::default())
}

fn tree(wire: &v1::Operator, depth: usize, size: &mut PlanSize) -> Result<Operator, ConvertError> {
    let Some(depth) = depth.checked_sub(1) else { return Err(ConvertError::TooDeep(Operator::DEPTH_MAX)) };
    size.add_operator().map_err(ConvertError::TooWide)?;
    let mut boxed = |inner: &v1::Operator| tree(inner, depth, size).map(Box::new);
    Ok(match wire.op.as_ref().ok_or(ConvertError::Missing("operator.op"))? {
        Op::Keys(_) => Operator::Keys,
        Op::Ids(body) => Operator::Ids(set(body, "operator.ids", size)?),
        Op::Expand(expand) => Operator::Expand {
            input: boxed(input(&expand.input)?)?,
            edge: edge(&expand.edge)?,
            longest: expand.longest.unwrap_or(u64::MAX),
        },
        Op::Postings(postings) => Operator::Postings { id: postings.id, edge: edge(&postings.edge)? },
        Op::Union(inner) => Operator::Union(boxed(inner)?),
        Op::Reach(reach) => {
            Operator::Reach(reach.edges.iter().map(edge_from_wire).collect::<Result<_, _>>()?)
        }
        Op::Neighbourhood(inner) => {
            Operator::Neighbourhood { input: boxed(input(&inner.input)?)?, edge: edge(&inner.edge)? }
        }
        Op::Tally(inner) => Operator::Tally(boxed(inner)?),
        Op::Intersect(inner) => {
            let inputs = inner.inputs.iter().map(|input| tree(input, depth, size));
            Operator::Intersect(inputs.collect::<Result<_, _>>()?)
        }
        Op::Except(except) => Operator::Except {
            input: boxed(input(&except.input)?)?,
            drop: set(&except.drop, "operator.drop", size)?,
        },
        Op::Limit(limit) => Operator::Limit { input: boxed(input(&limit.input)?)?, count: limit.count },
        Op::Count(inner) => Operator::Count(boxed(inner)?),
        Op::Exists(inner) => Operator::Exists(boxed(inner)?),
        Op::Edges(plan) => Operator::Edges(Box::new(edges::plan_from_wire(plan, edge(&plan.edge)?))),
        Op::Find(find) => Operator::Find(Box::new(live::find_from_wire(find.clone()))),
        Op::Objects(objects) => Operator::Objects(live_plans::fields_from_wire(objects)),
        Op::Passing(passing) => Operator::Passing(live_plans::tests_from_wire(&passing.tests)),
        Op::CountElements(wire) => Operator::CountElements(live_plans::counted_from_wire(wire)),
        Op::Total(total) => {
            Operator::Total(total.edges.iter().map(edge_from_wire).collect::<Result<_, _>>()?)
        }
        Op::Associations(wire) => Operator::Associations(Box::new(live_plans::plan_from_wire(wire)?)),
        Op::Lookup(_) => Operator::Lookup,
        Op::Compute(plan) => Operator::Compute(Arc::new(compute_plan_from_wire(plan)?)),
        Op::Aggregate(plan) => Operator::Aggregate(Arc::new(aggregate_plan_from_wire(plan)?)),
        Op::Members(wire) => Operator::Members { from: wire.from },
    })
}

fn input(inner: &Option<Box<v1::Operator>>) -> Result<&v1::Operator, ConvertError> {
    inner.as_deref().ok_or(ConvertError::Missing("operator.input"))
}

fn set(body: &[u8], field: &'static str, size: &mut PlanSize) -> Result<Vec<u64>, ConvertError> {
    size.add_ids(key_count(body)).map_err(ConvertError::TooWide)?;
    decode_set(body).map_err(|source| ConvertError::Body { field, source })
}

fn range_to_wire(range: &ColumnRange) -> v1::ColumnRange {
    v1::ColumnRange { column: range.column.clone(), low: range.low, high: range.high }
}

fn range_from_wire(wire: &v1::ColumnRange) -> ColumnRange {
    ColumnRange { column: wire.column.clone(), low: wire.low, high: wire.high }
}

fn edge_to_wire(edge: &EdgeSelector) -> v1::EdgeSelector {
    let filter = edge.filter.as_ref().map(range_to_wire);
    v1::EdgeSelector { kind: edge.kind.clone(), direction: direction_to_wire(Some(edge.direction)), filter }
}

fn edge(wire: &Option<v1::EdgeSelector>) -> Result<EdgeSelector, ConvertError> {
    edge_from_wire(wire.as_ref().ok_or(ConvertError::Missing("operator.edge"))?)
}

fn edge_from_wire(wire: &v1::EdgeSelector) -> Result<EdgeSelector, ConvertError> {
    let filter = wire.filter.as_ref().map(range_from_wire);
    let direction = direction_from_wire(wire.direction)?.unwrap_or(Direction::Both);
    Ok(EdgeSelector { kind: wire.kind.clone(), direction, filter })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_operators::EvaluateError;
    use kith_schema::ColumnRange;
    use kith_schema::live::{
        AssociationRead, AssociationsPlan, CountedElements, ElementPart, ElementTest, FieldOrder,
        ObjectFields, ObjectFind, Select,
    };

    #[test]
    fn every_operator_comes_back_as_it_went() {
        let edge = EdgeSelector {
            kind: "connection".into(),
            direction: Direction::In,
            filter: Some(ColumnRange { column: "created_ms".into(), low: 3, high: u64::MAX }),
        };
        let expand = |longest| {
            Box::new(Operator::Expand { input: Box::new(Operator::Keys), edge: edge.clone(), longest })
        };
        let postings = Operator::Postings { id: 7, edge: edge.clone() };
        let read = |kind: &str| AssociationRead {
            kind: kind.to_owned(),
            select: Select::Count,
            with_data: false,
            with_versions: true,
        };
        let test = |part| ElementTest { part, predicate: vec![1, 2, 3] };
        let trees = [
            Operator::Lookup,
            Operator::Objects(ObjectFields::All),
            Operator::Objects(ObjectFields::None),
            Operator::Objects(ObjectFields::Named(vec!["name".into(), "age".into()])),
            Operator::Passing(vec![test(ElementPart::Type), test(ElementPart::Field("age".into()))]),
            Operator::Find(Box::new(ObjectFind {
                kind: "person".into(),
                field: "name".into(),
                values: vec!["\"Ada\"".into(), "7".into()],
                after: Some(0),
                limit: Some(u64::MAX),
            })),
            Operator::Associations(Box::new(AssociationsPlan::of(vec![read("likes"), read("liked_by")]))),
            Operator::Associations(Box::new(AssociationsPlan {
                reads: vec![read("likes")],
                tests: vec![test(ElementPart::Field("since".into()))],
                top: Some(FieldOrder { field: "since".into(), descending: true }),
                without_times: true,
            })),
            Operator::Count(Box::new(Operator::ALL_MEMBERS)),
            Operator::CountElements(CountedElements::Objects(Vec::new())),
            Operator::CountElements(CountedElements::Associations(vec!["likes".into()])),
            Operator::Total(vec![edge.clone(), EdgeSelector { filter: None, ..edge.clone() }]),
            Operator::Union(expand(u64::MAX)),
            Operator::Reach(vec![edge.clone(), EdgeSelector { filter: None, ..edge.clone() }]),
            Operator::Tally(expand(512)),
            Operator::Neighbourhood { input: Box::new(postings.clone()), edge: edge.clone() },
            Operator::Count(expand(0)),
            Operator::Exists(Box::new(Operator::Intersect(vec![
                postings.clone(),
                Operator::Ids(vec![1, 9]),
            ]))),
            Operator::Limit {
                input: Box::new(Operator::Except { input: Box::new(postings), drop: vec![u64::MAX] }),
                count: 20,
            },
        ];
        for tree in trees {
            assert_eq!(operator_from_wire(&operator_to_wire(&tree)), Ok(tree));
        }
    }

    #[test]
    fn trees_that_are_too_large_are_refused_while_they_are_read() {
        let wide = Operator::Intersect(vec![Operator::Keys; Operator::COUNT_MAX]);
        let max = Operator::COUNT_MAX;
        let refused = Err(ConvertError::TooWide(EvaluateError::TooManyOperators { max }));
        assert_eq!(operator_from_wire(&operator_to_wire(&wide)), refused);
        let max = Operator::IDS_MAX;
        let ids = Operator::Ids((0..=max as u64).collect());
        let refused = Err(ConvertError::TooWide(EvaluateError::TooManyIds { max }));
        assert_eq!(operator_from_wire(&operator_to_wire(&ids)), refused);
    }

    #[test]
    fn an_empty_operator_and_a_bottomless_one_are_refused() {
        assert_eq!(operator_from_wire(&v1::Operator { op: None }), Err(ConvertError::Missing("operator.op")));
        let mut deep = operator_to_wire(&Operator::Keys);
        for _ in 0..Operator::DEPTH_MAX {
            deep = v1::Operator { op: Some(Op::Count(Box::new(deep))) };
        }
        assert_eq!(operator_from_wire(&deep), Err(ConvertError::TooDeep(Operator::DEPTH_MAX)));
    }
}
