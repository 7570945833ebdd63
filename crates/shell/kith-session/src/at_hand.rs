//! Whole neighbour lists that are cached in this process, so that nodes need not be asked for them.

use crate::{Run, Session};
use kith_operators::{ListEntry, Operator, Value};
use kith_query::{FanOut, QueryError, Scope};
use kith_schema::EdgeSelector;
use kith_topology::Pinned;
use kith_types::{FanOutKind, OperationName};
use std::sync::Arc;

/// The number of lists that one request fetches ahead. The number is small so that other requests are not delayed.
const LISTS_AT_A_TIME: usize = 512;

/// A cache of whole neighbour lists in front of the nodes.
///
/// Contract: a list that is read was kept for the same graph, in the same state, under the same edge selector.
pub trait ListStore: Send + Sync + 'static {
    /// Returns the lists of `keys`, in the order of the keys; `None` for a list that is not kept.
    fn read(&self, graph: &Pinned, edge: &EdgeSelector, keys: &[u64]) -> Vec<Option<Arc<[u64]>>>;

    /// Keeps lists that nodes returned.
    fn keep(&self, graph: &Pinned, edge: &EdgeSelector, lists: &[(u64, Arc<[u64]>)]);
}

impl Session {
    /// Fetches every list of `edge` at one version of the graph into the [`ListStore`], in small batches in the background.
    /// Returns `false` if another version is served meanwhile. `O(members + edges)`.
    ///
    /// # Errors
    /// [`QueryError`] if a fetch fails; the lists that were fetched before it stay.
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

    /// Runs one fan-out in the background; `None` if the graph is at another version.
    async fn ask_at(&self, graph: &Pinned, fan_out: &FanOut) -> Result<Option<Value>, QueryError> {
        let work = async |run: &mut Run<'_>| match run.pinned().pin == graph.pin {
            true => run.round(fan_out).await.map(Some),
            false => Ok(None),
        };
        self.in_background(&graph.name, OperationName::Connections, work).await
    }
}

/// A fan-out that asks for nothing but the unfiltered lists of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListQuestion<'a> {
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

    /// Merges cached and `fetched` lists into one answer, in the order of the keys.
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

/// Returns the same fan-out for the keys whose lists are not cached; `None` if all are.
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

/// Selects the fetched lists that may be cached: whole lists. Keys that are not in the graph are not cached, because their
/// number is unlimited.
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
