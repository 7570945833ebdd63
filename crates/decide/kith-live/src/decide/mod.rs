//! Decides how a write changes rows: pure functions of the write, the rows that it needs, and its place in the log.

mod association;
mod changes;
mod pair;
mod rows;
#[cfg(test)]
mod tests;

pub use pair::{complete, completion_queries, deliver, delivery_queries};
pub use rows::{NotLoaded, Rows};

use crate::{
    CompletedWrite, Conditions, GraphTypes, Guards, Intent, LoggedChange, Object, Outcome, RecordedOutcome,
    Refusal, ResolvedMutation, ResolvedWrite, RowWrite, TextId, WriteFault,
};
use changes::Changes;
use kith_types::{LogPoint, PartitionCount};

/// The place and time at which a write is decided.
#[derive(Clone, Copy, Debug)]
pub struct DecisionContext<'a> {
    /// The types of the graph.
    pub types: &'a GraphTypes,
    /// The number of partitions of the graph.
    pub count: PartitionCount,
    /// The log point that the write gets in its partition, if it changes something.
    pub point: LogPoint,
    /// The current time in milliseconds since 1970.
    pub now: u64,
    /// The rules that are in force.
    pub guards: Guards,
}

/// The decision about a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The write has this outcome, and nothing is written.
    Nothing(Outcome),
    /// The write has this outcome, and this change completes it.
    Changed(Outcome, LoggedChange),
    /// The write begins with this change, and the other end of the pair must follow. The caller is answered when the change
    /// of [`complete`] has been committed.
    Begun(Intent, LoggedChange),
    /// The write was decided before, and this outcome was recorded. Nothing is written.
    Repeated(RecordedOutcome),
    /// The outcome of another write is recorded under the same write id. Nothing is written.
    IdTaken,
    /// The write is invalid for the object or association that is stored. Nothing is written.
    Invalid(WriteFault),
}

/// Decides a write in its ordering partition. No open intent of this partition may concern the pair or the write id of the
/// write.
///
/// # Errors
/// [`NotLoaded`] if `rows` lacks an answer to one of [`ResolvedWrite::queries`].
pub fn decide(
    write: &ResolvedWrite,
    rows: &Rows,
    context: DecisionContext<'_>,
) -> Result<Decision, NotLoaded> {
    if let Some(name) = &write.name
        && let Some(recorded) = rows.outcome(&name.id)?
    {
        let same = recorded.write == name.checksum;
        return Ok(if same { Decision::Repeated(recorded.clone()) } else { Decision::IdTaken });
    }
    let decision = match &write.step {
        ResolvedMutation::AddObject { .. }
        | ResolvedMutation::UpdateObject { .. }
        | ResolvedMutation::DeleteObject { .. } => object(write, rows, context)?,
        ResolvedMutation::AddAssociation { .. }
        | ResolvedMutation::DeleteAssociation { .. }
        | ResolvedMutation::ChangeType { .. } => association::decide(write, rows, context)?,
    };
    Ok(recorded(write, decision, context))
}

/// If a write has a write id, adds its outcome to the rows that it writes.
fn recorded(write: &ResolvedWrite, decision: Decision, context: DecisionContext<'_>) -> Decision {
    let Some(name) = &write.name else { return decision };
    let (outcome, mut change) = match decision {
        Decision::Nothing(Outcome::Refused(_)) if !context.guards.refusals_recorded => return decision,
        Decision::Nothing(outcome) => (outcome, LoggedChange::default()),
        Decision::Changed(outcome, change) => (outcome, change),
        _ => return decision,
    };
    let (write, at) = (name.checksum, context.now);
    let record = RecordedOutcome { write, at, outcome: outcome.clone(), elsewhere: None };
    change.rows.push(RowWrite::PutOutcome(name.id.clone(), record));
    Decision::Changed(outcome, change)
}

fn object(write: &ResolvedWrite, rows: &Rows, context: DecisionContext<'_>) -> Result<Decision, NotLoaded> {
    let id = match &write.step {
        ResolvedMutation::AddObject { .. } => match place(&write.step, rows, context.types)? {
            Ok(id) => id,
            Err(fault) => return Ok(Decision::Invalid(fault)),
        },
        ResolvedMutation::UpdateObject { id, .. } | ResolvedMutation::DeleteObject { id } => *id,
        _ => return Err(NotLoaded),
    };
    let found = rows.object(id)?;
    if let Some(refusal) = refusal(write.conditions, found.map(|object| object.stamp)) {
        return Ok(Decision::Nothing(Outcome::Refused(refusal)));
    }
    let (kind, data) = match (&write.step, found) {
        (ResolvedMutation::AddObject { .. }, Some(_)) => {
            return Ok(Decision::Nothing(Outcome::Refused(Refusal::ObjectExists { id })));
        }
        (ResolvedMutation::AddObject { kind, data, .. }, None) => (*kind, data.clone()),
        (ResolvedMutation::UpdateObject { fields, .. }, Some(object)) => {
            match context.types.encode_over(object.kind, &object.data, fields) {
                Ok(data) => (object.kind, data),
                Err(fault) => return Ok(Decision::Invalid(fault.into())),
            }
        }
        (_, Some(object)) => return Ok(delete(object, rows, context)),
        (_, None) => return Ok(Decision::Nothing(nothing_to_do(id))),
    };
    Ok(put(Object { id, kind, stamp: context.point, data }, found, rows, context))
}

/// Returns the id at which a new object belongs: that of the object with the same text id, if there is one, otherwise the first one
/// that is free.
fn place(
    step: &ResolvedMutation,
    rows: &Rows,
    types: &GraphTypes,
) -> Result<Result<u64, WriteFault>, NotLoaded> {
    let ResolvedMutation::AddObject { id, other, kind, data } = step else { return Err(NotLoaded) };
    let Some(other) = other else { return Ok(Ok(*id)) };
    let [first, second] = [rows.object(*id)?, rows.object(*other)?];
    let text_id = |kind, data| types.text_id(kind, data).map_err(WriteFault::from);
    let decided = || {
        let own = text_id(*kind, data)?;
        for found in [first, second].into_iter().flatten() {
            let found_id = text_id(found.kind, &found.data)?;
            let texts = (own.as_ref().map(TextId::as_str), found_id.as_ref().map(TextId::as_str));
            if texts.0.is_some() && texts.0 == texts.1 {
                return Ok(found.id);
            }
        }
        match (first, second) {
            (None, _) => Ok(*id),
            (_, None) => Ok(*other),
            _ => Err(WriteFault::TextIdUnlucky { id: own.map(|id| id.to_string()).unwrap_or_default() }),
        }
    };
    Ok(decided())
}

/// Deletes an object, and removes it from indexes.
fn delete(object: &Object, rows: &Rows, context: DecisionContext<'_>) -> Decision {
    let entries = match context.types.entries(object.kind, object.id, &object.data) {
        Ok(entries) => entries,
        Err(fault) => return Decision::Invalid(fault.into()),
    };
    let mut changes = Changes::new(rows);
    changes.delete_object(object.id);
    entries.into_iter().for_each(|entry| changes.row(RowWrite::DeleteEntry(entry)));
    Decision::Changed(done(object.id, context.point, true), changes.finish())
}

/// Writes an object, which replaces `before`, and changes its entries in indexes. Whether another object of the graph has one
/// of its unique values is decided by the database, unless that is known already.
fn put(object: Object, before: Option<&Object>, rows: &Rows, context: DecisionContext<'_>) -> Decision {
    let entries = |object: &Object| context.types.entries(object.kind, object.id, &object.data);
    let (old, new) = match (before.map_or(Ok(Vec::new()), entries), entries(&object)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(fault), _) | (_, Err(fault)) => return Decision::Invalid(fault.into()),
    };
    let added = || new.iter().filter(|entry| !old.contains(entry));
    if let Some((entry, id)) = added().find_map(|entry| Some((entry, rows.holder(entry)?))) {
        let (field, value) = context.types.shown(object.kind, entry.index, &object.data);
        return Decision::Nothing(Outcome::Refused(Refusal::UniqueTaken { field, value, id }));
    }
    let outcome = done(object.id, context.point, before.is_some());
    let mut changes = Changes::new(rows);
    changes.put_object(object);
    let removed = old.iter().filter(|entry| !new.contains(entry));
    removed.for_each(|entry| changes.row(RowWrite::DeleteEntry(entry.clone())));
    added().for_each(|entry| changes.row(RowWrite::PutEntry(entry.clone())));
    Decision::Changed(outcome, changes.finish())
}

fn done(id: u64, point: LogPoint, existed: bool) -> Outcome {
    Outcome::Done(CompletedWrite { id, version: point.position.0, existed })
}

/// The outcome of a change to something that does not exist.
fn nothing_to_do(id: u64) -> Outcome {
    Outcome::Done(CompletedWrite { id, version: 0, existed: false })
}

/// Returns why the conditions refuse a write; `None` if they hold. `found` is the stamp of the stored object or association.
fn refusal(conditions: Conditions, found: Option<LogPoint>) -> Option<Refusal> {
    let version = found.map_or(0, |stamp| stamp.position.0);
    match conditions.if_version {
        Some(wanted) if wanted != version => return Some(Refusal::OtherVersion { found: version, wanted }),
        _ => {}
    }
    match (conditions.if_exists, found) {
        (Some(true), None) => Some(Refusal::Absent),
        (Some(false), Some(_)) => Some(Refusal::Present { version }),
        _ => None,
    }
}
