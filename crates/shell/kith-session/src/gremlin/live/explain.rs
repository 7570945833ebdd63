//! Descriptions, for explanations, of how a live graph answers what a traversal asks.

use super::scan::LOOKED_UP_AT_ONCE;
use crate::gremlin::{
    fan_outs::UNION_OF_ONE_OR_MORE,
    fan_outs::{of_keys, union_of_keys},
    ids::number,
};
use kith_gremlin::value::ElementId;
use kith_live::ObjectFields;
use kith_operators::Operator;
use kith_query::FanOut;
use kith_traversal::explain::StepQuestion;
use std::collections::BTreeSet;

/// The first fan-out that answers a question about vertices with these ids, as far as it matters for where it goes. `None` if
/// none of the ids can be that of a vertex.
pub(in crate::gremlin) fn first(ids: &[ElementId], asks: &StepQuestion) -> Option<FanOut> {
    let ids: BTreeSet<u64> = ids.iter().filter_map(number).collect();
    let ids: Vec<u64> = ids.into_iter().collect();
    let (purpose, plan) = match asks {
        StepQuestion::Vertices { .. } => ("vertices", Operator::Objects(ObjectFields::None)),
        StepQuestion::Degree { .. } => ("degrees", Operator::Keys),
        StepQuestion::Hop { .. } => ("edges", Operator::Keys),
        StepQuestion::Reach { .. } | StepQuestion::CountReached { .. } if !ids.is_empty() => {
            return Some(union_of_keys("reached vertices", &ids, Operator::Keys));
        }
        _ => return None,
    };
    (!ids.is_empty()).then(|| of_keys(purpose, &ids, plan))
}

/// Describes how the graph answers a question. `one_or_more` says which kinds of fan-outs ask for one vertex and for
/// more.
pub(in crate::gremlin) fn described(asks: &StepQuestion, one_or_more: &str) -> String {
    match asks {
        StepQuestion::Vertices { .. } => format!("fan-out: {one_or_more}; once"),
        StepQuestion::AllVertices => format!(
            "fan-out: one broadcast for all ids; then non-union, for every {LOOKED_UP_AT_ONCE} ids, which are vertices if they are objects"
        ),
        StepQuestion::Sought { .. } => {
            "fan-out: one broadcast for each type, if all types have an index; otherwise as for all vertices"
                .to_owned()
        }
        StepQuestion::CountAll { .. } => {
            "fan-out: one broadcast, which returns numbers that the database has counted".to_owned()
        }
        StepQuestion::Edges { .. } => format!("fan-out: {one_or_more}; once for all labels"),
        StepQuestion::AllEdges => {
            "fan-out: one broadcast for all ids; then non-union, for batches of ids".to_owned()
        }
        StepQuestion::Reach { .. } | StepQuestion::CountReached { .. } => {
            format!(
                "fan-out: {UNION_OF_ONE_OR_MORE}; once all have come, for all labels; as for a hop if one of the types has \
                 no adjacency"
            )
        }
        StepQuestion::LeadsTo { .. } => format!(
            "fan-out: for each batch {UNION_OF_ONE_OR_MORE}; once for all labels; as for a hop if one of the types has no \
             adjacency"
        ),
        StepQuestion::Path { .. } => format!(
            "fan-out: for each hop {one_or_more}; once for all labels, and single-key for the rest of long lists"
        ),
        StepQuestion::Hop { tests, first, .. } => format!(
            "fan-out: for each batch {one_or_more}; once for all labels, and single-key for the rest of long lists{}",
            at_nodes(tests.iter().chain(first))
        ),
        StepQuestion::Degree { .. } => format!("fan-out: for each batch {one_or_more}; once for all labels"),
        StepQuestion::Ids => format!(
            "fan-out: for each batch {one_or_more}; the objects, unless another step has looked them up"
        ),
        StepQuestion::Properties { tests, .. } => {
            format!("fan-out: for each batch {one_or_more}{}", at_nodes(tests.iter()))
        }
        StepQuestion::Write => "one write for each change".to_owned(),
        StepQuestion::SearchAndWrite => "a search, and one write for each change".to_owned(),
    }
}

/// What nodes do before they answer.
fn at_nodes<'a>(done: impl Iterator<Item = &'a String>) -> String {
    let done: Vec<&str> = done.map(String::as_str).collect();
    if done.is_empty() { String::new() } else { format!("; at the nodes: {}", done.join("; ")) }
}
