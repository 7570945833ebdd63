//! Queries of association lists, answered from lengths, prefixes and single associations.

use super::ask::{AskResult, Reader, Span};
use super::entry::Value;
use super::key::{FillKey, Key};
use super::prefix::Prefix;
use super::query::{DatedAnswer, RowsAnswer, Start};
use super::store::PREFIX_MAX;
use kith_live::{Association, ListKey, ListPlace, RowQuery};
use kith_types::LogPoint;
use std::collections::{BTreeMap, BTreeSet};

/// The shortest prefix that is read. Most lists are shorter, and are then known as a whole.
const PREFIX_MIN: u32 = 64;

/// If no part of a list is known and more associations than this are requested, the list is read first.
const ASSOCIATIONS_FIRST: usize = 16;

/// The requested part of a list: from `start` on, while the time is at least `low`.
#[derive(Clone, Copy)]
struct Window {
    start: Start,
    low: u64,
    limit: u32,
}

impl<W> Reader<'_, W> {
    pub(super) fn range(&mut self, list: ListKey, start: Start, limit: u32) -> AskResult {
        self.window(list, Window { start, low: 0, limit })
    }

    pub(super) fn time_range(&mut self, list: ListKey, (low, high): (u64, u64), limit: u32) -> AskResult {
        if high < low {
            return Ok(self.nothing(self.anywhere()));
        }
        let start = match high.checked_add(1) {
            Some(time) => Start::After(ListPlace { time, id2: u64::MAX }),
            None => Start::Index(0),
        };
        self.window(list, Window { start, low, limit })
    }

    pub(super) fn get(&mut self, list: ListKey, ids: &[u64], (low, high): (u64, u64)) -> AskResult {
        let mut wanted: BTreeSet<u64> = ids.iter().copied().collect();
        if wanted.is_empty() || high < low {
            return Ok(self.nothing(self.anywhere()));
        }
        let (mut found, mut span) = (BTreeMap::new(), Span::default());
        let known = self.look(FillKey::Entry(Key::Prefix(list)));
        if let Some((entry, at)) = &known
            && let Some(prefix) = entry.prefix()
        {
            let before = wanted.len();
            let here = prefix.items().iter().filter(|item| wanted.remove(&item.id2));
            found.extend(here.map(|item| (item.place(), item.clone())).collect::<Vec<_>>());
            // An id that is still wanted has no association with a time in the bounds if the prefix would contain it.
            wanted.retain(|id2| !prefix.covers(ListPlace { time: low, id2: *id2 }));
            if wanted.len() < before {
                span.add(*at);
            }
        }
        let length = if known.is_none() { self.length(list) } else { None };
        if let Some((0, at)) = length {
            return Ok(self.nothing(at));
        }
        wanted.retain(|id2| match self.look(FillKey::Entry(Key::Association(list.to(*id2)))) {
            Some((entry, at)) => {
                span.add(at);
                if let Value::Association(Some(item)) = &entry.value {
                    found.insert(item.place(), item.clone());
                }
                false
            }
            None => true,
        });
        if !wanted.is_empty() {
            return Err(missing_associations(list, &wanted, known.is_some(), length.is_some()));
        }
        let items = found.into_values().filter(|item: &Association| (low..=high).contains(&item.time));
        Ok(span.answered(RowsAnswer::Associations(items.collect()), self.anywhere()))
    }

    fn window(&mut self, list: ListKey, window: Window) -> AskResult {
        if window.limit == 0 {
            return Ok(self.nothing(self.anywhere()));
        }
        let known = self.look(FillKey::Entry(Key::Prefix(list)));
        if let Some((entry, at)) = &known
            && let Some(items) = entry.prefix().and_then(|prefix| window.of(prefix))
        {
            return Ok(DatedAnswer { answer: RowsAnswer::Associations(items), from: *at, until: *at });
        }
        let length = self.length(list);
        if let Some((length, at)) = length
            && window.begins_beyond(length)
        {
            return Ok(self.nothing(at));
        }
        if let Some((entry, at)) = self.look(FillKey::Page(list, window.start, window.limit))
            && let Some(page) = entry.prefix()
        {
            let items = window.take(page.items());
            return Ok(DatedAnswer { answer: RowsAnswer::Associations(items), from: at, until: at });
        }
        let known = known.as_ref().and_then(|(entry, _)| entry.prefix());
        Err(window.missing(list, known, length.is_some()))
    }

    fn nothing(&self, at: LogPoint) -> DatedAnswer {
        DatedAnswer { answer: RowsAnswer::Associations(Vec::new()), from: at, until: at }
    }
}

impl Window {
    /// Returns the requested part of a list, if the prefix contains it.
    fn of(&self, prefix: &Prefix) -> Option<Vec<Association>> {
        let items = prefix.items();
        let found = self.take(items.get(self.first(items)..).unwrap_or_default());
        let full = found.len() as u64 == u64::from(self.limit);
        // The prefix contains every association with this time or a later one.
        let ended = prefix.covers(ListPlace { time: self.low, id2: u64::MAX });
        (full || ended).then_some(found)
    }

    /// Whether a list of this length has nothing at the start or after it.
    fn begins_beyond(&self, length: u64) -> bool {
        match self.start {
            Start::Index(index) => length <= u64::from(index),
            Start::After(_) => length == 0,
        }
    }

    /// Returns the index of the first requested association.
    fn first(&self, items: &[Association]) -> usize {
        match self.start {
            Start::Index(index) => index as usize,
            Start::After(position) => items.partition_point(|item| item.place() <= position),
        }
    }

    fn take(&self, items: &[Association]) -> Vec<Association> {
        items.iter().take(self.limit as usize).take_while(|item| self.low <= item.time).cloned().collect()
    }

    /// Returns the rows to read: a longer prefix if it is short enough to be kept, otherwise only the requested part.
    fn missing(&self, list: ListKey, known: Option<&Prefix>, length_is_known: bool) -> Vec<RowQuery> {
        let limit = self.limit;
        let page = match self.start {
            Start::After(after) => RowQuery::List { list, after: Some(after), skip: 0, limit },
            // It counts from the start of the list, not from the end of a prefix that is known: in another state of the list, an
            // index is another place.
            Start::Index(skip) => RowQuery::List { list, after: None, skip, limit },
        };
        let prefix = |limit| RowQuery::List { list, after: None, skip: 0, limit };
        let Some(known) = known else {
            let mut rows = match self.start {
                Start::Index(0) => vec![prefix(rounded(limit))],
                Start::Index(index) => match index.saturating_add(limit) {
                    wanted if PREFIX_MAX < wanted as usize => vec![page],
                    wanted => vec![prefix(rounded(wanted))],
                },
                Start::After(_) => vec![prefix(rounded(limit)), page],
            };
            if !length_is_known {
                rows.push(RowQuery::Count(list));
            }
            return rows;
        };
        let near = match self.start {
            Start::Index(_) => true,
            Start::After(position) => known.covers(position),
        };
        let first = u32::try_from(self.first(known.items())).unwrap_or(u32::MAX);
        let wanted = first.saturating_add(limit);
        match self.start {
            Start::After(_) if !near => vec![page],
            Start::Index(1..) | Start::After(_) if PREFIX_MAX < wanted as usize => vec![page],
            _ => {
                let grown = u32::try_from(2 * known.items().len()).unwrap_or(u32::MAX);
                vec![prefix(rounded(wanted.max(grown.min(PREFIX_MAX as u32))))]
            }
        }
    }
}

/// Returns the length of the prefix to read if `wanted` associations are needed.
fn rounded(wanted: u32) -> u32 {
    let most = PREFIX_MAX as u32;
    if most <= wanted { wanted } else { wanted.next_power_of_two().clamp(PREFIX_MIN, most) }
}

/// Returns the rows to read for associations that are neither in the known prefix nor known to be absent.
fn missing_associations(
    list: ListKey,
    wanted: &BTreeSet<u64>,
    prefix_is_known: bool,
    length_is_known: bool,
) -> Vec<RowQuery> {
    let mut rows = Vec::new();
    if !prefix_is_known {
        rows.push(RowQuery::List { list, after: None, skip: 0, limit: PREFIX_MIN });
        if !length_is_known {
            rows.push(RowQuery::Count(list));
        }
    }
    if prefix_is_known || wanted.len() <= ASSOCIATIONS_FIRST {
        rows.extend(wanted.iter().map(|id2| RowQuery::Association(list.to(*id2))));
    }
    rows
}
