//! The merged answer of a fan-out.

use kith_live::AssociationAnswer;
use kith_operators::{
    AssociationsEntry, EdgesEntry, ListEntry, MissingKeyRule, ObjectEntry, Part, Record, RecordError, Value,
    sets::Scratch,
};
use kith_query::{FanOut, QueryError};
use kith_routing::execution::Failure;
use std::{cell::RefCell, collections::BTreeSet};

thread_local! {
    /// The scratch space of merges. Its bitmap of half a mebibyte is cleared only where it was used; a new bitmap would
    /// have to be cleared as a whole for each merge.
    static MERGE_SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// The rest of a fan-out whose answers have been handed on.
#[derive(Debug, Default)]
pub(crate) struct DeliveryEnd {
    pub failures: Vec<Failure>,
    /// Keys that have no answer because their record is damaged.
    pub damaged: BTreeSet<u32>,
    pub service_us: u64,
}

/// Merges the parts of an answer.
///
/// # Errors
/// A part is missing that must not be, or does not fit the others.
pub(super) fn merged(
    fan_out: &FanOut,
    keys: usize,
    parts: Vec<Part>,
    is_partial: bool,
) -> Result<Value, QueryError> {
    let allowed = if is_partial { MissingKeyRule::Allow } else { MissingKeyRule::Refuse };
    let merged =
        MERGE_SCRATCH.with_borrow_mut(|scratch| Value::merge(&fan_out.plan, keys, parts, allowed, scratch));
    merged.map_err(|error| QueryError::Internal { detail: format!("{}: {error}", fan_out.purpose) })
}

/// Marks keys without an answer as damaged, if their record was.
pub(super) fn mark_damaged(value: &mut Value, damaged: &BTreeSet<u32>) {
    let Some(records) = value.records_mut() else { return };
    for key in damaged.iter().map(|&key| key as usize) {
        if records.get(key) == Some(Record::Unanswered) {
            records.fail(key, RecordError::Damaged);
        }
    }
}

/// The number of ids in a merged answer, for the profile.
pub(super) fn ids_in(value: &Value) -> u64 {
    match value {
        Value::Set(ids) | Value::Tallies { ids, .. } => ids.len() as u64,
        Value::Neighbourhood { ids, union } => (ids.len() + union.len()) as u64,
        Value::Count(count) => *count,
        Value::Lists(lists) => {
            lists.iter().map(|entry| if let ListEntry::Ids(ids) = entry { ids.len() as u64 } else { 0 }).sum()
        }
        Value::Edges(entries) => {
            let edges =
                |entry: &EdgesEntry| if let EdgesEntry::Page(page) = entry { page.ids.len() } else { 0 };
            entries.iter().map(edges).sum::<usize>() as u64
        }
        Value::Objects(entries) => {
            entries.iter().filter(|entry| matches!(entry, ObjectEntry::Found(_))).count() as u64
        }
        Value::Associations(entries) => entries.iter().map(associations_in).sum(),
        Value::Exists(exists) => u64::from(*exists),
        Value::Records(records) => records.counts().found,
        Value::Groups(groups) => groups.counts.len() as u64,
    }
}

fn associations_in(entry: &AssociationsEntry) -> u64 {
    let of_list = |answer: &AssociationAnswer| match answer {
        AssociationAnswer::List { out, .. } => out.len() as u64,
        AssociationAnswer::Count(_) => 0,
    };
    match entry {
        AssociationsEntry::Answer(lists) => lists.iter().map(of_list).sum(),
        AssociationsEntry::Unanswered => 0,
    }
}
