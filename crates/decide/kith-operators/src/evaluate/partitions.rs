//! Evaluates plans over postings and member tables, partition by partition. A member belongs to one partition, so the
//! result is the union of the partitions' results. Intersections stay small, and an existence query ends at the first
//! partition that has a member.

use super::{EvaluationMemory, mistyped};
use crate::sets::{self, Scratch, sort_distinct};
use crate::values::Watch;
use crate::{EvaluateError, Operator};
use kith_schema::{EdgeSelector, NeighbourSource};
use kith_types::PartitionId;

impl Operator {
    /// Whether the plan reads only postings or member tables, so that it can be evaluated within each partition.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Operator::Postings { .. } | Operator::Members { .. } => true,
            Operator::Except { input, .. } => input.is_local(),
            Operator::Intersect(inputs) => {
                inputs.iter().any(Operator::is_local)
                    && inputs.iter().all(|input| input.is_local() || matches!(input, Operator::Ids(_)))
            }
            _ => false,
        }
    }
}

/// One evaluation under way of plans within partitions.
pub(super) struct PartitionEvaluator<'e, 'w> {
    pub partitions: &'e [PartitionId],
    pub source: &'e dyn NeighbourSource,
    pub scratch: &'e mut Scratch,
    pub watch: &'e mut Watch<'w>,
    pub held: EvaluationMemory,
}

impl PartitionEvaluator<'_, '_> {
    /// Returns the set that a plan yields: sorted, distinct.
    pub fn set(&mut self, plan: &Operator) -> Result<Vec<u64>, EvaluateError> {
        let mut ids = Vec::new();
        for &partition in self.partitions {
            self.local(plan, partition, &mut ids)?;
            self.held.fits(size_of_val(&*ids))?;
        }
        // The ids of each partition ascend, but those of different partitions interleave.
        sort_distinct(&mut ids, &mut Vec::new());
        Ok(ids)
    }

    /// Returns the size of the set that a plan yields.
    pub fn count(&mut self, plan: &Operator) -> Result<u64, EvaluateError> {
        let mut ids = self.scratch.take();
        let mut count = 0;
        for &partition in self.partitions {
            ids.clear();
            self.local(plan, partition, &mut ids)?;
            self.held.fits(size_of_val(&*ids))?;
            count += ids.len() as u64;
        }
        self.scratch.put(ids);
        Ok(count)
    }

    /// Returns the number of members.
    pub fn member_count(&mut self) -> Result<u64, EvaluateError> {
        let mut count = 0;
        for &partition in self.partitions {
            count += self.source.member_count(partition)?;
            self.watch.look()?;
        }
        Ok(count)
    }

    /// Returns the sum of the lengths of lists of all members.
    pub fn total(&mut self, edges: &[EdgeSelector]) -> Result<u64, EvaluateError> {
        let mut total = 0_u64;
        for &partition in self.partitions {
            for edge in edges {
                total = total.saturating_add(self.source.total(edge, partition)?);
                self.watch.look()?;
            }
        }
        Ok(total)
    }

    /// Whether the set that a plan yields has a member.
    pub fn exists(&mut self, plan: &Operator) -> Result<bool, EvaluateError> {
        let mut ids = self.scratch.take();
        for &partition in self.partitions {
            self.local(plan, partition, &mut ids)?;
            if !ids.is_empty() {
                break;
            }
        }
        let found = !ids.is_empty();
        self.scratch.put(ids);
        Ok(found)
    }

    /// Appends the result of `plan` within one partition, ascending.
    fn local(
        &mut self,
        plan: &Operator,
        partition: PartitionId,
        out: &mut Vec<u64>,
    ) -> Result<(), EvaluateError> {
        match plan {
            Operator::Postings { id, edge } => {
                let before = out.len();
                self.source.postings(edge, partition, *id, out)?;
                self.watch.list(out.len() - before)
            }
            Operator::Members { from } => {
                let before = out.len();
                self.source.members(partition, out)?;
                self.watch.list(out.len() - before)?;
                if 0 < *from {
                    // The ids of one partition ascend.
                    let less = out[before..].partition_point(|id| id < from);
                    out.drain(before..before + less);
                }
                Ok(())
            }
            Operator::Except { input, drop } => {
                let mut ids = self.scratch.take();
                self.local(input, partition, &mut ids)?;
                out.extend(sets::difference(&ids, drop));
                self.scratch.put(ids);
                Ok(())
            }
            Operator::Intersect(inputs) => self.local_intersection(inputs, partition, out),
            other => Err(mistyped(other)),
        }
    }

    fn local_intersection(
        &mut self,
        inputs: &[Operator],
        partition: PartitionId,
        out: &mut Vec<u64>,
    ) -> Result<(), EvaluateError> {
        let mut common: Option<Vec<u64>> = None;
        for input in inputs.iter().filter(|input| input.is_local()) {
            let mut ids = self.scratch.take();
            let before = self.held;
            self.held = before.beside(common.as_deref().unwrap_or_default())?;
            self.local(input, partition, &mut ids)?;
            self.held.fits(size_of_val(&*ids))?;
            self.held = before;
            common = Some(match common.take() {
                None => ids,
                Some(so_far) => self.narrow(so_far, &ids),
            });
            if common.as_ref().is_some_and(Vec::is_empty) {
                return Ok(());
            }
        }
        let mut common = common.unwrap_or_default();
        for input in inputs {
            if let Operator::Ids(ids) = input {
                common = self.narrow(common, ids);
            }
        }
        out.append(&mut common);
        self.scratch.put(common);
        Ok(())
    }

    fn narrow(&mut self, ids: Vec<u64>, to: &[u64]) -> Vec<u64> {
        let mut common = self.scratch.take();
        sets::intersect_into(&ids, to, &mut common);
        self.scratch.put(ids);
        common
    }
}
