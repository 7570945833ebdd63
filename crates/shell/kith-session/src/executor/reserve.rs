//! Reservations of a store's read quota (0012). If a read asks several nodes that have little of the quota left, it
//! reserves its keys at all of them first, so that a refused read is charged nowhere. This carries out what
//! `kith_routing::Booking` decides.

use super::{Executor, FanOutCall, PlannedFanOut};
use futures::future::join_all;
use kith_query::QueryError;
use kith_routing::{Booking, BookingStep, RESERVATION_TIMEOUT, ReservationReply, ReservationRequest};
use kith_topology::Topology;
use kith_types::{ErrorCode, NodeId};
use kith_wire::v1;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tonic::Status;

const RESERVE: v1::ReservationStep = v1::ReservationStep::Reserve;
const GIVE_BACK: v1::ReservationStep = v1::ReservationStep::GiveBack;

/// A reservation under way.
struct Reserving<'a> {
    topology: &'a Topology,
    store: &'a str,
    deadline: Instant,
    /// The first of the ids of its requests.
    id: u64,
}

impl Executor {
    /// Reserves the keys of a read at its nodes, if that is necessary, and replaces the plan with one of the nodes that
    /// granted them.
    ///
    /// # Errors
    /// The refusals of the nodes.
    pub(super) async fn reserve(
        &self,
        asking: &FanOutCall<'_>,
        planned: &mut PlannedFanOut,
    ) -> Result<(), QueryError> {
        if !self.has_quota(asking, planned) {
            return Ok(());
        }
        let &FanOutCall { topology, pinned, deadline, .. } = asking;
        let store = pinned.name.as_str();
        let nodes = planned.plan.assignments.iter().map(|assignment| assignment.node);
        let Some((seed, id)) = self.with_routing(|state| {
            let is_due = state.quotas.reserves(store, nodes);
            is_due.then(|| (rand::RngExt::random(&mut state.rng), rand::RngExt::random(&mut state.rng)))
        }) else {
            return Ok(());
        };
        let mut booking = Booking::new(&planned.plan, &planned.partitions, seed);
        let reserving = Reserving { topology, store, deadline, id };
        let mut refusals: BTreeMap<NodeId, Status> = BTreeMap::new();
        loop {
            let availability = self.fleet.availability_within(&topology.table, &pinned.reach);
            let step = booking.next(&topology.table.view(&availability));
            match step {
                BookingStep::Ask(asks) => {
                    let asked = asks.iter().map(|ask| self.say(&reserving, *ask, RESERVE));
                    for (ask, reply) in asks.iter().zip(join_all(asked).await) {
                        booking.on(ask.part, self.reply_of(store, ask.node, reply, &mut refusals));
                    }
                }
                BookingStep::Read(plan, held) => {
                    planned.plan = plan;
                    let id_of = |part: u32| reserving.id_of(part);
                    planned.reservations = held.into_iter().map(|part| part.map(id_of)).collect();
                    return Ok(());
                }
                BookingStep::Refused { by, give_back } => {
                    // The caller may retry at once, so the granted reservations are given back first.
                    join_all(give_back.into_iter().map(|ask| self.say(&reserving, ask, GIVE_BACK))).await;
                    let unexplained =
                        || QueryError::Internal { detail: format!("{by} refused without a reason") };
                    return Err(refusals.get(&by).map_or_else(unexplained, QueryError::from_status));
                }
            }
        }
    }

    /// Whether a read is charged to a quota that is divided among several nodes.
    fn has_quota(&self, asking: &FanOutCall<'_>, planned: &PlannedFanOut) -> bool {
        let &FanOutCall { topology, pinned, fan_out, options, .. } = asking;
        // A router has already charged the quota; a partial read uses whatever nodes grant; a single node grants or refuses
        // all of it.
        if self.admits || options.partial || planned.plan.requests() < 2 || !fan_out.plan.reads_values() {
            return false;
        }
        topology.stores.get(&pinned.name).is_some_and(|store| !store.read_quota.is_none())
    }

    /// Notes how much of a quota a node says is left.
    pub(super) fn note_quota(&self, store: &str, node: NodeId, left: v1::QuotaLeft) {
        let is_tight = match left {
            v1::QuotaLeft::QuotaUnknown => return,
            v1::QuotaLeft::QuotaTight => true,
            v1::QuotaLeft::QuotaCalm => false,
        };
        self.with_routing(|state| state.quotas.note(store, node, is_tight));
    }

    /// Sends one step of the reservation; `None` if the node does not answer in time.
    async fn say(
        &self,
        reserving: &Reserving<'_>,
        ask: ReservationRequest,
        step: v1::ReservationStep,
    ) -> Option<Result<v1::EvaluateReply, Status>> {
        let table = &reserving.topology.table;
        let addr = &table.node_at(table.node_index(ask.node)?).address;
        let timeout = RESERVATION_TIMEOUT.min(reserving.deadline.saturating_duration_since(Instant::now()));
        let header = v1::RequestHeader {
            epoch: table.epoch().0,
            deadline_us: u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX).max(1),
            client: self.fleet.client(),
            ..Default::default()
        };
        let (id, keys) = (reserving.id_of(ask.part), ask.keys);
        let request = v1::EvaluateRequest {
            header: Some(header),
            name: reserving.store.to_owned(),
            reservation: Some(v1::Reservation { id, step: step.into(), keys }),
            ..Default::default()
        };
        tokio::time::timeout(timeout, self.fleet.transport().evaluate(addr, request)).await.ok()
    }

    fn reply_of(
        &self,
        store: &str,
        node: NodeId,
        reply: Option<Result<v1::EvaluateReply, Status>>,
        refusals: &mut BTreeMap<NodeId, Status>,
    ) -> ReservationReply {
        match reply {
            Some(Ok(reply)) => {
                self.note_quota(store, node, reply.quota_left());
                let value = reply.value.and_then(|value| value.value);
                match value == Some(v1::value::Value::Exists(true)) {
                    true => ReservationReply::Held,
                    false => ReservationReply::Unheld,
                }
            }
            Some(Err(status)) => {
                let detail = kith_wire::detail_of(&status);
                if kith_wire::code_of(&status) != ErrorCode::QuotaExceeded {
                    return ReservationReply::Unknown;
                }
                self.note_quota(store, node, v1::QuotaLeft::QuotaTight);
                refusals.insert(node, status);
                ReservationReply::Refused(Duration::from_millis(detail.retry_after_ms))
            }
            None => ReservationReply::Unknown,
        }
    }
}

impl Reserving<'_> {
    fn id_of(&self, part: u32) -> u64 {
        self.id.wrapping_add(part.into())
    }
}
