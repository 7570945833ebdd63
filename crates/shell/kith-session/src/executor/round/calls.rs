//! Requests under way. Each is a future that yields its reply or the next part of it.

use futures::StreamExt;
use kith_net::transport::{EvaluateParts, Transport};
use kith_routing::execution::RequestId;
use kith_wire::v1;
use std::sync::Arc;
use tokio::sync::oneshot;
use tonic::Status;

/// The outcome of a request, or of its next part.
pub(super) struct Call {
    pub request: RequestId,
    /// `None` if it was cancelled.
    pub answer: Option<Result<v1::EvaluateReply, Status>>,
    /// The source of further parts, if there may be any.
    pub rest: Option<Rest>,
}

/// The parts of a reply that are still to come. Dropping this cancels the request.
pub(super) struct Rest {
    parts: EvaluateParts,
    cancelled: oneshot::Receiver<()>,
}

/// A request to be sent. It ends without an answer when the other end of `cancelled` is dropped.
pub(super) struct OutgoingRequest {
    pub request: RequestId,
    pub transport: Arc<dyn Transport>,
    pub addr: String,
    pub message: v1::EvaluateRequest,
    pub cancelled: oneshot::Receiver<()>,
}

impl OutgoingRequest {
    /// Asks for the answer in one message.
    pub async fn whole(self) -> Call {
        let Self { request, transport, addr, message, cancelled } = self;
        let call = transport.evaluate(&addr, message);
        let answer = tokio::select! {
            answer = call => Some(answer),
            _ = cancelled => None,
        };
        Call { request, answer, rest: None }
    }

    /// Asks for an answer that may come in parts, and waits for the first part.
    pub async fn in_parts(self) -> Call {
        let Self { request, transport, addr, message, cancelled } = self;
        next_part(request, Rest { parts: transport.evaluate_in_parts(addr, message), cancelled }).await
    }
}

/// Waits for the next part of an answer.
pub(super) async fn next_part(request: RequestId, mut rest: Rest) -> Call {
    tokio::select! {
        part = rest.parts.next() => {
            let ended = || Err(Status::internal("a reply ended before its last part"));
            Call { request, answer: Some(part.unwrap_or_else(ended)), rest: Some(rest) }
        }
        _ = &mut rest.cancelled => Call { request, answer: None, rest: None },
    }
}
