//! Fan-outs that ask for neighbour lists, and how cached and fetched lists make up their answer.

use kith_operators::{ListEntry, Operator, Value};
use kith_query::{FanOut, Scope};
use kith_schema::EdgeSelector;
use kith_types::FanOutKind;
use std::sync::Arc;

/// A fan-out that asks for nothing but the unfiltered lists of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListQuestion<'a> {
    /// The edges of the lists.
    pub edge: &'a EdgeSelector,
    /// The keys of the lists.
    pub keys: &'a [u64],
    /// A list with more ids than this is answered with its length.
    longest: u64,
}

impl<'a> ListQuestion<'a> {
    /// Returns the fan-out as a question for lists; `None` if it asks for anything else.
    pub fn of(fan_out: &'a FanOut) -> Option<Self> {
        match (&fan_out.plan, &fan_out.scope) {
            (Operator::Expand { input, edge, longest }, Scope::Keys(keys))
                if **input == Operator::Keys && edge.filter.is_none() =>
            {
                Some(Self { edge, keys, longest: *longest })
            }
            _ => None,
        }
    }

    /// Merges `cached` and `fetched` lists into one answer, in the order of the keys.
    pub fn joined(&self, cached: Vec<Option<Arc<[u64]>>>, fetched: Vec<ListEntry>) -> Value {
        let mut fetched = fetched.into_iter();
        let entry = |list: Option<Arc<[u64]>>| match list {
            Some(ids) if self.longest < ids.len() as u64 => ListEntry::Longer(ids.len() as u64),
            Some(ids) => ListEntry::Ids(ids.to_vec()),
            None => fetched.next().unwrap_or(ListEntry::Unanswered),
        };
        Value::Lists(cached.into_iter().map(entry).collect())
    }
}

/// Returns the same fan-out for the keys whose lists are not cached; `None` if all are.
pub(super) fn rest(fan_out: &FanOut, keys: &[u64], cached: &[Option<Arc<[u64]>>]) -> Option<FanOut> {
    let missing = keys.iter().zip(cached).filter(|(_, list)| list.is_none());
    let missing: Vec<u64> = missing.map(|(key, _)| *key).collect();
    let kind = match missing.len() {
        0 => return None,
        1 => FanOutKind::SingleKey,
        _ => fan_out.kind,
    };
    Some(FanOut { kind, scope: Scope::Keys(missing), ..fan_out.clone() })
}

/// Selects the fetched lists that may be cached: whole lists. Keys that are not in the graph are not cached, because their
/// number is unlimited.
pub(super) fn keepable(fan_out: &FanOut, fetched: &[ListEntry]) -> Vec<(u64, Arc<[u64]>)> {
    let Scope::Keys(keys) = &fan_out.scope else { return Vec::new() };
    let lists = keys.iter().zip(fetched).filter_map(|(&key, entry)| match entry {
        ListEntry::Ids(ids) => Some((key, Arc::from(ids.as_slice()))),
        ListEntry::NotInGraph | ListEntry::Longer(_) | ListEntry::Unanswered => None,
    });
    lists.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::Direction;

    fn edge() -> EdgeSelector {
        EdgeSelector { kind: "connection".into(), direction: Direction::Both, filter: None }
    }

    fn fan_out_of(plan: Operator, keys: &[u64]) -> FanOut {
        FanOut { purpose: "lists", kind: FanOutKind::NonUnion, scope: Scope::Keys(keys.to_vec()), plan }
    }

    fn expand(longest: u64) -> Operator {
        Operator::Expand { input: Box::new(Operator::Keys), edge: edge(), longest }
    }

    #[test]
    fn only_lists_can_be_cached() {
        let fan_out = fan_out_of(expand(512), &[3]);
        let expected = ListQuestion { edge: &edge(), keys: &[3], longest: 512 };
        assert_eq!(ListQuestion::of(&fan_out), Some(expected));
        assert_eq!(ListQuestion::of(&fan_out_of(Operator::Union(Box::new(expand(u64::MAX))), &[3])), None);
    }

    #[test]
    fn a_cached_list_that_is_longer_than_asked_for_is_answered_with_its_length() {
        let fan_out = fan_out_of(expand(2), &[5, 6]);
        let cached: Vec<Option<Arc<[u64]>>> = vec![Some([1, 2].into()), Some([1, 2, 3].into())];
        let answers = ListQuestion::of(&fan_out).unwrap().joined(cached, Vec::new());
        assert_eq!(answers, Value::Lists(vec![ListEntry::Ids(vec![1, 2]), ListEntry::Longer(3)]));
    }

    #[test]
    fn missing_lists_are_fetched_and_merged_in_the_order_of_the_keys() {
        let fan_out = fan_out_of(expand(u64::MAX), &[5, 6, 7]);
        let cached: Vec<Option<Arc<[u64]>>> = vec![None, Some([1, 2].into()), None];
        let asked = rest(&fan_out, &[5, 6, 7], &cached).unwrap();
        assert_eq!((&asked.scope, asked.kind), (&Scope::Keys(vec![5, 7]), FanOutKind::NonUnion));
        let fetched = vec![ListEntry::NotInGraph, ListEntry::Ids(vec![9])];
        assert_eq!(keepable(&asked, &fetched), [(7, [9].into())]);
        let expected = vec![ListEntry::NotInGraph, ListEntry::Ids(vec![1, 2]), ListEntry::Ids(vec![9])];
        assert_eq!(ListQuestion::of(&fan_out).unwrap().joined(cached, fetched), Value::Lists(expected));
        let one: Vec<Option<Arc<[u64]>>> = vec![Some([].into()), None];
        assert_eq!(rest(&fan_out, &[5, 6], &one).unwrap().kind, FanOutKind::SingleKey);
        assert_eq!(rest(&fan_out, &[5], &one[..1]), None);
    }
}
