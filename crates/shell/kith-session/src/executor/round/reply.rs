//! Takes in the answers of nodes: replies, their parts, and failures.

use super::{
    Round,
    calls::{self, Call, Rest},
};
use crate::executor::failure::class_of;
use kith_operators::{Part, Records, Value};
use kith_query::{QueryError, convert::value_of_reply};
use kith_routing::{
    HealthEvent,
    execution::{Disposition, Event, FailureClass, RequestId},
    load::{NodeReport, RequestEnd},
};
use kith_types::{ErrorCode, NodeId, PartitionId};
use kith_wire::v1;
use tonic::Status;

impl Round<'_> {
    pub(super) fn on_call(&mut self, call: Call) {
        let Some(answer) = call.answer else { return };
        let Some(open) = self.open.get(&call.request) else { return };
        let node = open.charge.node();
        match answer {
            Ok(reply) => {
                self.question.executor.fleet.on(node, HealthEvent::Success);
                self.trace.replied(call.request, &reply);
                self.question.executor.note_quota(&self.question.pinned.name, node, reply.quota_left());
                self.on_reply(call.request, node, reply, call.rest);
            }
            Err(status) => self.on_failure(call.request, node, &status),
        }
    }

    fn on_failure(&mut self, request: RequestId, node: NodeId, status: &Status) {
        let fleet = &self.question.executor.fleet;
        let class = class_of(status, self.question.pinned.version());
        let is_late = matches!(class, FailureClass::DeadlineExceeded | FailureClass::Timeout);
        fleet.on(
            node,
            match class {
                FailureClass::Connection => HealthEvent::ConnectionError,
                _ if is_late => HealthEvent::Timeout,
                _ => HealthEvent::Success,
            },
        );
        let code = kith_wire::code_of(status);
        self.too_large |= code == ErrorCode::TooLarge;
        if class == FailureClass::Throttled {
            self.question.executor.note_quota(&self.question.pinned.name, node, v1::QuotaLeft::QuotaTight);
        }
        // Nodes of a live graph know its types better than the client, so their refusals are passed on.
        let is_type_fault = class == FailureClass::BadRequest && self.question.pinned.pin.version().is_none();
        if code.is_denial() || class == FailureClass::Throttled || is_type_fault {
            self.denied = Some(QueryError::from_status(status));
        }
        self.reasons.push(format!("{node}: {}", status.message()));
        let end = if is_late { RequestEnd::TimedOut } else { RequestEnd::Failed };
        self.close(request, end, class.name());
        let _ = self.execution.on(Event::Failed { request, class }, fleet.now());
    }

    /// Takes in a reply, or the next part of one.
    fn on_reply(
        &mut self,
        request: RequestId,
        node: NodeId,
        mut reply: v1::EvaluateReply,
        rest: Option<Rest>,
    ) {
        let now = self.question.executor.fleet.now();
        if let Some(load) = &reply.load {
            self.note_load(node, load);
        }
        let Some((mut part, is_last)) = self.part_of(request, &mut reply, rest.is_some()) else {
            return self.on_malformed(request, node);
        };
        let Some(points) = self.points.of_reply(&reply) else { return self.on_malformed(request, node) };
        if let Some(partition) = self.points.moved(&points) {
            return self.on_moved(request, node, partition);
        }
        match rest.filter(|_| !is_last) {
            Some(rest) => self.calls.push(calls::next_part(request, rest)),
            None => self.close(request, RequestEnd::Answered, "ok"),
        }
        let (keys, settled) = (part.positions.len() as u32, part.value == Value::Exists(true));
        let failed = self.failed_of(node, &mut part);
        let event = match (is_last, failed.is_empty()) {
            (false, _) => Event::ReplySoFar { request, keys, failed },
            (true, false) => Event::ReplyInPart { request, failed },
            (true, true) => Event::Reply { request },
        };
        match self.execution.on(event, now) {
            Disposition::Ignored => return,
            Disposition::Held => {
                self.held.insert(request, (part, points));
                return;
            }
            Disposition::Accepted => {}
            Disposition::AcceptedInPart { late } => part.leave_out(&late),
        }
        self.service_us = self.service_us.max(reply.service_us);
        self.trace.won(request);
        self.points.note(points);
        self.parts.push(part);
        if settled {
            let _ = self.execution.on(Event::Satisfied, now);
        }
    }

    /// A node read a partition at another point than the answers that count. The next request names their point.
    fn on_moved(&mut self, request: RequestId, node: NodeId, partition: PartitionId) {
        self.reasons.push(format!("{node}: read partition {partition} at another place of its log"));
        let class = FailureClass::OtherPosition;
        self.close(request, RequestEnd::Answered, class.name());
        let _ = self.execution.on(Event::Failed { request, class }, self.question.executor.fleet.now());
    }

    fn on_malformed(&mut self, request: RequestId, node: NodeId) {
        self.reasons.push(format!("{node}: sent a malformed answer"));
        self.close(request, RequestEnd::Failed, FailureClass::Internal.name());
        let event = Event::Failed { request, class: FailureClass::Internal };
        let _ = self.execution.on(event, self.question.executor.fleet.now());
    }

    fn note_load(&self, node: NodeId, load: &v1::NodeLoad) {
        let fleet = &self.question.executor.fleet;
        let report = NodeReport { rps: load.requests_per_second, clients: load.clients };
        fleet.with_load(|load, now| load.on_report(node, report, now));
        if load.leaving {
            // Its answers still count; further requests go to other nodes.
            fleet.on(node, HealthEvent::ProbeFailed);
        }
    }

    /// Decodes the part of a reply for the next keys that its request owes, and whether these are all of them. `None` if
    /// the reply is malformed.
    fn part_of(
        &mut self,
        request: RequestId,
        reply: &mut v1::EvaluateReply,
        more: bool,
    ) -> Option<(Part, bool)> {
        let open = self.open.get_mut(&request)?;
        let owed = &open.keys[open.heard..];
        let value = value_of_reply(reply, owed.len()).ok()?;
        if !answers(&value, owed.len(), more) {
            return None;
        }
        let count = value.records().map_or(owed.len(), Records::len);
        let part = Part { positions: owed[..count].to_vec(), value };
        let is_last = count == owed.len();
        open.heard += count;
        Some((part, is_last))
    }

    /// Takes damaged records out of an answer and returns their keys. Another replica is then asked for those keys alone.
    fn failed_of(&mut self, node: NodeId, part: &mut Part) -> Vec<(u32, FailureClass)> {
        let Part { positions, value } = part;
        self.question.prove(node, value, positions, &self.points);
        let damaged = value.records_mut().map(|records| records.split_damaged(positions)).unwrap_or_default();
        if !damaged.is_empty() {
            self.reasons.push(format!("{node}: {} damaged records", damaged.len()));
            self.damaged.extend(&damaged);
        }
        damaged.into_iter().map(|key| (key, FailureClass::Damaged)).collect()
    }
}

/// Whether a node has answered each of the keys that it `owes`, with a value or an error. If more parts may follow, the
/// first keys are enough.
fn answers(value: &Value, owes: usize, more: bool) -> bool {
    value.records().is_none_or(|records| {
        let is_enough = records.len() == owes || (more && (1..owes).contains(&records.len()));
        is_enough && records.counts().unanswered == 0
    })
}
