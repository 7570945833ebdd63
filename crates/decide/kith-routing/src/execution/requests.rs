//! The requests of one query: what was sent to which node, and what is still owed.

use super::ledger::Ledger;
use super::rule::HedgePlan;
use super::{
    Action, Cause, Disposition, ExecutionOptions, FailureClass, HedgeCounts, MissingPart, MissingReason,
    RequestId,
};
use crate::load::{KeyClass, RequestEnd};
use crate::{Candidates, NodeIndex};
use kith_types::{GroupId, NodeId, PartitionId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The query that a fan-out answers.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// The partitions of its keys, in the order of the keys.
    pub partitions: Vec<PartitionId>,
    pub options: ExecutionOptions,
    /// The groups of the plan. Retries stay inside them where possible.
    pub groups: Vec<GroupId>,
}

impl Query {
    /// The order in which replicas are tried: those in groups of the plan come first. All keys of a query use the same order
    /// of groups, so that the keys of a lost node stay together.
    pub fn rank(&self, view: &Candidates<'_>, node: NodeIndex) -> (bool, u64) {
        let groups = view.group_count() as u64;
        let group = view.group_of(node);
        let inside = self.groups.contains(&view.group(group).id);
        (!inside, (u64::from(group.0) + self.options.seed % groups) % groups)
    }
}

/// One request to a node.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub node: NodeId,
    pub keys: Arc<[u32]>,
    /// The number of the keys that have been answered. The request owes the others.
    pub heard: usize,
    pub cause: Cause,
    pub state: RequestState,
    /// Whether its answer counted for some key.
    pub won: bool,
    /// Whether its node seems to be down.
    pub doubted: bool,
    pub sent: Timestamp,
    /// The time at which to hedge it; `None` once this has been decided.
    pub hedge: Option<HedgePlan>,
}

impl Request {
    /// The keys that the request owes.
    pub fn rest(&self) -> &[u32] {
        &self.keys[self.heard..]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestState {
    Open,
    /// It was answered, and the answer is held.
    Held,
    Over,
}

/// The requests of one query, and the state of its keys.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    pub query: Query,
    /// The requests, by [`RequestId`].
    pub list: Vec<Request>,
    /// The number of open requests.
    pub open: usize,
    pub ledger: Ledger,
    /// The counts of hedges.
    pub counts: HedgeCounts,
    /// The actions that the shell has not been given yet.
    pub actions: Vec<Action>,
    /// The time of the latest event.
    pub now: Timestamp,
}

impl Requests {
    pub fn new(query: Query, planned: usize, now: Timestamp) -> Self {
        Self {
            list: Vec::with_capacity(planned),
            open: 0,
            ledger: Ledger::new(query.partitions.len()),
            counts: HedgeCounts::default(),
            actions: Vec::with_capacity(planned),
            now,
            query,
        }
    }

    pub fn send(&mut self, node: NodeId, keys: Arc<[u32]>, cause: Cause) {
        let request = RequestId(self.list.len() as u32);
        let time = self.query.options.hedging.and_then(|rule| rule.times[KeyClass::of(keys.len()).index()]);
        let may_be_hedged = cause == Cause::Plan;
        let hedge = time.filter(|_| may_be_hedged).map(|time| HedgePlan::new(self.now, time));
        self.open += 1;
        self.ledger.ask(&keys);
        self.list.push(Request {
            node,
            keys: keys.clone(),
            heard: 0,
            cause,
            state: RequestState::Open,
            won: false,
            doubted: false,
            sent: self.now,
            hedge,
        });
        self.actions.push(Action::Send { request, node, keys, cause });
    }

    /// Closes a request if it is open. Returns its node and the keys that it owed.
    pub fn close(&mut self, request: RequestId) -> Option<(NodeId, Arc<[u32]>)> {
        let request = self.list.get_mut(request.0 as usize);
        let request = request.filter(|request| request.state == RequestState::Open)?;
        request.state = RequestState::Over;
        self.open -= 1;
        self.ledger.unask(request.rest());
        let rest = if request.heard == 0 { Arc::clone(&request.keys) } else { request.rest().into() };
        Some((request.node, rest))
    }

    /// Closes a request if it is open, and tells its node that the answer is not needed.
    pub fn cancel(&mut self, request: RequestId, end: RequestEnd) -> Option<(NodeId, Arc<[u32]>)> {
        let closed = self.close(request)?;
        self.actions.push(Action::Cancel { request, end });
        Some(closed)
    }

    pub fn open_ids(&self) -> impl Iterator<Item = RequestId> {
        let is_open = |(_, request): &(usize, &Request)| request.state == RequestState::Open;
        let open = self.list.iter().enumerate().filter(is_open);
        open.map(|(index, _)| RequestId(index as u32))
    }

    pub fn is_hedge(&self, request: RequestId) -> bool {
        self.list.get(request.0 as usize).is_some_and(|request| request.cause.is_hedge())
    }

    pub fn hedges_of(&self, of: RequestId) -> Vec<RequestId> {
        if self.counts.sent == 0 {
            return Vec::new();
        }
        let is_hedge = |(_, request): &(usize, &Request)| request.cause == Cause::Hedge { of };
        let hedges = self.list.iter().enumerate().filter(is_hedge);
        hedges.map(|(index, _)| RequestId(index as u32)).collect()
    }

    /// Whether some key that the request owes is still waited for.
    pub fn is_awaited(&self, request: RequestId) -> bool {
        self.list[request.0 as usize].rest().iter().any(|key| self.ledger.is_waiting(*key))
    }

    /// Marks the open requests of a node that seems to be down.
    pub fn doubt(&mut self, node: NodeId) -> Disposition {
        let is_owing = |request: &&mut Request| request.state == RequestState::Open && request.node == node;
        let mut disposition = Disposition::Ignored;
        for request in self.list.iter_mut().filter(is_owing) {
            request.doubted = true;
            disposition = Disposition::Accepted;
        }
        disposition
    }

    /// Whether the deadline of the query is over.
    pub fn is_late(&self) -> bool {
        self.query.options.deadline.is_some_and(|deadline| deadline <= self.now)
    }

    /// Ends all open requests at the deadline of the query.
    pub fn expire(&mut self) -> Disposition {
        if !self.is_late() {
            return Disposition::Ignored;
        }
        for request in self.open_ids().collect::<Vec<_>>() {
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

    pub fn missing_by_partition(&self) -> Vec<MissingPart> {
        let mut by_partition: BTreeMap<PartitionId, MissingPart> = BTreeMap::new();
        for (key, reason) in self.ledger.missing() {
            let partition = self.query.partitions[*key as usize];
            let tried = || self.ledger.tried(*key).to_vec();
            let missing = by_partition.entry(partition);
            missing
                .or_insert_with(|| MissingPart { partition, keys: 0, reason: *reason, tried: tried() })
                .keys += 1;
        }
        by_partition.into_values().collect()
    }

    /// Returns the best replica that may serve and has not failed this key, according to [`Query::rank`].
    pub fn another_replica(&self, view: &Candidates<'_>, key: u32) -> Option<NodeIndex> {
        self.untried_replicas(view, key).min_by_key(|node| self.query.rank(view, *node))
    }

    pub fn untried_replicas(&self, view: &Candidates<'_>, key: u32) -> impl Iterator<Item = NodeIndex> {
        let tried = self.ledger.tried(key);
        view.replicas(self.query.partitions[key as usize])
            .filter(|node| !tried.contains(&view.node(*node).id))
    }

    /// Whether another node than `from` can be asked for a key, or is being asked already. That `from` itself is up again
    /// does not count, because nobody would be asked for its keys if it were given up.
    pub fn is_movable(&self, view: &Candidates<'_>, key: u32, from: NodeId) -> bool {
        if !self.ledger.is_waiting(key) || self.ledger.is_asked_twice(key) {
            return true;
        }
        let is_other = |replica: &NodeIndex| view.node(*replica).id != from;
        let mut others = self.untried_replicas(view, key).filter(is_other);
        (self.ledger.tried(key).len() as u32) < self.query.options.retries_max
            && others.any(|replica| view.is_up(replica))
    }
}
