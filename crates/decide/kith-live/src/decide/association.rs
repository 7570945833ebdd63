//! Decides writes to associations: to a single row, to both rows of an edge in one partition, or to a pair in two
//! partitions, of which this is the first transaction.

use super::changes::Changes;
use super::{Decision, DecisionContext, NotLoaded, Rows, done, nothing_to_do, pair, refusal};
use crate::{
    Association, AssociationKey, CompletedWrite, Edge, EdgeContent, EdgeKeys, FieldsFault, Intent, Outcome,
    ResolvedMutation, ResolvedWrite, RowWrite,
};
use std::collections::BTreeMap;

pub(super) fn decide(
    write: &ResolvedWrite,
    rows: &Rows,
    context: DecisionContext<'_>,
) -> Result<Decision, NotLoaded> {
    let (ResolvedMutation::AddAssociation { edge, .. }
    | ResolvedMutation::DeleteAssociation { edge }
    | ResolvedMutation::ChangeType { old: edge, .. }) = &write.step
    else {
        return Err(NotLoaded);
    };
    let found = found(edge, write, rows, context)?;
    if let Some(refusal) = refusal(write.conditions, found.map(|association| association.stamp)) {
        return Ok(Decision::Nothing(Outcome::Refused(refusal)));
    }
    let id1 = edge.named.list.id1;
    let states = match states(&write.step, found, context) {
        Ok(states) if states.is_empty() => return Ok(Decision::Nothing(nothing_to_do(id1))),
        Ok(states) => states,
        Err(fault) => return Ok(Decision::Invalid(fault.into())),
    };
    let outcome = done(id1, context.point, found.is_some());
    match (write.split, outcome) {
        (Some(pair), Outcome::Done(done)) => begin(write, pair, (states, done), (rows, context)),
        (_, outcome) => {
            let mut changes = Changes::new(rows);
            for (key, content) in net(&states) {
                changes.set_association(key, content, context.point)?;
            }
            Ok(Decision::Changed(outcome, changes.finish()))
        }
    }
}

/// Returns the association that the write names, from the row that lies in the ordering partition.
fn found<'a>(
    edge: &EdgeKeys,
    write: &ResolvedWrite,
    rows: &'a Rows,
    context: DecisionContext<'_>,
) -> Result<Option<&'a Association>, NotLoaded> {
    let key = edge.rows_in(write.partition, context.count).next().ok_or(NotLoaded)?;
    rows.association(key)
}

/// Returns the new states of the edges that a write changes; empty if there is nothing to do.
fn states(
    step: &ResolvedMutation,
    found: Option<&Association>,
    context: DecisionContext<'_>,
) -> Result<Vec<(EdgeKeys, Option<EdgeContent>)>, FieldsFault> {
    Ok(match (step, found) {
        (ResolvedMutation::AddAssociation { edge, time, data }, _) => {
            let content = EdgeContent { time: time.unwrap_or(context.now), data: data.clone() };
            vec![(*edge, Some(content))]
        }
        (ResolvedMutation::DeleteAssociation { edge }, Some(_)) => vec![(*edge, None)],
        (ResolvedMutation::ChangeType { old, new }, Some(found)) => {
            let data = context.types.convert(old.named.list.kind, &found.data, new.named.list.kind)?;
            vec![(*old, None), (*new, Some(EdgeContent { time: found.time, data }))]
        }
        _ => Vec::new(),
    })
}

/// Returns the new state of each row. If an object's association with itself changes to the inverse type, the old and the
/// new edge have the same rows; these rows stay, because the state of the new edge counts.
fn net(states: &[(EdgeKeys, Option<EdgeContent>)]) -> BTreeMap<AssociationKey, Option<&EdgeContent>> {
    let mut net = BTreeMap::new();
    for (edge, content) in states {
        net.extend(edge.rows().map(|key| (key, content.as_ref())));
    }
    net
}

/// Decides the first transaction of a write to a pair in two partitions. It stores the intent, and changes those rows of
/// this partition that may change before the other end.
fn begin(
    write: &ResolvedWrite,
    pair: crate::Pair,
    (states, done): (Vec<(EdgeKeys, Option<EdgeContent>)>, CompletedWrite),
    (rows, context): (&Rows, DecisionContext<'_>),
) -> Result<Decision, NotLoaded> {
    let edge = |(keys, content): (EdgeKeys, Option<EdgeContent>)| {
        Some(Edge { forward: keys.forward, inverse: keys.inverse?, content })
    };
    let edges = states.into_iter().filter_map(edge).collect();
    let intent = Intent { pair, stamp: context.point, edges, done, name: write.name.clone() };
    let mut changes = Changes::new(rows);
    for row in pair::rows_here(&intent, write.partition, context.count) {
        if row.is_early() || !context.guards.forward_last {
            changes.set_association(row.key, row.content, context.point)?;
        }
    }
    changes.row(RowWrite::PutIntent(intent.clone()));
    Ok(Decision::Begun(intent, changes.finish()))
}
