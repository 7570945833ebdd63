//! Evaluates operators over a live graph.

use super::{graph::LiveGraph, read::ReadNeed};
use kith_api::convert::operator_from_wire;
use kith_live::Ticket;
use kith_ops::{AssociationsEntry, ObjectEntry, Operator, Value};
use kith_types::{ErrorCode, LogPoint, PartitionId};
use kith_wire::v1;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tonic::Status;

/// Time for a request that brings no deadline.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);

/// A value, and the places in the logs that it shows.
pub(crate) struct Evaluated {
    pub value: Value,
    pub reached: Ticket,
}

impl LiveGraph {
    /// Answers what a request asks of this graph.
    ///
    /// # Errors
    /// As the caller is to be told.
    pub async fn evaluate(self: &Arc<Self>, request: &v1::EvaluateRequest) -> Result<Evaluated, Status> {
        let micros = request.header.as_ref().map_or(0, |header| header.deadline_us);
        let left = if micros == 0 { DEADLINE_DEFAULT } else { Duration::from_micros(micros) };
        let need = self.need_of(request)?;
        let late = |_| {
            let help = "give the query more time";
            kith_wire::status(ErrorCode::DeadlineExceeded, "the deadline passed while rows were read", help)
        };
        tokio::time::timeout(left, self.evaluate_plan(request, &need)).await.map_err(late)?
    }

    async fn evaluate_plan(
        self: &Arc<Self>,
        request: &v1::EvaluateRequest,
        need: &ReadNeed,
    ) -> Result<Evaluated, Status> {
        let plan = request.plan.as_ref().map(operator_from_wire);
        let plan = match plan {
            Some(Ok(plan)) => plan,
            Some(Err(error)) => return Err(unsupported(&error.to_string())),
            None => return Err(unsupported("the request has no plan")),
        };
        let (value, reached) = match plan {
            Operator::Objects => {
                let (objects, reached) =
                    self.objects(&request.keys, need).await.map_err(|error| error.to_status())?;
                let entry = |object: Option<_>| object.map_or(ObjectEntry::Absent, ObjectEntry::Found);
                (Value::Objects(objects.into_iter().map(entry).collect()), reached)
            }
            Operator::Associations(read) => {
                let (mut entries, mut reached) = (Vec::new(), BTreeMap::new());
                for &id1 in &request.keys {
                    let answer = self.associations(id1, &read, need).await;
                    let (answer, partition, point) = answer.map_err(|error| error.to_status())?;
                    entries.push(AssociationsEntry::Answer(answer));
                    note(&mut reached, partition, point);
                }
                (Value::Associations(entries), reached)
            }
            _ => return Err(unsupported("this node does not answer graph queries over live graphs yet")),
        };
        Ok(Evaluated { value, reached: Ticket { graph: self.identity(), points: reached } })
    }

    /// What the answer must show.
    fn need_of(&self, request: &v1::EvaluateRequest) -> Result<ReadNeed, Status> {
        let ticket = request.header.as_ref().map(|header| &header.ticket[..]).unwrap_or_default();
        let after = match ticket {
            [] => BTreeMap::new(),
            bytes => {
                let ticket = Ticket::from_bytes(bytes).map_err(|error| {
                    kith_wire::status(ErrorCode::BadRequest, error.to_string(), "use a ticket of a write")
                })?;
                if ticket.graph != self.identity() {
                    let message = format!("the ticket is not of graph {:?}", self.name);
                    return Err(kith_wire::status(
                        ErrorCode::WrongTicket,
                        message,
                        "use a ticket of a write to this graph",
                    ));
                }
                ticket.points
            }
        };
        Ok(ReadNeed { after, critical: request.critical })
    }
}

/// Keeps the later place of each partition.
fn note(reached: &mut BTreeMap<PartitionId, LogPoint>, partition: PartitionId, point: LogPoint) {
    let known = reached.entry(partition).or_insert(point);
    *known = point.max(*known);
}

fn unsupported(message: &str) -> Status {
    kith_wire::status(ErrorCode::UnsupportedOperation, message, "use a client of this release")
}
