//! Builds and sends the requests of a fan-out.

use super::{Open, Round, calls::Outgoing};
use kith_live::Ticket;
use kith_query::{Scope, convert::workflow_to_wire};
use kith_routing::execution::{Cause, RequestId};
use kith_topology::Pin;
use kith_types::NodeId;
use kith_wire::{body::encode_keys, v1};
use std::{sync::Arc, time::Instant};
use tokio::sync::oneshot;

impl Round<'_> {
    pub(super) fn send(&mut self, request: RequestId, node: NodeId, keys: Arc<[u32]>, cause: Cause) {
        let fleet = &self.executor.fleet;
        let mut message = self.message(&keys);
        if cause == Cause::Plan {
            let reservation = self.planned.reservations.get(request.0 as usize).copied().flatten();
            message.reservation = reservation.map(|id| v1::Reservation { id, ..Default::default() });
        }
        let (cancel, cancelled) = oneshot::channel();
        let (addr, group) = match self.topology.table.node_index(node) {
            Some(index) => {
                let entry = self.topology.table.node_at(index);
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
        let sent = fleet.now();
        self.open.insert(request, Open { charge, keys, heard: 0, sent, _cancel: cancel });
        let outgoing = Outgoing { request, transport, addr, message, cancelled };
        match self.in_parts {
            true => self.calls.push(outgoing.in_parts()),
            false => self.calls.push(outgoing.whole()),
        }
    }

    pub(in crate::executor) fn message(&self, keys: &[u32]) -> v1::EvaluateRequest {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let header = v1::RequestHeader {
            epoch: self.topology.table.epoch().0,
            deadline_us: u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1),
            client: self.executor.fleet.client(),
            trace_id: self.options.trace_id.clone(),
            workflow: workflow_to_wire(self.options.workflow),
            admitted: self.executor.admits,
            ticket: self.options.ticket.as_ref().map(Ticket::to_bytes).unwrap_or_default().into(),
            ..Default::default()
        };
        let mut request = v1::EvaluateRequest {
            header: Some(header),
            name: self.pinned.name.clone(),
            version: self.pinned.version(),
            plan: Some(self.plan.clone()),
            in_slices: !self.in_parts,
            proofs: self.proofs,
            ..Default::default()
        };
        if let Pin::Live { identity } = self.pinned.pin {
            request.critical = self.options.critical;
            request.pinned = self.pinned_points(identity).into();
        }
        match &self.fan_out.scope {
            Scope::Keys(all) => request.keys = keys.iter().map(|&key| all[key as usize]).collect(),
            Scope::ByteKeys(all) => request.byte_keys = encode_keys(&all.select(keys)),
            Scope::Partitions => request.partitions = keys.to_vec(),
        }
        request
    }
}
