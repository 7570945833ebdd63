//! Decides which answers of replies count.

use super::{Execution, RequestState};
use crate::execution::{Answers, Disposition, FailureClass, RequestId};
use crate::load::RequestEnd;
use kith_types::NodeId;
use std::collections::BTreeMap;

impl Execution {
    pub(super) fn reply(&mut self, request: RequestId, failed: &[(u32, FailureClass)]) -> Disposition {
        if self.is_withheld(request) {
            return self.hold(request, failed);
        }
        let Some((node, keys)) = self.close(request) else { return Disposition::Ignored };
        if self.options.answers == Answers::Together {
            self.drop_hedges(request);
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
            .get_mut(id.0 as usize)
            .filter(|request| request.state == RequestState::Open && count < request.rest().len());
        let Some(request) = request.filter(|_| self.options.answers == Answers::ByKey) else {
            return Disposition::Ignored;
        };
        let keys: Vec<u32> = request.rest()[..count].to_vec();
        request.heard += count;
        let node = request.node;
        self.ledger.unask(&keys);
        let disposition = self.settle(id, node, &keys, failed);
        // Other requests may have answered the rest of it between them.
        if !self.is_awaited(id) {
            let end = if self.is_hedge(id) { RequestEnd::Cancelled } else { RequestEnd::Overtaken };
            self.cancel(id, end);
        }
        disposition
    }

    /// Whether some key that the request owes is still waited for.
    pub(super) fn is_awaited(&self, request: RequestId) -> bool {
        self.requests[request.0 as usize].rest().iter().any(|key| self.ledger.is_waiting(*key))
    }

    /// Records that these keys of a request are answered, except those that it failed.
    fn settle(
        &mut self,
        request: RequestId,
        node: NodeId,
        keys: &[u32],
        failed: &[(u32, FailureClass)],
    ) -> Disposition {
        let is_hedge = self.is_hedge(request);
        let mut lost: BTreeMap<u32, FailureClass> = failed.iter().copied().collect();
        // A node can only fail keys that it was asked for.
        lost.retain(|key, _| keys.binary_search(key).is_ok());
        let mut late = Vec::new();
        let mut first = 0;
        for key in keys.iter().filter(|key| lost.is_empty() || !lost.contains_key(*key)) {
            if self.ledger.answer(*key) {
                first += 1;
            } else {
                late.push(*key);
            }
        }
        self.note_won(request, first);
        lost.into_iter().for_each(|(key, class)| self.fail_key(key, node, class, is_hedge));
        self.call_off(request);
        if late.is_empty() { Disposition::Accepted } else { Disposition::AcceptedInPart { late } }
    }
}
