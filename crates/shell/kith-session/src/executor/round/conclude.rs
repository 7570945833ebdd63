//! The end of a fan-out: the merged answer, or the error.

use super::Round;
use crate::executor::{RoundOutcome, failure::query_error};
use kith_live::AssociationAnswer;
use kith_operators::{
    AssociationsEntry, EdgesEntry, ListEntry, Missing as MissingKeys, ObjectEntry, Record, RecordError,
    Value, sets::Scratch,
};
use kith_query::QueryError;
use kith_routing::{
    NodeIndex,
    execution::{Failure, Outcome, Verdict},
};
use kith_types::PartitionId;
use std::{cell::RefCell, collections::BTreeSet};

thread_local! {
    /// The scratch space of merges. Its bitmap of half a mebibyte is cleared only where it was used; a new bitmap would
    /// have to be cleared as a whole for each merge.
    static MERGE_SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// The rest of a fan-out whose answers have been handed on.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    pub failures: Vec<Failure>,
    /// Keys that have no answer because their record is damaged.
    pub damaged: BTreeSet<u32>,
    pub service_us: u64,
}

impl Round<'_> {
    /// Ends a fan-out whose answers have been handed on. Returns the remaining failures, or an error if it failed or no key
    /// at all was answered, even if the caller accepts partial answers.
    pub(in crate::executor) fn conclude_handed(mut self, outcome: Outcome) -> Result<Handed, QueryError> {
        self.close_all();
        let is_failed = matches!(outcome.verdict, Verdict::Failed | Verdict::Cancelled);
        if is_failed || (outcome.answered == 0 && 0 < outcome.keys) {
            return Err(self.failure(&outcome));
        }
        self.trace.finish(outcome.answered.into(), outcome.stopped_early);
        Ok(Handed {
            failures: outcome.failures(),
            damaged: std::mem::take(&mut self.damaged),
            service_us: self.service_us,
        })
    }

    /// Merges the answers of the nodes, or returns the error of the fan-out.
    pub(in crate::executor) fn conclude(mut self, outcome: Outcome) -> Result<RoundOutcome, QueryError> {
        self.close_all();
        if matches!(outcome.verdict, Verdict::Failed | Verdict::Cancelled) {
            return Err(self.failure(&outcome));
        }
        if self.is_torn {
            let (name, reason) = (self.pinned.name.clone(), "answers are of different states".to_owned());
            return Err(QueryError::OtherPosition { name, reason });
        }
        let key_count = self.planned.partitions.len();
        let allowed = if self.options.partial { MissingKeys::Allow } else { MissingKeys::Refuse };
        let parts = std::mem::take(&mut self.parts);
        let merged = MERGE_SCRATCH
            .with_borrow_mut(|scratch| Value::merge(&self.fan_out.plan, key_count, parts, allowed, scratch));
        let mut value = merged
            .map_err(|error| QueryError::Internal { detail: format!("{}: {error}", self.fan_out.purpose) })?;
        if let Some(records) = value.records_mut() {
            for key in self.damaged.iter().map(|&key| key as usize) {
                if records.get(key) == Some(Record::Unanswered) {
                    records.fail(key, RecordError::Damaged);
                }
            }
        }
        self.trace.finish(ids_in(&value), outcome.stopped_early);
        let missing = outcome.missing.iter().map(|missing| missing.partition.0).collect();
        let reached = std::mem::take(&mut self.reached);
        Ok(RoundOutcome { value, missing, failures: outcome.failures(), reached })
    }

    /// The error of a failed fan-out.
    fn failure(&mut self, outcome: &Outcome) -> QueryError {
        self.trace.finish(0, outcome.stopped_early);
        if let Some(denied) = &self.denied {
            return denied.clone();
        }
        if self.too_large {
            return QueryError::too_large();
        }
        let availability = self.executor.fleet.availability_within(&self.topology.table, &self.pinned.reach);
        let table = &self.topology.table;
        let is_up = |node: &NodeIndex| availability.serving().contains(*node);
        let is_lost = |partition: PartitionId| !table.replicas(partition).iter().any(is_up);
        let deadline_ms = self.trace.allowed_ms(self.deadline);
        query_error(outcome, self.pinned, deadline_ms, &self.reasons, &is_lost)
    }
}

fn ids_in(value: &Value) -> u64 {
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
