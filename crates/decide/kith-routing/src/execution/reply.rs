//! Decides which answers of replies count.

use super::Execution;
use super::requests::RequestState;
use crate::execution::{Answers, Cause, Disposition, FailureClass, RequestId};
use crate::load::RequestEnd;
use kith_types::NodeId;
use std::collections::BTreeMap;

impl Execution {
    pub(super) fn reply(&mut self, request: RequestId, failed: &[(u32, FailureClass)]) -> Disposition {
        if self.requests.is_withheld(request) {
            return self.hold(request, failed);
        }
        let Some((node, keys)) = self.requests.close(request) else { return Disposition::Ignored };
        if self.requests.query.options.answers == Answers::Together {
            self.requests.drop_hedges(request);
        }
        self.settle(request, node, &keys, failed)
    }

    pub(super) fn reply_so_far(
        &mut self,
        id: RequestId,
        count: u32,
        failed: &[(u32, FailureClass)],
    ) -> Disposition {
        let count = count as usize;
        let request = self
            .requests
            .list
            .get_mut(id.0 as usize)
            .filter(|request| request.state == RequestState::Open && count < request.rest().len());
        let Some(request) = request.filter(|_| self.requests.query.options.answers == Answers::ByKey) else {
            return Disposition::Ignored;
        };
        let keys: Vec<u32> = request.rest()[..count].to_vec();
        request.heard += count;
        let node = request.node;
        self.requests.ledger.unask(&keys);
        let disposition = self.settle(id, node, &keys, failed);
        // Other requests may have answered the rest of it between them.
        if !self.requests.is_awaited(id) {
            let end = if self.requests.is_hedge(id) { RequestEnd::Cancelled } else { RequestEnd::Overtaken };
            self.requests.cancel(id, end);
        }
        disposition
    }

    /// Records that these keys of a request are answered, except those that it failed.
    fn settle(
        &mut self,
        request: RequestId,
        node: NodeId,
        keys: &[u32],
        failed: &[(u32, FailureClass)],
    ) -> Disposition {
        let is_hedge = self.requests.is_hedge(request);
        let mut lost: BTreeMap<u32, FailureClass> = failed.iter().copied().collect();
        // A node can only fail keys that it was asked for.
        lost.retain(|key, _| keys.binary_search(key).is_ok());
        let mut late = Vec::new();
        let mut first = 0;
        for key in keys.iter().filter(|key| lost.is_empty() || !lost.contains_key(*key)) {
            if self.requests.ledger.answer(*key) {
                first += 1;
            } else {
                late.push(*key);
            }
        }
        self.requests.note_won(request, first);
        lost.into_iter()
            .for_each(|(key, class)| self.retries.fail_key(&mut self.requests, key, node, class, is_hedge));
        self.requests.call_off(request);
        if late.is_empty() { Disposition::Accepted } else { Disposition::AcceptedInPart { late } }
    }

    /// Holds an answer until all hedges of the same original have answered. Only together do they replace it.
    fn hold(&mut self, request: RequestId, failed: &[(u32, FailureClass)]) -> Disposition {
        let Some((node, keys)) = self.requests.close(request) else { return Disposition::Ignored };
        if let Some((_, class)) = failed.first() {
            // A part of a sum is useless.
            keys.iter().for_each(|key| self.retries.fail_key(&mut self.requests, *key, node, *class, true));
            return Disposition::Ignored;
        }
        self.requests.list[request.0 as usize].state = RequestState::Held;
        self.requests.ledger.ask(&keys);
        let Cause::Hedge { of } = self.requests.list[request.0 as usize].cause else {
            unreachable!("only hedges are held")
        };
        let hedges = self.requests.hedges_of(of);
        let held = |id: &RequestId| self.requests.list[id.0 as usize].state == RequestState::Held;
        if hedges.iter().all(held) {
            self.requests.cancel(of, RequestEnd::Overtaken);
            self.requests.release_hedges(of);
        }
        Disposition::Held
    }
}
