//! Answers requests for live graphs: writes to partitions that this node leads, deliveries from other leaders, and exports.

use super::{
    errors::{delivery_status, needs_newer_types, write_status},
    message::LeadMessage,
    registry::LiveGraphs,
    wire::{point_from_wire, point_to_wire},
};
use kith_live::{Delivery, Intent};
use kith_query::{
    QueryError, Question, WriteOutcome,
    convert::{write_from_wire, written_to_wire},
};
use kith_types::ErrorCode;
use kith_wire::LookupError;
use kith_wire::v1;
use tokio::sync::oneshot;
use tonic::Status;

impl LiveGraphs {
    /// Carries out a write. Once the write has begun, it is carried out to its end even if the caller goes away.
    ///
    /// # Errors
    /// The status for the caller. With every error but `outcome_unknown`, this request has written nothing.
    pub async fn write(&self, request: v1::GraphWriteRequest) -> Result<v1::GraphWriteReply, Status> {
        let request = write_from_wire(request).map_err(|error| error.to_status())?;
        let Question::Write { graph: name, write } = request.question else {
            return Err(unknown_graph(request.question.of()));
        };
        let graph = self.leading(&name)?;
        let write_id = write.write_id.as_ref().map(ToString::to_string).unwrap_or_default();
        let (answer, answered) = oneshot::channel();
        if graph.lead.send(LeadMessage::Write(write, answer)).is_err() {
            return Err(QueryError::NotLeader { detail: "this node is about to end".to_owned() }.to_status());
        }
        // The node may end while it carries out the write.
        let lost = |_| QueryError::OutcomeUnknown { detail: "the leader has ended".to_owned() }.to_status();
        let done = answered.await.map_err(lost)?.map_err(|error| {
            if needs_newer_types(&error, &graph.types()) {
                let detail = format!("this node does not know the newest types of the graph yet: {error}");
                return QueryError::NotLeader { detail }.to_status();
            }
            write_status(error, &write_id, graph.database.last_error())
        })?;
        Ok(written_to_wire(WriteOutcome { done: done.done, ticket: done.ticket, profile: None }))
    }

    /// Changes this end of a pair to the state that the leader of the other end has decided.
    ///
    /// # Errors
    /// The status for the sender, which sends the delivery again.
    pub async fn deliver(&self, request: v1::DeliverRequest) -> Result<v1::DeliverReply, Status> {
        let graph = self.leading(&request.graph)?;
        let intent = Intent::from_bytes(&request.intent).map_err(|error| {
            kith_wire::status(ErrorCode::BadRequest, error.to_string(), "use nodes of one release")
        })?;
        let point = |point: Option<v1::LogPlace>| point.map(point_from_wire).unwrap_or_default();
        let delivery = Delivery { intent, floor: point(request.floor), as_of: point(request.as_of) };
        let (answer, answered) = oneshot::channel();
        let _ = graph.lead.send(LeadMessage::Deliver(delivery, answer));
        let lost = |_| kith_wire::status(ErrorCode::NotLeader, "the leader has ended", "send it again");
        let reached = answered.await.map_err(lost)?.map_err(delivery_status)?;
        Ok(v1::DeliverReply { reached: Some(point_to_wire(reached)) })
    }

    /// Returns a page of the rows of one type.
    ///
    /// # Errors
    /// The status for the caller.
    pub async fn scan(&self, request: &v1::ScanRequest) -> Result<v1::ScanReply, Status> {
        let found = self.find(&request.graph).map_err(|error| error.to_status())?;
        let graph = found.ok_or_else(|| {
            let message = format!("this node knows no live graph {:?} yet", request.graph);
            kith_wire::status(ErrorCode::Unavailable, message, "ask another replica, or ask again")
        })?;
        graph.scanner.scan(request).await.map_err(|error| error.to_status())
    }
}

fn unknown_graph(name: &str) -> Status {
    LookupError::UnknownGraph { name: name.to_owned(), known: Vec::new() }.to_status()
}
