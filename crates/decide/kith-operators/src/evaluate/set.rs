//! Evaluates plans that yield a set, and counts and existences that do not need the set in memory.

use super::{Evaluator, lists::ListsNeed, mistyped};
use crate::sets::{self, sort_distinct};
use crate::{EvaluateError, Operator};

impl Evaluator<'_> {
    /// Evaluates a plan that yields a set: sorted, distinct.
    pub(super) fn set(&mut self, plan: &Operator) -> Result<Vec<u64>, EvaluateError> {
        let ids = self.any_set(plan)?;
        self.watch.list(ids.len())?;
        self.held.fits(size_of_val(&*ids))?;
        Ok(ids)
    }

    fn any_set(&mut self, plan: &Operator) -> Result<Vec<u64>, EvaluateError> {
        if plan.is_local() {
            return self.by_partition().set(plan);
        }
        match plan {
            Operator::Keys => {
                let mut keys = self.share.keys.to_vec();
                sort_distinct(&mut keys, &mut Vec::new());
                Ok(keys)
            }
            Operator::Ids(ids) => Ok(ids.clone()),
            Operator::Union(input) => {
                self.unite(input)?;
                self.united()
            }
            Operator::Reach(edges) => {
                edges.iter().try_for_each(|edge| self.unite_ends(edge))?;
                self.united()
            }
            Operator::Intersect(inputs) => self.intersection(inputs),
            Operator::Except { input, drop } => Ok(sets::difference(&self.set(input)?, drop)),
            Operator::Limit { input, count } => {
                let mut ids = self.set(input)?;
                ids.truncate(usize::try_from(*count).unwrap_or(usize::MAX));
                Ok(ids)
            }
            other => Err(mistyped(other)),
        }
    }

    fn intersection(&mut self, inputs: &[Operator]) -> Result<Vec<u64>, EvaluateError> {
        if let Some((expansion, ids)) = masked_union(inputs) {
            return self.masked(expansion, ids);
        }
        let Some((first, rest)) = inputs.split_first() else { return Ok(Vec::new()) };
        let mut common = self.set(first)?;
        for input in rest {
            if common.is_empty() {
                break;
            }
            common = match input {
                Operator::Ids(ids) => sets::intersect(&common, ids),
                other => {
                    let ids = self.beside(&common, |this| this.set(other))?;
                    sets::intersect(&common, &ids)
                }
            };
        }
        Ok(common)
    }

    /// Evaluates a union of lists restricted to `ids`. Each list is intersected with `ids`, and nothing else is copied.
    fn masked(&mut self, expansion: &Operator, ids: &[u64]) -> Result<Vec<u64>, EvaluateError> {
        let mut builder = std::mem::take(&mut self.scratch.union);
        let mut common = self.scratch.take();
        let read = self.each_list(expansion, |list, _| {
            common.clear();
            sets::intersect_into(list.unwrap_or_default(), ids, &mut common);
            builder.add(&common);
            Ok(())
        });
        let mut out = Vec::new();
        builder.drain_into(&mut out);
        self.scratch.put(common);
        self.scratch.union = builder;
        read.map(|()| out)
    }

    /// Evaluates a plan that yields a count.
    pub(super) fn count(&mut self, plan: &Operator) -> Result<u64, EvaluateError> {
        if let Operator::Total(edges) = plan {
            return self.by_partition().total(edges);
        }
        let Operator::Count(input) = plan else { return Err(mistyped(plan)) };
        match &**input {
            Operator::Members { from: 0 } => self.by_partition().member_count(),
            local if local.is_local() => self.by_partition().count(local),
            Operator::Union(lists) => {
                self.unite(lists)?;
                Ok(self.scratch.union.drain_count())
            }
            other => Ok(self.set(other)?.len() as u64),
        }
    }

    /// Evaluates a plan that yields an existence.
    pub(super) fn exists(&mut self, plan: &Operator) -> Result<bool, EvaluateError> {
        let Operator::Exists(input) = plan else { return Err(mistyped(plan)) };
        match &**input {
            local if local.is_local() => self.by_partition().exists(local),
            Operator::Union(lists) => self.any_list(lists, |ids| !ids.is_empty()),
            Operator::Intersect(inputs) => match masked_union(inputs) {
                Some((lists, ids)) => self.any_list(lists, |list| sets::intersects(list, ids)),
                None => Ok(!self.intersection(inputs)?.is_empty()),
            },
            other => Ok(!self.set(other)?.is_empty()),
        }
    }

    /// Whether `will_do` accepts any list of the expansion. Stops at the first such list.
    fn any_list(
        &mut self,
        expansion: &Operator,
        will_do: impl Fn(&[u64]) -> bool,
    ) -> Result<bool, EvaluateError> {
        let mut found = false;
        self.some_lists(expansion, |list, _| {
            found = will_do(list.unwrap_or_default());
            Ok(if found { ListsNeed::Enough } else { ListsNeed::More })
        })?;
        Ok(found)
    }
}

/// The expansion and the ids of `Intersect([Union(expansion), Ids(ids)])`, in either order.
fn masked_union(inputs: &[Operator]) -> Option<(&Operator, &[u64])> {
    match inputs {
        [Operator::Union(lists), Operator::Ids(ids)] | [Operator::Ids(ids), Operator::Union(lists)] => {
            Some((lists, ids))
        }
        _ => None,
    }
}
