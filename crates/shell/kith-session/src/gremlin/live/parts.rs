//! Parts of association lists, for traversals that may not need the rest.

use super::{
    labels::List,
    pages::{Page, associations},
};
use crate::gremlin::fan_outs::{FanOuts, of_keys};
use kith_gremlin::GremlinError;
use kith_live::{
    AssociationRead, AssociationsPlan, ElementTest, FieldOrder, ListPlace, ListedAssociation, Select, Start,
};
use kith_operators::Operator;
use kith_query::FanOut;
use kith_traversal::graph::EdgePlace;
use std::{collections::BTreeSet, ops::Range};

/// Up to this number of vertices, the lists of each are read on from their places, with a fan-out for each. The lists of more
/// vertices are read again from their beginnings, in one fan-out for all.
const READ_ON_MAX: usize = 16;

/// The associations of a vertex, each with the index of its list, and the place where they end if more may follow.
pub(super) type ListsPart = (Vec<(usize, ListedAssociation)>, Option<EdgePlace>);

/// What is read of the lists of several vertices.
pub(super) struct PartRead<'l> {
    /// The lists that each vertex has.
    pub lists: &'l [List<'l>],
    /// Whether the associations come with their fields.
    pub with_properties: bool,
    /// The tests that associations must pass, and their order if only the first are wanted.
    pub tests: &'l [ElementTest],
    pub top: Option<&'l FieldOrder>,
    /// The most associations of each vertex.
    pub limit: usize,
}

impl PartRead<'_> {
    /// Reads the next associations of vertices, each after its place: in one fan-out, unless these are the rests of lists.
    pub async fn read(
        &self,
        fan_outs: &FanOuts<'_>,
        vertices: &[(u64, Option<EdgePlace>)],
    ) -> Result<Vec<ListsPart>, GremlinError> {
        let mut parts: Vec<ListsPart> = vec![(Vec::new(), None); vertices.len()];
        let has_begun = |at: &usize| vertices[*at].1.is_some();
        let (begun, fresh): (Vec<usize>, Vec<usize>) = (0..vertices.len()).partition(has_begun);
        let (mut singly, together) = match begun.len() <= READ_ON_MAX {
            true => (begun, vec![fresh]),
            false => (Vec::new(), vec![fresh, begun]),
        };
        for group in together.into_iter().filter(|group| !group.is_empty()) {
            singly.extend(self.read_together(fan_outs, vertices, &group, &mut parts).await?);
        }
        for some in singly.chunks(READ_ON_MAX) {
            let fan_out = |at: &usize| {
                let (id, after) = vertices[*at];
                of_keys("more edges", &[id], self.plan(self.slots(after), after, self.limit))
            };
            let asked: Vec<FanOut> = some.iter().map(fan_out).collect();
            for (at, answer) in some.iter().zip(fan_outs.ask_together(&asked).await?) {
                let after = vertices[*at].1;
                let pages = associations(answer, 1)?.into_iter().next().unwrap_or_default();
                parts[*at] = self.part(self.slots(after), after, pages);
            }
        }
        Ok(parts)
    }

    /// Reads the lists of a group of vertices from their beginnings, in one fan-out. Returns the vertices of which nothing new came
    /// although there is more: one read does not reach as far.
    async fn read_together(
        &self,
        fan_outs: &FanOuts<'_>,
        vertices: &[(u64, Option<EdgePlace>)],
        group: &[usize],
        parts: &mut [ListsPart],
    ) -> Result<Vec<usize>, GremlinError> {
        let ids: BTreeSet<u64> = group.iter().map(|at| vertices[*at].0).collect();
        let ids: Vec<u64> = ids.into_iter().collect();
        let places = || group.iter().filter_map(|at| vertices[*at].1);
        let first = places().map(|position| position.list).min().unwrap_or(0);
        let read = places().map(|position| position.read).max().unwrap_or(0);
        let slots = self.slots(Some(EdgePlace { list: first, last: None, read: 0 }));
        let plan = self.plan(slots.clone(), None, self.limit.saturating_add(read));
        let answers = associations(fan_outs.ask_keys("edges", &ids, plan).await?, ids.len())?;
        let mut stuck = Vec::new();
        for at in group {
            let (id, after) = vertices[*at];
            let Ok(index) = ids.binary_search(&id) else { continue };
            let part = self.part(slots.clone(), after, answers[index].clone());
            if part.0.is_empty() && part.1.is_some_and(|rest| Some(rest) == after) {
                stuck.push(*at);
            }
            parts[*at] = part;
        }
        Ok(stuck)
    }

    /// The lists that one read asks for, the first of which is the one at a place.
    fn slots(&self, position: Option<EdgePlace>) -> Range<usize> {
        let first = position.map_or(0, |position| position.list);
        first..self.lists.len().min(first.saturating_add(Operator::LISTS_MAX))
    }

    /// Reads the first of these lists after a place, and the others from their beginnings.
    fn plan(&self, slots: Range<usize>, after: Option<EdgePlace>, limit: usize) -> Operator {
        let first = slots.start;
        let read = |slot: usize| {
            let position = after.filter(|_| slot == first).and_then(|position| position.last);
            let start = position.map_or(Start::Index(0), |[time, id2]| Start::After(ListPlace { time, id2 }));
            let list = &self.lists[slot];
            AssociationRead {
                kind: list.kind.name.clone(),
                select: Select::Range { start, limit: Some(u32::try_from(limit).unwrap_or(u32::MAX)) },
                with_data: self.with_properties && list.has_fields(),
                with_versions: false,
            }
        };
        Operator::Associations(Box::new(AssociationsPlan {
            reads: slots.map(read).collect(),
            tests: self.tests.to_vec(),
            top: self.top.cloned(),
            // A place in a list has a time, and the last association is one.
            without_times: !self.with_properties,
        }))
    }

    /// What follows a place in these lists, of which the pages were read.
    fn part(&self, slots: Range<usize>, after: Option<EdgePlace>, pages: Vec<Page>) -> ListsPart {
        let mut found = Vec::new();
        for (slot, (out, more)) in slots.clone().zip(pages) {
            let position = after.filter(|position| position.list == slot);
            if after.is_some_and(|position| slot < position.list) {
                continue;
            }
            let last = position.and_then(|position| position.last).map(|[time, id2]| ListPlace { time, id2 });
            let known = |it: &ListedAssociation| {
                last.is_some_and(|last| ListPlace { time: it.time, id2: it.id2 } <= last)
            };
            let mut rest = position.unwrap_or(EdgePlace { list: slot, last: None, read: 0 });
            let mut new = out.into_iter().skip_while(known).peekable();
            while (found.len() < self.limit || self.top.is_some())
                && let Some(association) = new.next()
            {
                let read = rest.read + 1;
                rest = EdgePlace { list: slot, last: Some([association.time, association.id2]), read };
                found.push((slot, association));
            }
            if more || new.peek().is_some() {
                return (found, Some(rest));
            }
        }
        let rest = EdgePlace { list: slots.end, last: None, read: 0 };
        (found, (slots.end < self.lists.len()).then_some(rest))
    }
}
