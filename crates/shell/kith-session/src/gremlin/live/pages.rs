//! Whole association lists. A read returns a part of a long list, so its rest is read page by page.

use super::labels::List;
use crate::gremlin::{
    fan_outs::{FanOuts, of_keys},
    rows::unexpected,
};
use kith_gremlin::GremlinError;
use kith_live::{
    AssociationAnswer, AssociationRead, AssociationsPlan, ListPlace, ListedAssociation, Select, Start,
};
use kith_operators::{AssociationsEntry, Operator, Value as Evaluated};
use kith_query::FanOut;
use std::collections::{BTreeMap, BTreeSet};

/// The number of vertices whose lists are read further at the same time, by one page each.
const PAGES_AT_ONCE: usize = 16;

/// The associations of the lists of one vertex, in the order of the lists.
pub(super) type Lists = Vec<Vec<ListedAssociation>>;

/// A part of a list, and whether more follows.
pub(super) type Page = (Vec<ListedAssociation>, bool);

/// The options of a read of whole lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeRead {
    /// Whether the associations come with their fields.
    pub with_properties: bool,
    /// The number of associations above which reading ends.
    pub elements_max: u64,
}

/// Reads the whole association lists of vertices, for each vertex in the order of the lists: in one fan-out for all of
/// them, and in further ones only for the rest of long lists.
pub(super) async fn whole_lists(
    fan_outs: &FanOuts<'_>,
    ids: &[u64],
    lists: &[List<'_>],
    wanted: WholeRead,
) -> Result<Vec<Lists>, GremlinError> {
    let found = vec![vec![Vec::new(); lists.len()]; ids.len()];
    let mut reading = Reading { ids, lists, wanted, found, open: BTreeMap::new(), count: 0 };
    for first in (0..lists.len()).step_by(Operator::LISTS_MAX) {
        let slots = first..lists.len().min(first + Operator::LISTS_MAX);
        let reads = slots.clone().map(|list| reading.read(list, Start::Index(0)));
        let plan = Operator::Associations(Box::new(AssociationsPlan::of(reads.collect())));
        let answers = associations(fan_outs.ask_keys("edges", ids, plan).await?, ids.len())?;
        for (at, answer) in answers.into_iter().enumerate() {
            slots.clone().zip(answer).for_each(|(list, page)| reading.take((at, list), page));
        }
    }
    while !reading.open.is_empty() && reading.count <= wanted.elements_max {
        let (slots, asked): (Vec<_>, Vec<_>) = reading.next_pages().into_iter().unzip();
        let answers = fan_outs.ask_together(&asked).await?;
        for (slots, answer) in slots.into_iter().zip(answers) {
            let pages = associations(answer, 1)?.into_iter().flatten();
            for slot in &slots {
                reading.open.remove(slot);
            }
            slots.into_iter().zip(pages).for_each(|(slot, page)| reading.take(slot, page));
        }
    }
    Ok(reading.found)
}

/// Lists as far as they have been read. A slot is the index of a vertex and that of a list.
struct Reading<'l> {
    ids: &'l [u64],
    lists: &'l [List<'l>],
    wanted: WholeRead,
    found: Vec<Lists>,
    /// The positions at which the unread rests of lists begin.
    open: BTreeMap<(usize, usize), ListPlace>,
    count: u64,
}

impl Reading<'_> {
    fn read(&self, list: usize, start: Start) -> AssociationRead {
        let list = &self.lists[list];
        AssociationRead {
            kind: list.kind.name.clone(),
            select: Select::Range { start, limit: None },
            with_data: self.wanted.with_properties && list.has_fields(),
            with_versions: false,
        }
    }

    fn take(&mut self, slot: (usize, usize), (out, more): Page) {
        if let Some(last) = out.last().filter(|_| more) {
            self.open.insert(slot, ListPlace { time: last.time, id2: last.id2 });
        }
        self.count += out.len() as u64;
        self.found[slot.0][slot.1].extend(out);
    }

    /// The next fan-outs, each for the next pages of one vertex, with the slots of these pages.
    fn next_pages(&self) -> Vec<(Vec<(usize, usize)>, FanOut)> {
        let vertices: BTreeSet<usize> = self.open.keys().map(|(at, _)| *at).collect();
        let fan_out = |at: usize| {
            let open = self.open.range((at, 0)..=(at, usize::MAX)).take(Operator::LISTS_MAX);
            let reads = open.clone().map(|((_, list), after)| self.read(*list, Start::After(*after)));
            let plan = Operator::Associations(Box::new(AssociationsPlan::of(reads.collect())));
            (open.map(|(slot, _)| *slot).collect(), of_keys("more edges", &[self.ids[at]], plan))
        };
        vertices.into_iter().take(PAGES_AT_ONCE).map(fan_out).collect()
    }
}

/// The lists of each key, and whether more follows in each.
pub(super) fn associations(evaluated: Evaluated, expected: usize) -> Result<Vec<Vec<Page>>, GremlinError> {
    let page = |answer: AssociationAnswer| match answer {
        AssociationAnswer::List { out, more } => (out, more),
        AssociationAnswer::Count(_) => (Vec::new(), false),
    };
    let pages = |answers: Vec<AssociationAnswer>| answers.into_iter().map(page).collect();
    Ok(answers(evaluated, expected)?.into_iter().map(pages).collect())
}

/// The sum of the lengths of the lists of each key.
pub(super) fn counts(evaluated: Evaluated, expected: usize) -> Result<Vec<u64>, GremlinError> {
    let count = |answer: &AssociationAnswer| match answer {
        AssociationAnswer::Count(count) => *count,
        AssociationAnswer::List { out, .. } => out.len() as u64,
    };
    let sum = |answers: Vec<AssociationAnswer>| answers.iter().map(count).sum();
    Ok(answers(evaluated, expected)?.into_iter().map(sum).collect())
}

/// Returns the answers about the lists of each key. Keys that no node answered have no lists: only callers that accept
/// partial answers get such an answer.
fn answers(evaluated: Evaluated, expected: usize) -> Result<Vec<Vec<AssociationAnswer>>, GremlinError> {
    let lists = |entry: AssociationsEntry| match entry {
        AssociationsEntry::Answer(lists) => lists,
        AssociationsEntry::Unanswered => Vec::new(),
    };
    match evaluated {
        Evaluated::Associations(entries) if entries.len() == expected => {
            Ok(entries.into_iter().map(lists).collect())
        }
        other => Err(unexpected(&other)),
    }
}
