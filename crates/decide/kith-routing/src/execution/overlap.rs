//! Requests for the same keys, of which one is a hedge of the other: whose answer counts.

use super::requests::{Request, RequestState, Requests};
use super::{Action, Answers, Cause, RequestId};
use crate::load::RequestEnd;
use crate::{Candidates, NodeIndex};
use kith_types::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Requests {
    pub fn note_won(&mut self, request: RequestId, keys: u32) {
        let request = &mut self.list[request.0 as usize];
        if request.cause.is_hedge() && 0 < keys {
            self.counts.won += u32::from(!std::mem::replace(&mut request.won, true));
            self.counts.keys_won += keys;
        }
    }

    /// Whether the answer of this request does not count on its own: it is a hedge whose answer cannot be divided by key,
    /// while the original may still answer.
    pub fn is_withheld(&self, request: RequestId) -> bool {
        let Some(request) = self.list.get(request.0 as usize) else { return false };
        match request.cause {
            Cause::Hedge { of } => {
                self.query.options.answers == Answers::Together
                    && request.state == RequestState::Open
                    && self.list[of.0 as usize].state == RequestState::Open
            }
            Cause::Plan | Cause::Retry => false,
        }
    }

    /// Releases the held hedges of an original that can no longer answer: their answers count from now on.
    pub fn release_hedges(&mut self, of: RequestId) {
        for id in self.hedges_of(of) {
            let request = &mut self.list[id.0 as usize];
            if request.state != RequestState::Held {
                continue;
            }
            request.state = RequestState::Over;
            let keys = Arc::clone(&request.keys);
            self.ledger.unask(&keys);
            let first = keys.iter().filter(|key| self.ledger.answer(**key)).count() as u32;
            debug_assert_eq!(first as usize, keys.len(), "nobody else could answer them");
            self.note_won(id, first);
            self.actions.push(Action::Use { request: id });
        }
    }

    /// Drops the hedges of a request that has answered all its keys at once. Their answers can no longer count.
    pub fn drop_hedges(&mut self, of: RequestId) {
        for id in self.hedges_of(of) {
            let request = &mut self.list[id.0 as usize];
            if request.state == RequestState::Held {
                request.state = RequestState::Over;
                let keys = Arc::clone(&request.keys);
                self.ledger.unask(&keys);
            }
            self.cancel(id, RequestEnd::Cancelled);
        }
    }

    /// Cancels the other requests for the same keys after a request was answered, in full or in part, once no key that they
    /// owe is waited for.
    pub fn call_off(&mut self, answered: RequestId) {
        let (beside, end) = match self.list[answered.0 as usize].cause {
            Cause::Hedge { of } => (vec![of], RequestEnd::Overtaken),
            Cause::Plan | Cause::Retry => (self.hedges_of(answered), RequestEnd::Cancelled),
        };
        for id in beside {
            if !self.is_awaited(id) {
                self.cancel(id, end);
            }
        }
    }

    /// Returns the keys of a late request by the node that can be asked for them. Such a node is a replica that is up, has
    /// not failed the key, and owes this query no planned request. `None` if there is no such node or, if answers cannot be
    /// divided by key, if any key has none.
    pub fn others(&self, request: &Request, view: &Candidates<'_>) -> Option<BTreeMap<NodeId, Vec<u32>>> {
        let open = self.list.iter().filter(|request| request.state == RequestState::Open);
        let owing: Vec<NodeId> =
            open.filter(|request| !request.cause.is_hedge()).map(|request| request.node).collect();
        let mut keys_by_node: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
        for key in request.rest().iter().copied().filter(|key| self.ledger.is_waiting(*key)) {
            let tried = self.ledger.tried(key);
            let may_be_asked = |node: &NodeIndex| {
                let id = view.node(*node).id;
                view.is_up(*node) && !owing.contains(&id) && !tried.contains(&id)
            };
            let replicas = view.replicas(self.query.partitions[key as usize]).filter(may_be_asked);
            let has_turn = (tried.len() as u32) < self.query.options.retries_max;
            match replicas.min_by_key(|node| self.query.rank(view, *node)).filter(|_| has_turn) {
                Some(node) => keys_by_node.entry(view.node(node).id).or_default().push(key),
                None if self.query.options.answers == Answers::Together => return None,
                None => {}
            }
        }
        Some(keys_by_node).filter(|keys_by_node| !keys_by_node.is_empty())
    }

    pub fn send_hedges(&mut self, of: RequestId, keys_by_node: BTreeMap<NodeId, Vec<u32>>) {
        for (node, keys) in keys_by_node {
            self.counts.sent += 1;
            self.counts.keys += keys.len() as u32;
            self.send(node, keys.into(), Cause::Hedge { of });
        }
    }
}
