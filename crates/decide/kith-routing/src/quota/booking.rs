//! A read from several nodes whose keys are reserved at all of them before any is read.
//!
//! The reservation is made first at one node and, once that node has granted it, at the others at once. Of reads that need
//! the same nodes, only those that the first node has room for get further. So they do not take quota from each other that
//! none of them can use. If a node refuses, another replica is asked.

use super::RESERVATION_LIFE;
use crate::{Assignment, Candidates, FanOutPlan, NodeIndex};
use kith_types::{NodeId, PartitionId};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The time that a node may take to answer. After that, the keys are read from it anyway. It is half of
/// [`RESERVATION_LIFE`], so that the first node's reservation still exists when the others have answered. On busy
/// machines, answers take longer than round trips: with 100 ms, reads that gave up waiting took quota from each other
/// that none could use, and clients got a third of the quota.
pub const RESERVATION_TIMEOUT: Duration = Duration::from_millis(RESERVATION_LIFE.as_millis() as u64 / 2);

/// One read that is being reserved. It does no I/O: the shell sends the requests that [`Booking::next`] returns, and reports
/// each reply.
#[derive(Clone, Debug)]
pub struct Booking {
    policy: &'static str,
    spilled_keys: u32,
    partitions: Vec<PartitionId>,
    parts: Vec<Part>,
    /// Spreads refused keys over the groups.
    seed: u64,
    /// The time after which each node that refused will have room.
    refusals: BTreeMap<NodeId, Duration>,
}

#[derive(Clone, Debug)]
struct Part {
    node: NodeId,
    keys: Vec<u32>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Planned,
    Asked,
    /// The part can be read, with a reservation that the node may hold, or without one.
    Settled {
        held: bool,
    },
    Refused,
    /// Its keys have moved to other parts.
    Moved,
}

/// A reservation to request or to give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationRequest {
    /// Identifies the part within the booking.
    pub part: u32,
    /// The node to ask.
    pub node: NodeId,
    /// The number of keys.
    pub keys: u64,
}

/// The reply of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationReply {
    /// The keys are reserved.
    Held,
    /// The keys are not reserved but may be read, because nodes bound their reservations.
    Unheld,
    /// The node did not answer in time or could not be reached, so it is unknown whether the keys are reserved. They are
    /// treated as reserved, and read or given back: a reservation that is never used blocks quota for its whole life. If the
    /// node is away, the read handles that.
    Unknown,
    /// There is no room for the keys for this long.
    Refused(Duration),
}

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum BookingStep {
    /// Send all of these requests, and report every reply.
    Ask(Vec<ReservationRequest>),
    /// Read with this plan. For each assignment, the part whose keys are reserved, if any.
    Read(FanOutPlan, Vec<Option<u32>>),
    /// The read is refused, because a node refuses keys and no other replica has room. Give these reservations back.
    Refused {
        /// The node whose refusal counts. For each refused key the replica that has room soonest is found; among these, this
        /// is the last to have room.
        by: NodeId,
        /// The reservations that other nodes granted.
        give_back: Vec<ReservationRequest>,
    },
}

impl Booking {
    /// Begins a booking for a planned read. `partitions` are those of its keys; `seed` should differ between reads.
    pub fn new(plan: &FanOutPlan, partitions: &[PartitionId], seed: u64) -> Self {
        let part = |assignment: &Assignment| Part {
            node: assignment.node,
            keys: assignment.keys.clone(),
            state: State::Planned,
        };
        Self {
            policy: plan.policy,
            spilled_keys: plan.spilled_keys,
            partitions: partitions.to_vec(),
            parts: plan.assignments.iter().map(part).collect(),
            seed: seed % 64,
            refusals: BTreeMap::new(),
        }
    }

    /// Takes in the reply of a node for a part.
    pub fn on(&mut self, part: u32, reply: ReservationReply) {
        let Some(part) = self.parts.get_mut(part as usize).filter(|part| part.state == State::Asked) else {
            return;
        };
        part.state = match reply {
            ReservationReply::Held | ReservationReply::Unknown => State::Settled { held: true },
            ReservationReply::Unheld => State::Settled { held: false },
            ReservationReply::Refused(retry_after) => {
                self.refusals.insert(part.node, retry_after);
                State::Refused
            }
        };
    }

    /// Returns what to do once every request has been answered.
    pub fn next(&mut self, view: &Candidates<'_>) -> BookingStep {
        if let Err(by) = self.move_refused(view) {
            return BookingStep::Refused { by, give_back: self.held() };
        }
        let is_planned = |part: &Part| part.state == State::Planned;
        let is_first = !self.parts.iter().any(|part| matches!(part.state, State::Settled { .. }));
        let first = self.parts.iter().filter(|part| is_planned(part)).map(|part| part.node).min();
        let mut asks = Vec::new();
        for (number, part) in self.parts.iter_mut().enumerate() {
            if is_planned(part) && (!is_first || Some(part.node) == first) {
                part.state = State::Asked;
                asks.push(ReservationRequest {
                    part: number as u32,
                    node: part.node,
                    keys: part.keys.len() as u64,
                });
            }
        }
        if asks.is_empty() { self.read(view) } else { BookingStep::Ask(asks) }
    }

    /// Moves the keys of refused parts to nodes that have not refused.
    fn move_refused(&mut self, view: &Candidates<'_>) -> Result<(), NodeId> {
        let mut moved: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
        let is_refused = self.parts.iter().any(|part| part.state == State::Refused);
        if !is_refused {
            return Ok(());
        }
        // If the first node refuses, the others are not asked in vain: the whole read goes elsewhere.
        let is_first = !self.parts.iter().any(|part| matches!(part.state, State::Settled { .. }));
        let moves = |part: &Part| part.state == State::Refused || (is_first && part.state == State::Planned);
        let rank = self.ranks(view);
        for part in self.parts.iter().filter(|part| moves(part)) {
            for &key in &part.keys {
                let others = view.replicas(self.partitions[key as usize]);
                let others = others.filter(|node| !self.refusals.contains_key(&view.node(*node).id));
                match others.min_by_key(|node| rank(*node)) {
                    Some(node) => moved.entry(view.node(node).id).or_default().push(key),
                    None => return Err(self.last_to_have_room(view).unwrap_or(part.node)),
                }
            }
        }
        drop(rank);
        let refused = self.parts.iter_mut().filter(|part| moves(part));
        refused.for_each(|part| part.state = State::Moved);
        for (node, mut keys) in moved {
            keys.sort_unstable();
            self.parts.push(Part { node, keys, state: State::Planned });
        }
        Ok(())
    }

    /// Returns the order in which other replicas are tried for refused keys. Groups in which no node has refused come first.
    /// The order of groups is the same for all keys, so that they stay in one group if it has them.
    fn ranks(&self, view: &Candidates<'_>) -> impl Fn(NodeIndex) -> (bool, u64) + use<'_> {
        let groups = view.group_count().max(1) as u64;
        let refusing = self.refusals.keys().filter_map(|node| view.node_index(*node));
        let refusing: BTreeSet<u32> = refusing.map(|node| view.group_of(node).0).collect();
        let group_of: Vec<u32> =
            (0..view.node_count() as u32).map(|node| view.group_of(NodeIndex(node)).0).collect();
        move |node| {
            let group = group_of[node.index()];
            (refusing.contains(&group), (u64::from(group) + self.seed) % groups)
        }
    }

    /// For each partition that no replica has room for, finds the replica that has room soonest. Returns the last of these.
    fn last_to_have_room(&self, view: &Candidates<'_>) -> Option<NodeId> {
        let refused = self.parts.iter().filter(|part| part.state == State::Refused);
        let partitions: BTreeSet<PartitionId> =
            refused.flat_map(|part| &part.keys).map(|key| self.partitions[*key as usize]).collect();
        let soonest = partitions.iter().filter_map(|partition| {
            let replicas: Vec<NodeId> = view.replicas(*partition).map(|node| view.node(node).id).collect();
            let waits: Option<Vec<(Duration, NodeId)>> =
                replicas.iter().map(|node| Some((*self.refusals.get(node)?, *node))).collect();
            waits?.into_iter().min()
        });
        soonest.max().map(|(_, node)| node)
    }

    fn held(&self) -> Vec<ReservationRequest> {
        let held = self.parts.iter().enumerate();
        let held = held.filter(|(_, part)| part.state == State::Settled { held: true });
        held.map(|(number, part)| ReservationRequest {
            part: number as u32,
            node: part.node,
            keys: part.keys.len() as u64,
        })
        .collect()
    }

    fn read(&self, view: &Candidates<'_>) -> BookingStep {
        let (mut assignments, mut held, mut groups) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (number, part) in self.parts.iter().enumerate() {
            let State::Settled { held: is_held } = part.state else { continue };
            assignments.push(Assignment { node: part.node, keys: part.keys.clone() });
            held.push(is_held.then_some(number as u32));
            if let Some(index) = view.node_index(part.node) {
                groups.insert(view.group(view.group_of(index)).id);
            }
        }
        let groups = groups.into_iter().collect();
        let plan = FanOutPlan { policy: self.policy, groups, assignments, spilled_keys: self.spilled_keys };
        BookingStep::Read(plan, held)
    }
}
