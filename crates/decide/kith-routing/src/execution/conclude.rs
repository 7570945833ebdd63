//! The end of an execution: at its deadline, or once every key is accounted for.

use super::Execution;
use crate::execution::{Action, Disposition, FailureClass, Missing, MissingReason, Outcome, Retry, Verdict};
use crate::load::RequestEnd;
use kith_types::PartitionId;
use std::collections::BTreeMap;

impl Execution {
    pub(super) fn expire(&mut self) -> Disposition {
        if !self.is_late() {
            return Disposition::Ignored;
        }
        for request in self.open_requests().collect::<Vec<_>>() {
            let is_hedge = self.is_hedge(request);
            let end = if is_hedge { RequestEnd::Cancelled } else { RequestEnd::TimedOut };
            if let Some((node, keys)) = self.cancel(request, end) {
                self.release_hedges(request);
                for &key in keys.iter().filter(|key| self.ledger.is_waiting(**key)).collect::<Vec<_>>() {
                    // A node that has not answered by now has failed the key.
                    self.ledger.fail(key, node, FailureClass::DeadlineExceeded, is_hedge);
                    if !self.ledger.is_asked(key) {
                        self.ledger.miss(key, MissingReason::Deadline);
                    }
                }
            }
        }
        Disposition::Accepted
    }

    pub(super) fn is_late(&self) -> bool {
        self.options.deadline.is_some_and(|deadline| deadline <= self.now)
    }

    pub(super) fn conclude(&mut self) {
        let fatal = |(_, reason): &(u32, MissingReason)| matches!(reason, MissingReason::Failed(class) if class.retry() == Retry::FailQuery);
        let missing = self.ledger.missing();
        let failed = !missing.is_empty() && (!self.options.partial || missing.iter().any(fatal));
        let disposition = if failed {
            self.finish(Verdict::Failed, false)
        } else if 0 < self.open {
            return;
        } else if missing.is_empty() {
            self.finish(Verdict::Complete, false)
        } else {
            self.finish(Verdict::Incomplete, false)
        };
        debug_assert_eq!(disposition, Disposition::Accepted);
    }

    pub(super) fn finish(&mut self, verdict: Verdict, stopped_early: bool) -> Disposition {
        for request in self.open_requests().collect::<Vec<_>>() {
            self.cancel(request, RequestEnd::Cancelled);
        }
        let missing = self.missing_by_partition();
        let keys = self.partitions.len() as u32;
        let missing_keys: u32 = missing.iter().map(|missing| missing.keys).sum();
        self.actions.push(Action::Finish(Outcome {
            verdict,
            keys,
            answered: self.ledger.answered(),
            missing,
            abandoned: keys - self.ledger.answered() - missing_keys,
            requests: self.requests.len() as u32,
            retries: self.retries,
            hedges: self.hedges,
            stopped_early,
        }));
        self.finished = true;
        Disposition::Accepted
    }

    fn missing_by_partition(&self) -> Vec<Missing> {
        let mut by_partition: BTreeMap<PartitionId, Missing> = BTreeMap::new();
        for (key, reason) in self.ledger.missing() {
            let partition = self.partitions[*key as usize];
            let tried = || self.ledger.tried(*key).to_vec();
            let missing = by_partition.entry(partition);
            missing
                .or_insert_with(|| Missing { partition, keys: 0, reason: *reason, tried: tried() })
                .keys += 1;
        }
        by_partition.into_values().collect()
    }
}
