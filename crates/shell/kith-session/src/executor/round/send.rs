//! Sends the requests of a fan-out.

use super::{Open, Round, calls::OutgoingRequest};
use kith_net::waited_for_turns;
use kith_routing::execution::{Cause, RequestId};
use kith_types::NodeId;
use kith_wire::v1;
use std::sync::Arc;
use tokio::sync::oneshot;

impl Round<'_> {
    pub(super) fn send(&mut self, request: RequestId, node: NodeId, keys: Arc<[u32]>, cause: Cause) {
        let fleet = &self.question.executor.fleet;
        let mut message = self.question.message(&keys, &self.points);
        if cause == Cause::Plan {
            let reservation = self.planned.reservations.get(request.0 as usize).copied().flatten();
            message.reservation = reservation.map(|id| v1::Reservation { id, ..Default::default() });
        }
        let (cancel, cancelled) = oneshot::channel();
        let (addr, group) = match self.question.topology.table.node_index(node) {
            Some(index) => {
                let entry = self.question.topology.table.node_at(index);
                (entry.address.clone(), entry.group.0)
            }
            None => (String::new(), 0),
        };
        let transport = Arc::clone(fleet.transport());
        let charge = fleet.with_load(|load, now| {
            let charge = load.on_send(self.planned.work, node, keys.len(), now);
            if let Cause::Hedge { .. } = cause {
                load.on_hedge(&charge);
            }
            charge
        });
        self.trace.sent(request, node, group, keys.len(), cause);
        let (sent, waited) = (fleet.now(), waited_for_turns());
        self.open.insert(request, Open { charge, keys, heard: 0, sent, waited, _cancel: cancel });
        let outgoing = OutgoingRequest { request, transport, addr, message, cancelled };
        match self.question.in_parts {
            true => self.calls.push(outgoing.in_parts()),
            false => self.calls.push(outgoing.whole()),
        }
    }
}
