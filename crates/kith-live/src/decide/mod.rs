//! What a write does to rows: pure functions of the write, the rows that it needs, and its place in the log.

mod association;
mod changes;
mod pair;
mod rows;
#[cfg(test)]
mod tests;

pub use pair::{complete, completion_queries, deliver, delivery_queries};
pub use rows::{NotLoaded, Rows};

use crate::{
    Conditions, Done, GraphTypes, Guards, Intent, LoggedChange, Object, Outcome, RecordedOutcome, Refusal,
    ResolvedWrite, Step, WriteFault,
};
use changes::Changes;
use kith_types::{LogPoint, PartitionCount};

/// Where and when a write is decided.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The types of the graph.
    pub types: &'a GraphTypes,
    /// How many partitions the graph has.
    pub count: PartitionCount,
    /// The position that the write takes in the log of its partition, if it takes one.
    pub point: LogPoint,
    /// The current time in milliseconds since 1970.
    pub now: u64,
    /// The rules that are kept.
    pub guards: Guards,
}

/// What comes of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Nothing is written.
    Nothing(Outcome),
    /// One change completes it.
    Changed(Outcome, LoggedChange),
    /// The other end of the pair must follow: the caller is answered when [`complete`] has been committed.
    Begun(Intent, LoggedChange),
    /// It was decided before, and this was recorded then.
    Repeated(RecordedOutcome),
    /// Another write was recorded under its id. Nothing is written.
    IdTaken,
    /// It does not make sense for what is stored. Nothing is written.
    Invalid(WriteFault),
}

/// Decides a write at its ordering partition, where no open intent concerns its pair or its id.
///
/// # Errors
/// [`NotLoaded`] if `rows` lacks an answer to one of [`ResolvedWrite::queries`].
pub fn decide(write: &ResolvedWrite, rows: &Rows, place: Place<'_>) -> Result<Decision, NotLoaded> {
    if let Some(name) = &write.name
        && let Some(recorded) = rows.outcome(&name.id)?
    {
        let same = recorded.write == name.checksum;
        return Ok(if same { Decision::Repeated(*recorded) } else { Decision::IdTaken });
    }
    let decision = match &write.step {
        Step::AddObject { .. } | Step::UpdateObject { .. } | Step::DeleteObject { .. } => {
            object(write, rows, place)?
        }
        Step::AddAssociation { .. } | Step::DeleteAssociation { .. } | Step::ChangeType { .. } => {
            association::decide(write, rows, place)?
        }
    };
    Ok(recorded(write, decision, place))
}

/// Adds the outcome of a named write to what it writes.
fn recorded(write: &ResolvedWrite, decision: Decision, place: Place<'_>) -> Decision {
    let Some(name) = &write.name else { return decision };
    let (outcome, mut change) = match decision {
        Decision::Nothing(Outcome::Refused(_)) if !place.guards.refusals_recorded => return decision,
        Decision::Nothing(outcome) => (outcome, LoggedChange::default()),
        Decision::Changed(outcome, change) => (outcome, change),
        _ => return decision,
    };
    let record = RecordedOutcome { write: name.checksum, at: place.now, outcome, elsewhere: None };
    change.rows.push(crate::RowWrite::PutOutcome(name.id.clone(), record));
    Decision::Changed(outcome, change)
}

fn object(write: &ResolvedWrite, rows: &Rows, place: Place<'_>) -> Result<Decision, NotLoaded> {
    let (Step::AddObject { id, .. } | Step::UpdateObject { id, .. } | Step::DeleteObject { id }) =
        &write.step
    else {
        return Err(NotLoaded);
    };
    let found = rows.object(*id)?;
    if let Some(refusal) = refusal(write.conditions, found.map(|object| object.stamp)) {
        return Ok(Decision::Nothing(Outcome::Refused(refusal)));
    }
    let mut changes = Changes::new(rows);
    let (kind, data) = match (&write.step, found) {
        (Step::AddObject { .. }, Some(_)) => {
            return Ok(Decision::Nothing(Outcome::Refused(Refusal::ObjectExists { id: *id })));
        }
        (Step::AddObject { kind, data, .. }, None) => (*kind, data.clone()),
        (Step::UpdateObject { fields, .. }, Some(object)) => {
            match place.types.encode_over(object.kind, &object.data, fields) {
                Ok(data) => (object.kind, data),
                Err(fault) => return Ok(Decision::Invalid(fault.into())),
            }
        }
        (_, Some(_)) => {
            changes.delete_object(*id);
            return Ok(Decision::Changed(done(*id, place.point, true), changes.finish()));
        }
        (_, None) => return Ok(Decision::Nothing(nothing_to_do(*id))),
    };
    changes.put_object(Object { id: *id, kind, stamp: place.point, data });
    Ok(Decision::Changed(done(*id, place.point, found.is_some()), changes.finish()))
}

fn done(id: u64, point: LogPoint, existed: bool) -> Outcome {
    Outcome::Done(Done { id, version: point.position.0, existed })
}

/// The outcome of a change to something that does not exist.
fn nothing_to_do(id: u64) -> Outcome {
    Outcome::Done(Done { id, version: 0, existed: false })
}

/// Why a write is refused, if what is stored was written by the change at `found`.
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
