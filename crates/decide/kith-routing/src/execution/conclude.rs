//! The end of an execution, once every key is accounted for.

use super::Execution;
use crate::execution::{Action, Disposition, MissingReason, Outcome, Retry, Verdict};
use crate::load::RequestEnd;

impl Execution {
    pub(super) fn conclude(&mut self) {
        let fatal = |(_, reason): &(u32, MissingReason)| matches!(reason, MissingReason::Failed(class) if class.retry() == Retry::FailQuery);
        let missing = self.requests.ledger.missing();
        let failed =
            !missing.is_empty() && (!self.requests.query.options.partial || missing.iter().any(fatal));
        let disposition = if failed {
            self.finish(Verdict::Failed, false)
        } else if 0 < self.requests.open {
            return;
        } else if missing.is_empty() {
            self.finish(Verdict::Complete, false)
        } else {
            self.finish(Verdict::Incomplete, false)
        };
        debug_assert_eq!(disposition, Disposition::Accepted);
    }

    pub(super) fn finish(&mut self, verdict: Verdict, stopped_early: bool) -> Disposition {
        for request in self.requests.open_ids().collect::<Vec<_>>() {
            self.requests.cancel(request, RequestEnd::Cancelled);
        }
        let missing = self.requests.missing_by_partition();
        let keys = self.requests.query.partitions.len() as u32;
        let missing_keys: u32 = missing.iter().map(|missing| missing.keys).sum();
        self.requests.actions.push(Action::Finish(Outcome {
            verdict,
            keys,
            answered: self.requests.ledger.answered(),
            missing,
            abandoned: keys - self.requests.ledger.answered() - missing_keys,
            requests: self.requests.list.len() as u32,
            retries: self.retries.count,
            hedges: self.requests.counts,
            stopped_early,
        }));
        self.finished = true;
        Disposition::Accepted
    }
}
