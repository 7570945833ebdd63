//! The few kinds of fan-outs that operations use, and how their answers are read.

use crate::{FanOut, Input, OperationError, OperationStep, Outline, Scope};
use kith_operators::{ListEntry, Operator, Value};
use kith_schema::EdgeSelector;
use kith_types::{FanOutKind, Workflow};

/// The purpose of a fan-out for a single list.
pub(in crate::operations) const FIRST_DEGREE: &str = "first degree";

/// The outline of a step that asks for a network.
pub(in crate::operations) const NETWORK: Outline =
    Outline { purpose: "network", kind: None, reach: "the member's owner", when: "" };

/// The plan for the lists of the keys. A list with more than `longest` ids is answered with its length.
pub(in crate::operations) fn expand(edge: &EdgeSelector, longest: u64) -> Operator {
    Operator::Expand { input: Box::new(Operator::Keys), edge: edge.clone(), longest }
}

/// The plan for the union of all lists of the keys.
pub(in crate::operations) fn union(edge: &EdgeSelector) -> Operator {
    Operator::Union(Box::new(expand(edge, u64::MAX)))
}

/// Asks the nodes of `keys`, which are distinct and not empty. With one key the kind is [`FanOutKind::SingleKey`].
pub(in crate::operations) fn ask(
    purpose: &'static str,
    many: FanOutKind,
    keys: Vec<u64>,
    plan: Operator,
) -> OperationStep {
    debug_assert!(!keys.is_empty(), "a fan-out to no key has no answer to wait for");
    let kind = if keys.len() == 1 { FanOutKind::SingleKey } else { many };
    OperationStep::FanOut(FanOut { purpose, kind, scope: Scope::Keys(keys), plan })
}

pub(in crate::operations) fn ask_list(purpose: &'static str, id: u64, edge: &EdgeSelector) -> OperationStep {
    ask(purpose, FanOutKind::SingleKey, vec![id], expand(edge, u64::MAX))
}

/// The kind of a union, depending on whether somebody waits for it (Moolle §IV-A).
pub(in crate::operations) fn union_kind(workflow: Workflow) -> FanOutKind {
    match workflow {
        Workflow::Interactive => FanOutKind::SyncUnion,
        Workflow::Background => FanOutKind::AsyncUnion,
    }
}

/// Reads one list per id, in the order of the ids.
pub(in crate::operations) fn lists_of(ids: &[u64], input: Input) -> Result<Vec<List>, OperationError> {
    let Input::Value(Value::Lists(entries)) = input else { return Err(OperationError::WrongValue) };
    if entries.len() != ids.len() {
        return Err(OperationError::WrongValue);
    }
    ids.iter().zip(entries).map(|(&id, entry)| List::of(id, entry)).collect()
}

/// Reads the whole list of one id.
pub(in crate::operations) fn list_of(id: u64, input: Input) -> Result<Vec<u64>, OperationError> {
    match lists_of(&[id], input)?.pop() {
        Some(List::Ids(ids)) => Ok(ids),
        _ => Err(OperationError::WrongValue),
    }
}

/// Reads a set.
pub(in crate::operations) fn set_of(input: Input) -> Result<Vec<u64>, OperationError> {
    match input {
        Input::Value(Value::Set(ids)) => Ok(ids),
        _ => Err(OperationError::WrongValue),
    }
}

/// The ids, ascending, each once.
pub(in crate::operations) fn distinct(ids: &[u64]) -> Vec<u64> {
    let mut distinct = ids.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

/// The list of a key that is in the graph.
pub(in crate::operations) enum List {
    Ids(Vec<u64>),
    Longer,
}

impl List {
    fn of(id: u64, entry: ListEntry) -> Result<Self, OperationError> {
        match entry {
            ListEntry::NotInGraph => Err(OperationError::MemberNotFound { id }),
            ListEntry::Ids(ids) => Ok(List::Ids(ids)),
            ListEntry::Longer(_) => Ok(List::Longer),
            ListEntry::Unanswered => Ok(List::Ids(Vec::new())),
        }
    }

    /// The ids; empty for a list that was not requested as a whole.
    pub(in crate::operations) fn ids(self) -> Vec<u64> {
        match self {
            List::Ids(ids) => ids,
            List::Longer => Vec::new(),
        }
    }
}
