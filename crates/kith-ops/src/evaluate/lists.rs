//! Expansion: reading neighbour lists, and folding them as they come.

use super::{Evaluator, mistyped};
use crate::sets::{self, TallyBuilder};
use crate::{EdgeSelector, EvaluateError, ListEntry, Operator};
use std::borrow::Cow;
use std::ops::ControlFlow;

impl<'a> Evaluator<'a> {
    /// A plan that gives lists.
    pub(super) fn lists(&mut self, plan: &Operator) -> Result<Vec<ListEntry>, EvaluateError> {
        match plan {
            Operator::Expand { longest, .. } => self.expand(plan, *longest),
            Operator::Count(input) => self.lengths(input),
            other => Err(mistyped(other)),
        }
    }

    fn expand(&mut self, plan: &Operator, longest: u64) -> Result<Vec<ListEntry>, EvaluateError> {
        let mut entries = Vec::new();
        self.each_list(plan, |list| {
            entries.push(match list {
                None => ListEntry::NotInGraph,
                Some(ids) if longest < ids.len() as u64 => ListEntry::Longer(ids.len() as u64),
                Some(ids) => ListEntry::Ids(ids.to_vec()),
            });
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }

    fn lengths(&mut self, plan: &Operator) -> Result<Vec<ListEntry>, EvaluateError> {
        let mut entries = Vec::new();
        self.each_list(plan, |list| {
            entries.push(match list {
                None => ListEntry::NotInGraph,
                Some(ids) => ListEntry::Longer(ids.len() as u64),
            });
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }

    /// A plan that gives tallies.
    pub(super) fn tallies(&mut self, plan: &Operator) -> Result<(Vec<u64>, Vec<u32>), EvaluateError> {
        match plan {
            Operator::Tally(input) => {
                let mut builder = std::mem::take(&mut self.scratch.tally);
                let read = self.each_list(input, |list| {
                    builder.add(list.unwrap_or_default());
                    ControlFlow::Continue(())
                });
                let tallies = read.map(|()| builder.drain());
                self.give_back(builder);
                tallies
            }
            Operator::Except { input, drop } => {
                let (ids, counts) = self.tallies(input)?;
                let kept = sets::difference(&ids, drop);
                let mut at = ids.iter().zip(counts);
                let count_of = |id: &u64| at.find(|&(other, _)| other == id).map_or(0, |(_, count)| count);
                let counts = kept.iter().map(count_of).collect();
                Ok((kept, counts))
            }
            other => Err(mistyped(other)),
        }
    }

    fn give_back(&mut self, builder: TallyBuilder) {
        self.scratch.tally = builder;
    }

    /// A plan that gives a neighbourhood: the set, and the union of its lists.
    pub(super) fn neighbourhood(&mut self, plan: &Operator) -> Result<(Vec<u64>, Vec<u64>), EvaluateError> {
        let Operator::Neighbourhood { input, edge } = plan else { return Err(mistyped(plan)) };
        let ids = self.set(input)?;
        self.unite_lists(edge, &ids)?;
        let mut union = Vec::new();
        self.scratch.union.drain_into(&mut union);
        Ok((ids, union))
    }

    /// Streams the ids of an expansion into the union builder. Empty at the start, full at the end.
    pub(super) fn unite(&mut self, plan: &Operator) -> Result<(), EvaluateError> {
        let Operator::Expand { input, edge, .. } = plan else { return Err(mistyped(plan)) };
        let keys = self.keys_of(input)?;
        self.unite_lists(edge, &keys)
    }

    fn unite_lists(&mut self, edge: &EdgeSelector, keys: &[u64]) -> Result<(), EvaluateError> {
        let mut builder = std::mem::take(&mut self.scratch.union);
        let read = self.read(edge, keys, &mut |list| {
            builder.add(list.unwrap_or_default());
            ControlFlow::Continue(())
        });
        if read.is_err() {
            builder.clear();
        }
        self.scratch.union = builder;
        read
    }

    /// Calls `each` with every list of an expansion, in the order of its input, until it breaks.
    pub(super) fn each_list(
        &mut self,
        plan: &Operator,
        mut each: impl FnMut(Option<&[u64]>) -> ControlFlow<()>,
    ) -> Result<(), EvaluateError> {
        let Operator::Expand { input, edge, .. } = plan else { return Err(mistyped(plan)) };
        let keys = self.keys_of(input)?;
        self.read(edge, &keys, &mut each)
    }

    fn read(
        &mut self,
        edge: &EdgeSelector,
        keys: &[u64],
        each: &mut dyn FnMut(Option<&[u64]>) -> ControlFlow<()>,
    ) -> Result<(), EvaluateError> {
        let watch = &mut self.watch;
        self.source.lists(edge, keys, &mut |_, list| match watch.list(list.map_or(0, <[u64]>::len)) {
            Ok(()) => each(list),
            Err(_) => ControlFlow::Break(()),
        })?;
        self.watch.check()
    }

    /// The request's own keys stay in its order; other sets are ascending.
    fn keys_of(&mut self, input: &Operator) -> Result<Cow<'a, [u64]>, EvaluateError> {
        match input {
            Operator::Keys => Ok(Cow::Borrowed(self.share.keys)),
            other => self.set(other).map(Cow::Owned),
        }
    }
}
