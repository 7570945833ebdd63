//! Records one fan-out for the profile.

use crate::executor::PlannedFanOut;
use crate::profile::Trace;
use kith_routing::execution::{Cause, RequestId};
use kith_types::NodeId;
use kith_wire::v1;
use std::{collections::BTreeMap, time::Instant};

/// The record of one fan-out. Nothing is recorded unless a profile is wanted.
pub(super) struct RoundTrace<'a> {
    trace: &'a mut Trace,
    started: Instant,
    profile: Option<v1::RoundProfile>,
    /// Requests under way: their index in the profile, and when they were sent.
    open: BTreeMap<RequestId, (usize, Instant)>,
}

impl<'a> RoundTrace<'a> {
    pub fn new(trace: &'a mut Trace, purpose: &str, planned: &PlannedFanOut) -> Self {
        let profile =
            trace.is_wanted().then(|| v1::RoundProfile { name: purpose.to_owned(), ..planned.profile() });
        Self { trace, started: Instant::now(), profile, open: BTreeMap::new() }
    }

    pub fn sent(&mut self, request: RequestId, node: NodeId, group: u32, keys: usize, cause: Cause) {
        let Some(round) = &mut self.profile else { return };
        let sent = Instant::now();
        self.open.insert(request, (round.requests.len(), sent));
        round.requests.push(v1::RequestProfile {
            node: node.0,
            group,
            keys: keys as u64,
            start_us: self.trace.micros(sent),
            attempt: if cause == Cause::Plan { 1 } else { 2 },
            cause: cause.name().to_owned(),
            ..Default::default()
        });
    }

    pub fn replied(&mut self, request: RequestId, reply: &v1::EvaluateReply) {
        if let (Some(round), Some((index, _))) = (&mut self.profile, self.open.get(&request)) {
            // A reply may come in parts.
            round.requests[*index].service_us += reply.service_us;
            round.requests[*index].reply_bytes += kith_wire::encoded_len(reply) as u64;
        }
    }

    pub fn closed(&mut self, request: RequestId, outcome: &str) {
        let (Some(round), Some((index, sent))) = (&mut self.profile, self.open.remove(&request)) else {
            return;
        };
        let entry = &mut round.requests[index];
        entry.took_us = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
        entry.outcome = outcome.to_owned();
    }

    /// Notes that the answer counts, for at least one key. A request's id is its index in the profile.
    pub fn won(&mut self, request: RequestId) {
        let entry = self.profile.as_mut().and_then(|round| round.requests.get_mut(request.0 as usize));
        if let Some(entry) = entry {
            entry.won = true;
        }
    }

    pub fn finish(&mut self, merged_ids: u64, ended_early: bool) {
        let Some(mut round) = self.profile.take() else { return };
        round.start_us = self.trace.micros(self.started);
        round.took_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        round.merged_ids = merged_ids;
        round.ended_early = ended_early;
        self.trace.round(round);
    }

    /// The time that the query was given, in milliseconds.
    pub fn allowed_ms(&self, deadline: Instant) -> u64 {
        self.trace.micros(deadline).div_ceil(1_000)
    }
}
