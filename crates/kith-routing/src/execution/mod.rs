//! The state machine of one fan-out: what to send, what to send again, when it is over.
//!
//! Sans I/O: the shell reports events and carries out actions; every plan of every
//! kind of query, in one process or many, and in the simulator, runs through here.
//! It holds the only retry decision in Kith ([`FailureClass`]). Every key is
//! answered exactly once or named as missing; the predecessor's retry lost all but
//! one key per node (Norbert, defect 1 in our reading).
//!
//! A key is asked of one node at a time. Requests have ids of their own, so that a
//! second request for a slow one's keys can be added beside it.

mod event;
mod failure;
mod outcome;
#[cfg(test)]
mod tests;

pub use event::{Action, Disposition, Event, RequestId};
pub use failure::FailureClass;
pub use outcome::{Missing, MissingReason, Outcome, Verdict};

use crate::{Candidates, FanOutPlan, NodeIndex};
use failure::Retry;
use kith_types::{Epoch, GroupId, NodeId, PartitionId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How an execution behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionOptions {
    /// When the answer is no longer of use.
    pub deadline: Option<Timestamp>,
    /// Whether an answer without some keys is of use.
    pub partial: bool,
    /// Whether [`Event::Satisfied`] ends it.
    pub stop_early: bool,
    /// How often a key is asked again, each time of a node not asked before. Two: one for
    /// the usual lost node, one more for the second of a pair that went together.
    pub retries_max: u32,
    /// Spreads retries over the groups; should differ between queries.
    pub seed: u64,
}

impl Default for ExecutionOptions {
    fn default() -> Self {
        Self { deadline: None, partial: false, stop_early: false, retries_max: 2, seed: 0 }
    }
}

/// One fan-out under way.
#[derive(Clone, Debug)]
pub struct Execution {
    partitions: Vec<PartitionId>,
    options: ExecutionOptions,
    /// Groups of the plan: retries stay inside them where they can.
    groups: Vec<GroupId>,
    requests: Vec<Request>,
    /// How many of them are open.
    open: usize,
    /// Keys without a request, and why, until the next call of `next`.
    homeless: Vec<(u32, MissingReason)>,
    missing: Vec<(u32, MissingReason)>,
    /// Nodes that failed a key. Only keys that failed are in here.
    tried: BTreeMap<u32, Vec<NodeId>>,
    actions: Vec<Action>,
    answered: u32,
    retries: u32,
    refresh_asked: Epoch,
    now: Timestamp,
    finished: bool,
}

#[derive(Clone, Debug)]
struct Request {
    node: NodeId,
    keys: Arc<[u32]>,
    /// Neither answered, failed nor cancelled.
    open: bool,
    /// Its node seems to be down.
    doubted: bool,
}

impl Execution {
    /// Begins a fan-out. `partitions` are those of the query's keys, in their order, as
    /// they were given to the policy. Keys that the plan leaves out are missing from the start.
    ///
    /// # Panics
    /// If the plan names a key that does not exist, or one twice.
    pub fn new(
        plan: &FanOutPlan,
        partitions: &[PartitionId],
        options: ExecutionOptions,
        now: Timestamp,
    ) -> Self {
        let mut planned = vec![false; partitions.len()];
        let mut execution = Self {
            partitions: partitions.to_vec(),
            options,
            groups: plan.groups.clone(),
            requests: Vec::with_capacity(plan.assignments.len()),
            open: 0,
            homeless: Vec::new(),
            missing: Vec::new(),
            tried: BTreeMap::new(),
            actions: Vec::with_capacity(plan.assignments.len()),
            answered: 0,
            retries: 0,
            refresh_asked: Epoch(0),
            now,
            finished: false,
        };
        for assignment in &plan.assignments {
            for key in &assignment.keys {
                assert!(!std::mem::replace(&mut planned[*key as usize], true), "key {key} is planned twice");
            }
            execution.send(assignment.node, assignment.keys.as_slice().into());
        }
        let left_out = planned.iter().enumerate().filter(|(_, planned)| !**planned);
        execution.homeless = left_out.map(|(key, _)| (key as u32, MissingReason::NoReplica)).collect();
        execution
    }

    /// Takes in an event. Follow it with [`Execution::next`].
    pub fn on(&mut self, event: Event, now: Timestamp) -> Disposition {
        if self.finished {
            return Disposition::Ignored;
        }
        self.now = self.now.max(now);
        match event {
            Event::Reply { request } => self.reply(request, &[]),
            Event::ReplyInPart { request, failed } => self.reply(request, &failed),
            Event::Failed { request, class } => self.fail(request, class),
            Event::NodeDown { node } => self.doubt(node),
            Event::Deadline => self.expire(),
            Event::Satisfied if self.options.stop_early => self.finish(Verdict::Complete, true),
            Event::Satisfied => Disposition::Ignored,
            Event::Cancelled => self.finish(Verdict::Cancelled, false),
        }
    }

    /// What to do now: keys that failed are sent to another replica that `view` says may
    /// serve. Call it once at the start and after each event.
    pub fn next(&mut self, view: &Candidates<'_>) -> Vec<Action> {
        if !self.finished {
            self.move_doubted(view);
            self.resend(view);
            self.conclude();
        }
        std::mem::take(&mut self.actions)
    }

    /// Whether [`Action::Finish`] has been decided.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Requests sent and neither answered, failed nor cancelled.
    pub fn outstanding(&self) -> usize {
        self.open
    }

    fn send(&mut self, node: NodeId, keys: Arc<[u32]>) {
        let request = RequestId(self.requests.len() as u32);
        self.open += 1;
        self.requests.push(Request { node, keys: keys.clone(), open: true, doubted: false });
        self.actions.push(Action::Send { request, node, keys });
    }

    /// Closes a request if it is open, and gives its node and keys.
    fn close(&mut self, request: RequestId) -> Option<(NodeId, Arc<[u32]>)> {
        let request = self.requests.get_mut(request.0 as usize).filter(|request| request.open)?;
        request.open = false;
        self.open -= 1;
        Some((request.node, request.keys.clone()))
    }

    fn cancel(&mut self, request: RequestId) -> Option<(NodeId, Arc<[u32]>)> {
        let closed = self.close(request)?;
        self.actions.push(Action::Cancel { request });
        Some(closed)
    }

    fn reply(&mut self, request: RequestId, failed: &[(u32, FailureClass)]) -> Disposition {
        let Some((node, keys)) = self.close(request) else { return Disposition::Ignored };
        let mut lost: BTreeMap<u32, FailureClass> = failed.iter().copied().collect();
        // A node can only speak of keys it was asked for.
        lost.retain(|key, _| keys.binary_search(key).is_ok());
        self.answered += (keys.len() - lost.len()) as u32;
        lost.into_iter().for_each(|(key, class)| self.fail_key(key, node, class));
        Disposition::Accepted
    }

    fn fail(&mut self, request: RequestId, class: FailureClass) -> Disposition {
        let Some((node, keys)) = self.close(request) else { return Disposition::Ignored };
        keys.iter().for_each(|key| self.fail_key(*key, node, class));
        Disposition::Accepted
    }

    fn doubt(&mut self, node: NodeId) -> Disposition {
        let mut owing = self.requests.iter_mut().filter(|request| request.open && request.node == node);
        let mut disposition = Disposition::Ignored;
        for request in &mut owing {
            request.doubted = true;
            disposition = Disposition::Accepted;
        }
        disposition
    }

    /// Asks elsewhere what doubted nodes owe, where another replica of all of it is up. Where none is, waiting
    /// is better than failing: a node that only seems down, as when this machine is busy, still answers.
    fn move_doubted(&mut self, view: &Candidates<'_>) {
        let doubted: Vec<RequestId> =
            self.open_requests().filter(|id| self.requests[id.0 as usize].doubted).collect();
        for request in doubted {
            let keys = Arc::clone(&self.requests[request.0 as usize].keys);
            if keys.iter().all(|key| self.is_movable(view, *key))
                && let Some((node, keys)) = self.cancel(request)
            {
                keys.iter().for_each(|key| self.fail_key(*key, node, FailureClass::NodeDown));
            }
        }
    }

    fn is_movable(&self, view: &Candidates<'_>, key: u32) -> bool {
        let tried = self.tried.get(&key).map_or(0, Vec::len) as u32;
        tried < self.options.retries_max
            && self.another_replica(view, key).is_some_and(|replica| view.is_up(replica))
    }

    fn fail_key(&mut self, key: u32, node: NodeId, class: FailureClass) {
        if let FailureClass::NotOwner { epoch } = class
            && self.refresh_asked < epoch
        {
            self.refresh_asked = epoch;
            self.actions.push(Action::Refresh { epoch });
        }
        let tried = self.tried.entry(key).or_default();
        tried.push(node);
        let may_retry = tried.len() as u32 <= self.options.retries_max;
        let reason = MissingReason::Failed(class);
        match class.retry() {
            Retry::OtherReplica if may_retry => self.homeless.push((key, reason)),
            Retry::OtherReplica | Retry::Never | Retry::FailQuery => self.missing.push((key, reason)),
        }
    }

    fn expire(&mut self) -> Disposition {
        if !self.is_late() {
            return Disposition::Ignored;
        }
        for request in self.open_requests().collect::<Vec<_>>() {
            if let Some((_, keys)) = self.cancel(request) {
                self.missing.extend(keys.iter().map(|key| (*key, MissingReason::Deadline)));
            }
        }
        Disposition::Accepted
    }

    fn resend(&mut self, view: &Candidates<'_>) {
        let late = self.is_late();
        let mut keys_by_node: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
        for (key, reason) in std::mem::take(&mut self.homeless) {
            match self.another_replica(view, key) {
                Some(_) if late => self.missing.push((key, MissingReason::Deadline)),
                Some(node) => keys_by_node.entry(view.node(node).id).or_default().push(key),
                None => self.missing.push((key, reason)),
            }
        }
        if !self.missing.is_empty() && !self.options.partial {
            return;
        }
        for (node, mut keys) in keys_by_node {
            keys.sort_unstable();
            self.retries += 1;
            self.send(node, keys.into());
        }
    }

    /// A replica that may serve and has not failed this key: in a group of the plan
    /// rather than outside it, and for all keys of a query in the same order of groups,
    /// so that a lost node's keys stay together.
    fn another_replica(&self, view: &Candidates<'_>, key: u32) -> Option<NodeIndex> {
        let tried = self.tried.get(&key).map_or(&[][..], Vec::as_slice);
        let groups = view.group_count() as u64;
        let rank = |node: &NodeIndex| {
            let group = view.group_of(*node);
            let inside = self.groups.contains(&view.group(group).id);
            (!inside, (u64::from(group.0) + self.options.seed % groups) % groups)
        };
        let fresh = |node: &NodeIndex| !tried.contains(&view.node(*node).id);
        view.replicas(self.partitions[key as usize]).filter(fresh).min_by_key(rank)
    }

    fn conclude(&mut self) {
        let fatal = |(_, reason): &(u32, MissingReason)| matches!(reason, MissingReason::Failed(class) if class.retry() == Retry::FailQuery);
        let failed = !self.missing.is_empty() && (!self.options.partial || self.missing.iter().any(fatal));
        let disposition = if failed {
            self.finish(Verdict::Failed, false)
        } else if 0 < self.open {
            return;
        } else if self.missing.is_empty() {
            self.finish(Verdict::Complete, false)
        } else {
            self.finish(Verdict::Incomplete, false)
        };
        debug_assert_eq!(disposition, Disposition::Accepted);
    }

    fn finish(&mut self, verdict: Verdict, stopped_early: bool) -> Disposition {
        for request in self.open_requests().collect::<Vec<_>>() {
            self.cancel(request);
        }
        let missing = self.missing_by_partition();
        let keys = self.partitions.len() as u32;
        let missing_keys: u32 = missing.iter().map(|missing| missing.keys).sum();
        self.actions.push(Action::Finish(Outcome {
            verdict,
            keys,
            answered: self.answered,
            missing,
            abandoned: keys - self.answered - missing_keys,
            requests: self.requests.len() as u32,
            retries: self.retries,
            stopped_early,
        }));
        self.finished = true;
        Disposition::Accepted
    }

    fn missing_by_partition(&self) -> Vec<Missing> {
        let mut by_partition: BTreeMap<PartitionId, Missing> = BTreeMap::new();
        for (key, reason) in &self.missing {
            let partition = self.partitions[*key as usize];
            let tried = || self.tried.get(key).cloned().unwrap_or_default();
            let missing = by_partition.entry(partition);
            missing
                .or_insert_with(|| Missing { partition, keys: 0, reason: *reason, tried: tried() })
                .keys += 1;
        }
        by_partition.into_values().collect()
    }

    fn open_requests(&self) -> impl Iterator<Item = RequestId> {
        let open = self.requests.iter().enumerate().filter(|(_, request)| request.open);
        open.map(|(index, _)| RequestId(index as u32))
    }

    fn is_late(&self) -> bool {
        self.options.deadline.is_some_and(|deadline| deadline <= self.now)
    }
}
