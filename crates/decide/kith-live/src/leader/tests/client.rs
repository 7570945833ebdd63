//! Callers that repeat writes whose outcome they do not know, and a check that a serial order of the writes explains the
//! answers.

use crate::leader::{CallerId, WriteAnswer, WriteError};
use crate::testing::{EdgeName, Model, object_fields};
use crate::twin::Twin;
use crate::{Mutation, Outcome, Write};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Client {
    pub(super) operations: Vec<Operation>,
    /// The operation of each attempt.
    attempts: Vec<usize>,
    /// Whether callers take the error of a repeat for the outcome of the write, which is a mistake.
    pub(super) trusts_errors_of_repeats: bool,
}

pub(super) struct Operation {
    pub(super) write: Write,
    pub(super) state: State,
    begun: usize,
    ended: usize,
    attempts: usize,
    /// The attempt whose answer counts.
    current: CallerId,
    /// Whether an attempt ended without an answer.
    pub(super) unknown: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    /// The caller waits for no attempt, and does not know whether the write took effect.
    Unknown,
    /// The caller has the answer that the write took effect, and whether the object or association existed before.
    Done(bool),
    /// The caller has the answer that the write was refused, for this reason.
    Refused(&'static str),
    /// The caller has the answer that nothing was written.
    Failed,
}

/// The answer to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Done(bool),
    Refused(&'static str),
    NothingWritten,
    Unknown,
}

impl Reply {
    pub(super) fn of(answer: &Result<WriteAnswer, WriteError>) -> Self {
        match answer {
            Ok(answered) => Reply::Done(answered.done.existed),
            Err(WriteError::Refused(refusal)) => Reply::Refused(name(refusal)),
            Err(WriteError::OutcomeUnknown) => Reply::Unknown,
            Err(_) => Reply::NothingWritten,
        }
    }
}

fn name(refusal: &crate::Refusal) -> &'static str {
    match refusal {
        crate::Refusal::OtherVersion { .. } => "other version",
        crate::Refusal::Absent => "absent",
        crate::Refusal::Present { .. } => "present",
        crate::Refusal::ObjectExists { .. } => "object exists",
        crate::Refusal::UniqueTaken { .. } => "unique taken",
    }
}

impl Client {
    pub(super) fn begin(&mut self, write: Write, clock: usize) -> (usize, CallerId) {
        let current = CallerId(self.attempts.len() as u64);
        let (state, attempts, unknown) = (State::Running, 1, false);
        self.attempts.push(self.operations.len());
        self.operations.push(Operation {
            write,
            state,
            begun: clock,
            ended: usize::MAX,
            attempts,
            current,
            unknown,
        });
        (self.operations.len() - 1, current)
    }

    pub(super) fn repeat(&mut self, operation: usize) -> (CallerId, Write) {
        let current = CallerId(self.attempts.len() as u64);
        self.attempts.push(operation);
        let operation = &mut self.operations[operation];
        operation.state = State::Running;
        operation.attempts += 1;
        operation.current = current;
        (current, operation.write.clone())
    }

    /// Whether an operation may be sent again.
    pub(super) fn may_repeat(&self, operation: usize) -> bool {
        let operation = &self.operations[operation];
        operation.state == State::Unknown && operation.attempts < 4 && operation.write.write_id.is_some()
    }

    /// Stops waiting for the current attempt.
    pub(super) fn give_up(&mut self, operation: usize) {
        let operation = &mut self.operations[operation];
        if operation.state == State::Running {
            operation.state = State::Unknown;
            operation.unknown = true;
        }
    }

    pub(super) fn answered(&mut self, caller: CallerId, reply: Reply, clock: usize) {
        let operation = &mut self.operations[self.attempts[caller.0 as usize]];
        if operation.current != caller || operation.state != State::Running {
            return;
        }
        operation.state = match reply {
            Reply::Done(existed) => State::Done(existed),
            Reply::Refused(why) => State::Refused(why),
            // An earlier attempt may have taken effect, or may still do so.
            Reply::NothingWritten if operation.unknown && !self.trusts_errors_of_repeats => State::Unknown,
            Reply::NothingWritten => State::Failed,
            Reply::Unknown => State::Unknown,
        };
        operation.unknown |= operation.state == State::Unknown;
        if !matches!(operation.state, State::Running | State::Unknown) {
            operation.ended = clock;
        }
    }

    /// Checks that a serial order of the operations explains the answers to callers and what is stored. Returns what no
    /// order explains.
    pub(super) fn check(&self, twin: &Twin) -> Vec<String> {
        let mut groups: BTreeMap<(u64, u64), Vec<&Operation>> = BTreeMap::new();
        for operation in &self.operations {
            groups.entry(ids(&operation.write.mutation)).or_default().push(operation);
        }
        let stored = stored(twin);
        let mut faults = Vec::new();
        for (ids, operations) in groups {
            let of_group = |name: &EdgeName| (name.0.min(name.2), name.0.max(name.2)) == ids;
            let end: BTreeMap<EdgeName, u64> = stored
                .1
                .iter()
                .filter(|(name, _)| of_group(name))
                .map(|(name, time)| (name.clone(), *time))
                .collect();
            let objects = stored.0.iter().filter(|_| ids == OBJECTS).map(|(id, it)| (*id, *it)).collect();
            if !serial(&operations, &(objects, end)) {
                let history: Vec<_> = operations.iter().map(|it| (&it.write.mutation, it.state)).collect();
                faults.push(format!("no serial order of {history:?} leads to {:?}", stored.1));
            }
        }
        faults
    }
}

/// Stands for all objects, which unique values connect with each other. No pair has these ids.
const OBJECTS: (u64, u64) = (0, 0);

/// Returns the ids that an operation is about. Operations on different ids do not affect each other.
fn ids(mutation: &Mutation) -> (u64, u64) {
    match mutation {
        Mutation::AddObject { .. } | Mutation::UpdateObject { .. } | Mutation::DeleteObject { .. } => OBJECTS,
        Mutation::AddAssociation { id1, id2, .. }
        | Mutation::DeleteAssociation { id1, id2, .. }
        | Mutation::ChangeType { id1, id2, .. } => (*id1.min(id2), *id1.max(id2)),
    }
}

/// The fields of objects, and the times of associations.
type Stored = (BTreeMap<u64, [Option<i64>; 2]>, BTreeMap<EdgeName, u64>);

fn stored(twin: &Twin) -> Stored {
    let edge = |(key, row): (crate::AssociationKey, crate::Association)| {
        let name = twin.types.associations[&key.list.kind].name.clone();
        ((key.list.id1, name, key.id2), row.time)
    };
    let fields = |object: crate::Object| {
        let json = twin.types.decode(object.kind, &object.data).unwrap();
        (object.id, object_fields([None, None], &json))
    };
    let objects = twin.objects().into_values().map(fields).collect();
    (objects, twin.associations().into_iter().map(edge).collect())
}

fn serial(operations: &[&Operation], end: &Stored) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![(0u32, Model::default())];
    while let Some((taken, model)) = open.pop() {
        if !seen.insert((taken, model.objects.clone(), model.edges.clone())) {
            continue;
        }
        let is_answered =
            |operation: &Operation| matches!(operation.state, State::Done(_) | State::Refused(_));
        let left = || operations.iter().enumerate().filter(|(index, _)| taken >> index & 1 == 0);
        let times = model.edges.iter().map(|(name, edge)| (name.clone(), edge.1)).collect();
        let objects = model.objects.iter().map(|(id, (_, fields))| (*id, *fields)).collect();
        if left().all(|(_, operation)| !is_answered(operation)) && (objects, times) == *end {
            return true;
        }
        for (index, operation) in left() {
            // An operation that ended before this one began comes before it.
            let too_early = left().any(|(_, other)| is_answered(other) && other.ended < operation.begun);
            if operation.state == State::Failed || too_early {
                continue;
            }
            let mut next = model.clone();
            let outcome = match next.run(&Write { write_id: None, ..operation.write.clone() }, 0, 0) {
                Outcome::Done(done) => State::Done(done.existed),
                Outcome::Refused(refusal) => State::Refused(name(&refusal)),
            };
            if !is_answered(operation) || operation.state == outcome {
                open.push((taken | 1 << index, next));
            }
        }
    }
    false
}
