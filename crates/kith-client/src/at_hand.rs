//! Whole neighbour lists that need not be asked for, because they are at hand already.

use crate::{Run, Session, topology::Pinned};
use kith_api::QueryError;
use kith_ops::{EdgeSelector, FanOut, ListEntry, Operator, Scope, Value};
use kith_types::{FanOutKind, OperationName};
use std::sync::Arc;

/// Lists fetched at once before anybody asks: small requests, which hold up nobody.
const LISTS_AT_A_TIME: usize = 512;

/// Keeps whole neighbour lists in front of the nodes.
///
/// Contract: a list that is read is the one that was kept for the same graph, in the same state, under the same edges.
pub trait ListStore: Send + Sync + 'static {
    /// The lists of `keys` that are kept, in the order of the keys.
    fn read(&self, graph: &Pinned, edge: &EdgeSelector, keys: &[u64]) -> Vec<Option<Arc<[u64]>>>;

    /// Keeps lists as nodes gave them.
    fn keep(&self, graph: &Pinned, edge: &EdgeSelector, lists: &[(u64, Arc<[u64]>)]);
}

impl Session {
    /// Fetches every list of `edge` at one version of the graph, a few at a time in the background, so that the
    /// [`ListStore`] has them before anybody asks. False if another version serves meanwhile. `O(members + edges)`.
    ///
    /// # Errors
    /// [`QueryError`]; what was fetched before stays.
    pub async fn bring_to_hand(&self, graph: &Pinned, edge: &EdgeSelector) -> Result<bool, QueryError> {
        let ask = |purpose, kind, scope, plan| FanOut { purpose, kind, scope, plan };
        let everyone = ask("members", FanOutKind::Broadcast, Scope::Partitions, Operator::Members);
        let Some(Value::Set(members)) = self.ask_at(graph, &everyone).await? else { return Ok(false) };
        let lists =
            Operator::Expand { input: Box::new(Operator::Keys), edge: edge.clone(), longest: u64::MAX };
        for keys in members.chunks(LISTS_AT_A_TIME) {
            let lists = ask("lists", FanOutKind::NonUnion, Scope::Keys(keys.to_vec()), lists.clone());
            if self.ask_at(graph, &lists).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One fan-out in the background; `None` if the graph is at another version.
    async fn ask_at(&self, graph: &Pinned, fan_out: &FanOut) -> Result<Option<Value>, QueryError> {
        let work = async |run: &mut Run<'_>| match run.pinned().pin == graph.pin {
            true => run.round(fan_out).await.map(Some),
            false => Ok(None),
        };
        self.in_background(&graph.name, OperationName::Connections, work).await
    }
}

/// A question for the lists of keys, unfiltered, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListQuestion<'a> {
    /// The edges.
    pub edge: &'a EdgeSelector,
    /// Whose lists.
    pub keys: &'a [u64],
    /// A list of more ids is answered with its length.
    longest: u64,
}

impl<'a> ListQuestion<'a> {
    /// The question that a fan-out is; `None` of any other.
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

    /// The answers in the order of the keys: from the lists at hand, the others as they were `fetched`.
    pub fn joined(&self, at_hand: Vec<Option<Arc<[u64]>>>, fetched: Vec<ListEntry>) -> Value {
        let mut fetched = fetched.into_iter();
        let entry = |list: Option<Arc<[u64]>>| match list {
            Some(ids) if self.longest < ids.len() as u64 => ListEntry::Longer(ids.len() as u64),
            Some(ids) => ListEntry::Ids(ids.to_vec()),
            None => fetched.next().unwrap_or(ListEntry::Unanswered),
        };
        Value::Lists(at_hand.into_iter().map(entry).collect())
    }
}

/// The same fan-out for those keys whose list is not at hand; `None` if all are.
pub(crate) fn rest(fan_out: &FanOut, keys: &[u64], at_hand: &[Option<Arc<[u64]>>]) -> Option<FanOut> {
    let missing = keys.iter().zip(at_hand).filter(|(_, list)| list.is_none());
    let missing: Vec<u64> = missing.map(|(key, _)| *key).collect();
    let kind = match missing.len() {
        0 => return None,
        1 => FanOutKind::SingleKey,
        _ => fan_out.kind,
    };
    Some(FanOut { kind, scope: Scope::Keys(missing), ..fan_out.clone() })
}

/// What of fetched lists may be kept: whole ones. A key that is not in the graph is not kept: there is no end of those.
pub(crate) fn keepable(fan_out: &FanOut, fetched: &[ListEntry]) -> Vec<(u64, Arc<[u64]>)> {
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

    fn asks(plan: Operator, keys: &[u64]) -> FanOut {
        FanOut { purpose: "lists", kind: FanOutKind::NonUnion, scope: Scope::Keys(keys.to_vec()), plan }
    }

    fn expand(longest: u64) -> Operator {
        Operator::Expand { input: Box::new(Operator::Keys), edge: edge(), longest }
    }

    #[test]
    fn only_lists_can_be_at_hand() {
        let asked = asks(expand(512), &[3]);
        let expected = ListQuestion { edge: &edge(), keys: &[3], longest: 512 };
        assert_eq!(ListQuestion::of(&asked), Some(expected));
        assert_eq!(ListQuestion::of(&asks(Operator::Union(Box::new(expand(u64::MAX))), &[3])), None);
    }

    #[test]
    fn a_list_at_hand_that_is_longer_than_asked_for_is_answered_with_its_length() {
        let fan_out = asks(expand(2), &[5, 6]);
        let at_hand: Vec<Option<Arc<[u64]>>> = vec![Some([1, 2].into()), Some([1, 2, 3].into())];
        let answers = ListQuestion::of(&fan_out).unwrap().joined(at_hand, Vec::new());
        assert_eq!(answers, Value::Lists(vec![ListEntry::Ids(vec![1, 2]), ListEntry::Longer(3)]));
    }

    #[test]
    fn what_is_missing_is_asked_for_and_finds_its_place() {
        let fan_out = asks(expand(u64::MAX), &[5, 6, 7]);
        let at_hand: Vec<Option<Arc<[u64]>>> = vec![None, Some([1, 2].into()), None];
        let asked = rest(&fan_out, &[5, 6, 7], &at_hand).unwrap();
        assert_eq!((&asked.scope, asked.kind), (&Scope::Keys(vec![5, 7]), FanOutKind::NonUnion));
        let fetched = vec![ListEntry::NotInGraph, ListEntry::Ids(vec![9])];
        assert_eq!(keepable(&asked, &fetched), [(7, [9].into())]);
        let expected = vec![ListEntry::NotInGraph, ListEntry::Ids(vec![1, 2]), ListEntry::Ids(vec![9])];
        assert_eq!(ListQuestion::of(&fan_out).unwrap().joined(at_hand, fetched), Value::Lists(expected));
        let one: Vec<Option<Arc<[u64]>>> = vec![Some([].into()), None];
        assert_eq!(rest(&fan_out, &[5, 6], &one).unwrap().kind, FanOutKind::SingleKey);
        assert_eq!(rest(&fan_out, &[5], &one[..1]), None);
    }
}
