//! The explanation of a traversal: its plan, the fan-outs behind each step, and who decides about them. `explain()` and
//! `kith explain --gremlin` show the same text.

use super::{
    fan_outs::{ONE_OR_MORE, UNION_OF_ONE_OR_MORE},
    joined, live, loaded,
};
use crate::{executor::Outlook, explain::planned_round, session::Run};
use kith_operators::Operator;
use kith_query::{FanOut, QueryError, Scope};
use kith_schema::{GraphSchema, KindRole, KindSchema};
use kith_topology::Graph;
use kith_traversal::{
    explain::{self, StepQuestion},
    plan::{Label, TraversalPlan},
};
use kith_types::FanOutKind;
use kith_wire::v1;
use std::{collections::BTreeSet, fmt::Write};

/// An explanation: the text, and its first fan-out if the keys of that are known.
pub(super) struct Explanation {
    pub text: String,
    pub first: Option<v1::RoundProfile>,
}

/// Explains a plan over a graph. Asks no node.
///
/// # Errors
/// The options name a policy that does not exist, or the nodes that the first fan-out needs are down.
pub(super) fn explain(plan: &TraversalPlan, known: &Graph, run: &Run<'_>) -> Result<Explanation, QueryError> {
    let is_live = known.live.is_some();
    let keeps_texts = known.live.as_ref().is_some_and(|live| live.types.take_text_ids());
    let mut text = explain::explain(plan, &|asks| match is_live {
        true if *asks == StepQuestion::Ids && !keeps_texts => String::new(),
        true => live::described(asks, ONE_OR_MORE),
        false => described(asks, known),
    });
    let asked = explain::asked(plan);
    let kinds: BTreeSet<FanOutKind> = asked.iter().flat_map(|asks| kinds(asks, is_live)).copied().collect();
    let outlooks = kinds.into_iter().map(|kind| run.outlook(&example(kind, "of the graph")));
    let mut outlooks: Vec<Outlook> = outlooks.collect::<Result<_, _>>()?;
    if known.properties.is_some() && asked.iter().any(|asks| matches!(asks, StepQuestion::Properties { .. }))
    {
        let records = FanOut { plan: Operator::Lookup, ..example(FanOutKind::NonUnion, "of records") };
        outlooks.push(run.outlook(&records)?);
    }
    if !outlooks.is_empty() {
        text.push_str("\nFan-outs\n");
        let mut lines: Vec<String> = outlooks.iter().map(Outlook::to_string).collect();
        for line in outlooks.iter().flat_map(Outlook::legend) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.iter().for_each(|line| put(&mut text, line));
    }
    let first = explain::first(plan).and_then(|(ids, asks)| match is_live {
        true => live::first(ids, &asks),
        false => loaded::first(ids, &asks, &known.schema),
    });
    let first = first
        .map(|fan_out| Ok::<_, QueryError>(planned_round(&fan_out, &run.plan(&fan_out)?, run.session())));
    let first = first.transpose()?;
    if let Some(round) = &first {
        text.push_str("\nFirst fan-out\n");
        put(&mut text, &planned(round));
    }
    Ok(Explanation { text, first })
}

fn put(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {line}");
}

/// A fan-out of a kind, as far as it matters for who decides about it.
fn example(kind: FanOutKind, purpose: &'static str) -> FanOut {
    let (scope, plan) = match kind {
        FanOutKind::Broadcast => (Scope::Partitions, Operator::ALL_MEMBERS),
        FanOutKind::SingleKey => (Scope::Keys(vec![0]), Operator::Keys),
        _ => (Scope::Keys(vec![0, 1]), Operator::Keys),
    };
    FanOut { purpose, kind, scope, plan }
}

/// The kinds of the fan-outs that answer a question.
fn kinds(asks: &StepQuestion, is_live: bool) -> &'static [FanOutKind] {
    use FanOutKind::{Broadcast, NonUnion, SingleKey, SyncUnion};
    match asks {
        StepQuestion::Vertices { ids } if ids.len() == 1 => &[SingleKey],
        StepQuestion::Vertices { .. } => &[NonUnion],
        StepQuestion::Edges { .. }
        | StepQuestion::Hop { .. }
        | StepQuestion::Path { .. }
        | StepQuestion::Degree { .. } => &[SingleKey, NonUnion],
        StepQuestion::Properties { .. } if is_live => &[SingleKey, NonUnion],
        StepQuestion::LeadsTo { .. } | StepQuestion::Reach { .. } | StepQuestion::CountReached { .. } => {
            &[SingleKey, SyncUnion]
        }
        StepQuestion::AllVertices if is_live => &[NonUnion, Broadcast],
        StepQuestion::AllVertices | StepQuestion::Sought { .. } | StepQuestion::CountAll { .. } => {
            &[Broadcast]
        }
        StepQuestion::AllEdges => &[NonUnion, Broadcast],
        StepQuestion::Properties { .. }
        | StepQuestion::Ids
        | StepQuestion::Write
        | StepQuestion::SearchAndWrite => &[],
    }
}

/// Describes how a loaded graph answers a question.
fn described(asks: &StepQuestion, known: &Graph) -> String {
    let schema = &known.schema;
    match asks {
        StepQuestion::Vertices { ids } if ids.len() == 1 => "fan-out: single-key, once".to_owned(),
        StepQuestion::Vertices { .. } => {
            "fan-out: non-union, once for members and once for each kind of entities".to_owned()
        }
        // Loaded graphs have no indexes.
        StepQuestion::AllVertices | StepQuestion::Sought { .. } => {
            "fan-out: one broadcast, which returns all members".to_owned()
        }
        StepQuestion::CountAll { of_edges: false, .. } => {
            "fan-out: one broadcast, which returns numbers of members".to_owned()
        }
        StepQuestion::CountAll { .. } => {
            "fan-out: one broadcast, or two if only some edge types are undirected, which return \
             lengths of lists from the headers of files"
                .to_owned()
        }
        StepQuestion::Edges { .. } => format!("fan-out: {ONE_OR_MORE}; once for each label"),
        StepQuestion::AllEdges => format!(
            "fan-out: one broadcast for all members; then non-union, for batches of members and each of {}",
            list(schema, &[])
        ),
        StepQuestion::Reach { labels, .. } | StepQuestion::CountReached { labels, .. } => format!(
            "fan-out: {UNION_OF_ONE_OR_MORE}; once all have come, for each of {}",
            list(schema, labels)
        ),
        StepQuestion::LeadsTo { labels, .. } => {
            format!(
                "fan-out: for each batch {UNION_OF_ONE_OR_MORE}; once for each of {}",
                list(schema, labels)
            )
        }
        StepQuestion::Hop { labels, .. }
        | StepQuestion::Path { labels, .. }
        | StepQuestion::Degree { labels, .. } => {
            let often = if matches!(asks, StepQuestion::Path { .. }) { "hop" } else { "batch" };
            let followed = list(schema, labels);
            match followed.is_empty() {
                true => "fan-out: none; the graph has no such label".to_owned(),
                false => format!(
                    "fan-out: for each {often} {ONE_OR_MORE}; once for each of {followed}{}",
                    ranges(schema, asks)
                ),
            }
        }
        StepQuestion::Properties { .. } => match &known.properties {
            Some(store) => format!(
                "fan-out: for each batch {ONE_OR_MORE}, to the records of store {store} with these fields; at most {} at once",
                joined::RECORDS_AT_ONCE
            ),
            None => {
                "fan-out: none; members of this graph have no properties (kith graph properties)".to_owned()
            }
        },
        StepQuestion::Ids | StepQuestion::Write | StepQuestion::SearchAndWrite => String::new(),
    }
}

/// The edge types and entity kinds that labels name; all of them without labels.
fn list(schema: &GraphSchema, labels: &[Label]) -> String {
    let is_named = |kind: &&KindSchema| labels.is_empty() || labels.iter().any(|label| **label == *kind.name);
    let kinds = schema.kinds.iter().filter(|kind| kind.role != KindRole::MembersOnly).filter(is_named);
    kinds.map(|kind| kind.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The properties that edge types have as columns, of which nodes test the range of one.
fn ranges(schema: &GraphSchema, asks: &StepQuestion) -> String {
    let StepQuestion::Hop { within, .. } = asks else { return String::new() };
    let is_column = |key: &&Label| {
        schema.kinds.iter().flat_map(|kind| &kind.columns).any(|column| *column.name == ***key)
    };
    let columns: Vec<&str> = within.iter().filter(is_column).map(|key| &**key).collect();
    match columns.is_empty() {
        true => String::new(),
        false => format!("; at the nodes: the range of {}, if the test has one", columns.join(" or ")),
    }
}

/// A planned fan-out in one line.
fn planned(round: &v1::RoundProfile) -> String {
    let plural = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let requests = round.requests.iter();
    let requests =
        requests.map(|it| format!("node {} of group {} gets {}", it.node, it.group, plural(it.keys, "key")));
    format!(
        "{}, {}, {} by {}: {}",
        round.kind,
        plural(round.keys, "key"),
        plural(round.groups_allowed.into(), "group"),
        round.controller,
        requests.collect::<Vec<_>>().join("; "),
    )
}
