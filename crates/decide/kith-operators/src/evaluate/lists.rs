//! Expansion: reads neighbour lists, and folds them as they arrive.

use super::{EvaluationMemory, Evaluator, go_on, mistyped};
use crate::sets;
use crate::{EvaluateError, ListEntry, Operator};
use kith_schema::EdgeSelector;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Whether further lists are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListsNeed {
    More,
    Enough,
}

/// The consumer of lists.
type Each<'e> = dyn FnMut(Option<&[u64]>, &EvaluationMemory) -> Result<ListsNeed, EvaluateError> + 'e;

impl<'a> Evaluator<'a> {
    /// Evaluates a plan that yields lists.
    pub(super) fn lists(&mut self, plan: &Operator) -> Result<Vec<ListEntry>, EvaluateError> {
        match plan {
            Operator::Expand { longest, .. } => self.expand(plan, *longest),
            Operator::Count(input) => self.lengths(input),
            other => Err(mistyped(other)),
        }
    }

    fn expand(&mut self, plan: &Operator, longest: u64) -> Result<Vec<ListEntry>, EvaluateError> {
        self.entries(plan, |ids| match ids.len() as u64 {
            length if longest < length => (ListEntry::Longer(length), 0),
            _ => (ListEntry::Ids(ids.to_vec()), size_of_val(ids)),
        })
    }

    fn lengths(&mut self, plan: &Operator) -> Result<Vec<ListEntry>, EvaluateError> {
        let Operator::Expand { input, edge, .. } = plan else { return Err(mistyped(plan)) };
        match self.keys_of(input)? {
            Cow::Borrowed(keys) => self.read_lengths(edge, keys),
            Cow::Owned(keys) => self.beside(&keys, |this| this.read_lengths(edge, &keys)),
        }
    }

    fn read_lengths(&mut self, edge: &EdgeSelector, keys: &[u64]) -> Result<Vec<ListEntry>, EvaluateError> {
        let (watch, held) = (&mut self.watch, self.held);
        held.fits(size_of::<ListEntry>() * keys.len())?;
        let (mut entries, mut failed) = (Vec::with_capacity(keys.len()), None);
        self.source.lengths(edge, keys, &mut |_, length| {
            entries.push(length.map_or(ListEntry::NotInGraph, ListEntry::Longer));
            go_on(watch.list(0), &mut failed)
        })?;
        failed.map_or(Ok(entries), Err)
    }

    /// Converts each list with `entry`, which returns the entry and the bytes that it takes in addition to itself.
    fn entries(
        &mut self,
        plan: &Operator,
        entry: impl Fn(&[u64]) -> (ListEntry, usize),
    ) -> Result<Vec<ListEntry>, EvaluateError> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        self.each_list(plan, |list, held| {
            let (entry, more) = list.map_or((ListEntry::NotInGraph, 0), &entry);
            bytes += size_of::<ListEntry>() + more;
            entries.push(entry);
            held.fits(bytes)
        })?;
        Ok(entries)
    }

    /// Evaluates a plan that yields tallies.
    pub(super) fn tallies(&mut self, plan: &Operator) -> Result<(Vec<u64>, Vec<u32>), EvaluateError> {
        match plan {
            Operator::Tally(input) => {
                let mut builder = std::mem::take(&mut self.scratch.tally);
                let read = self.each_list(input, |list, held| {
                    builder.add(list.unwrap_or_default());
                    held.fits(builder.bytes())
                });
                let tallies = read.and_then(|()| {
                    let tallies = builder.drain();
                    self.held.fits(sets::tally_bytes(tallies.0.len())).map(|()| tallies)
                });
                self.scratch.tally = builder;
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

    /// Evaluates a plan that yields a neighbourhood: the set, and the union of its lists.
    pub(super) fn neighbourhood(&mut self, plan: &Operator) -> Result<(Vec<u64>, Vec<u64>), EvaluateError> {
        let Operator::Neighbourhood { input, edge } = plan else { return Err(mistyped(plan)) };
        let ids = self.set(input)?;
        let union = self.beside(&ids, |this| {
            this.unite_lists(edge, &ids)?;
            this.united()
        })?;
        Ok((ids, union))
    }

    /// Streams the ids of an expansion into the union builder, which must be empty.
    pub(super) fn unite(&mut self, plan: &Operator) -> Result<(), EvaluateError> {
        let Operator::Expand { input, edge, .. } = plan else { return Err(mistyped(plan)) };
        match self.keys_of(input)? {
            Cow::Borrowed(keys) => self.unite_lists(edge, keys),
            Cow::Owned(keys) => self.beside(&keys, |this| this.unite_lists(edge, &keys)),
        }
    }

    /// Adds the other ends of the edges of the request's keys to the union builder.
    pub(super) fn unite_ends(&mut self, edge: &EdgeSelector) -> Result<(), EvaluateError> {
        self.unite_lists(edge, self.share.keys)?;
        let mut selves = self.scratch.take();
        let read = self.source.selves(edge, self.share.keys, &mut selves);
        selves.sort_unstable();
        self.scratch.union.add(&selves);
        self.scratch.put(selves);
        Ok(read?)
    }

    /// Returns the ids that were added to the union builder, and empties it.
    pub(super) fn united(&mut self) -> Result<Vec<u64>, EvaluateError> {
        let union = &mut self.scratch.union;
        self.held.fits(union.settled_len() * size_of::<u64>())?;
        let mut ids = Vec::new();
        union.drain_into(&mut ids);
        Ok(ids)
    }

    fn unite_lists(&mut self, edge: &EdgeSelector, keys: &[u64]) -> Result<(), EvaluateError> {
        let mut builder = std::mem::take(&mut self.scratch.union);
        let read = self.read(edge, keys, &mut |list, held| {
            builder.add(list.unwrap_or_default());
            builder.compact_to(held.left()).then_some(ListsNeed::More).ok_or_else(|| held.too_large())
        });
        if read.is_err() {
            builder.clear();
        }
        self.scratch.union = builder;
        read
    }

    /// Calls `each` with every list of an expansion, in the order of its input, until it fails.
    pub(super) fn each_list(
        &mut self,
        plan: &Operator,
        mut each: impl FnMut(Option<&[u64]>, &EvaluationMemory) -> Result<(), EvaluateError>,
    ) -> Result<(), EvaluateError> {
        self.some_lists(plan, |list, held| each(list, held).map(|()| ListsNeed::More))
    }

    /// Calls `each` like [`Evaluator::each_list`], until it has enough.
    pub(super) fn some_lists(
        &mut self,
        plan: &Operator,
        mut each: impl FnMut(Option<&[u64]>, &EvaluationMemory) -> Result<ListsNeed, EvaluateError>,
    ) -> Result<(), EvaluateError> {
        let Operator::Expand { input, edge, .. } = plan else { return Err(mistyped(plan)) };
        match self.keys_of(input)? {
            Cow::Borrowed(keys) => self.read(edge, keys, &mut each),
            Cow::Owned(keys) => self.beside(&keys, |this| this.read(edge, &keys, &mut each)),
        }
    }

    fn read(&mut self, edge: &EdgeSelector, keys: &[u64], each: &mut Each<'_>) -> Result<(), EvaluateError> {
        let (watch, held) = (&mut self.watch, self.held);
        let mut failed = None;
        self.source.lists(edge, keys, &mut |_, list| match watch
            .list(list.map_or(0, <[u64]>::len))
            .and_then(|()| each(list, &held))
        {
            Ok(ListsNeed::More) => ControlFlow::Continue(()),
            Ok(ListsNeed::Enough) => ControlFlow::Break(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// The ids of an input. The request's own keys keep their order; other sets are ascending.
    fn keys_of(&mut self, input: &Operator) -> Result<Cow<'a, [u64]>, EvaluateError> {
        match input {
            Operator::Keys => Ok(Cow::Borrowed(self.share.keys)),
            other => self.set(other).map(Cow::Owned),
        }
    }
}
