//! The question of a fan-out, and the requests that ask it.

use super::{super::FanOutCall, Executor, reached::ReadPoints};
use kith_live::Ticket;
use kith_operators::Operator;
use kith_query::{
    FanOut, QueryOptions, Scope,
    convert::{operator_to_wire, workflow_to_wire},
};
use kith_topology::{Pin, PinnedState, Topology};
use kith_wire::{body::encode_keys, v1};
use std::time::Instant;

/// The question that all requests of a fan-out ask.
pub(in crate::executor) struct RoundQuestion<'a> {
    pub executor: &'a Executor,
    pub topology: &'a Topology,
    pub pinned: &'a PinnedState,
    pub fan_out: &'a FanOut,
    pub options: &'a QueryOptions,
    pub deadline: Instant,
    plan: v1::Operator,
    /// Whether nodes may answer in parts.
    pub in_parts: bool,
    /// Whether values come with proofs.
    pub proofs: bool,
}

impl<'a> RoundQuestion<'a> {
    pub fn new(executor: &'a Executor, asking: &FanOutCall<'a>, in_parts: bool) -> Self {
        let &FanOutCall { topology, pinned, fan_out, options, deadline, .. } = asking;
        let plan = operator_to_wire(&fan_out.plan);
        let proofs = matches!(fan_out.plan, Operator::Lookup);
        Self { executor, topology, pinned, fan_out, options, deadline, plan, in_parts, proofs }
    }

    /// The request for the keys with these indexes.
    pub fn message(&self, keys: &[u32], points: &ReadPoints) -> v1::EvaluateRequest {
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
        if let Pin::Live { .. } = self.pinned.pin {
            request.critical = self.options.critical;
            request.pinned = points.encoded().into();
        }
        match &self.fan_out.scope {
            Scope::Keys(all) => request.keys = keys.iter().map(|&key| all[key as usize]).collect(),
            Scope::ByteKeys(all) => request.byte_keys = encode_keys(&all.select(keys)),
            Scope::Partitions => request.partitions = keys.to_vec(),
        }
        request
    }
}
