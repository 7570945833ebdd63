//! Messages to requests. Long ones are decoded away from the threads that serve connections.

use super::{
    failure::{failure, no_memory},
    inlet::PartialMessages,
    outbox::AnswerCoding,
    question::GraphQuestion,
};
use futures::{FutureExt, future::BoxFuture};
use kith_gremlin::{
    Room,
    message::{self, Credentials, Frame, Operation, RejectedRequest, Request, Response},
};
use kith_net::{INLINE_BYTES_MAX, aside, in_turns};
use kith_query::QueryError;
use kith_types::ErrorCode;
use std::{num::NonZeroU64, time::Instant};
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

/// A request that was received.
#[derive(Debug)]
pub(super) struct ReceivedRequest {
    pub id: Uuid,
    pub coding: AnswerCoding,
    /// The most results in one message.
    pub batch_size: Option<NonZeroU64>,
    pub wants: RequestGoal,
    /// The memory that the request takes, until this is dropped.
    _room: Room,
}

/// The goal of a request.
#[derive(Debug)]
pub(super) enum RequestGoal {
    Authentication(Credentials),
    /// Results, or an error if it cannot be understood what is asked.
    Results(Box<Result<GraphQuestion, QueryError>>),
}

/// A request, or the answer to one that cannot be served.
pub(super) type DecodeResult = Result<ReceivedRequest, Box<(Response, AnswerCoding)>>;

/// A message that is being decoded.
pub(super) struct DecodingTask {
    /// Whether it takes so long that other messages are to be read meanwhile.
    pub is_long: bool,
    pub decoded: BoxFuture<'static, DecodeResult>,
}

/// Begins to decode a message. `None` if it is none with a request.
pub(super) fn decoding(message: Message, unfinished: &PartialMessages) -> Option<DecodingTask> {
    if !matches!(message, Message::Text(_) | Message::Binary(_)) {
        return None;
    }
    let (length, received) = (message.len(), Instant::now());
    let room = unfinished.finish(length);
    let is_long = INLINE_BYTES_MAX < length;
    let decoded = async move {
        let decoding = aside(length, move || decoded(&message, room));
        // The connection is not read while a short message is decoded, so that must not wait for the turns of its requests.
        let mut decoded = if is_long { in_turns(decoding).await } else { decoding.await };
        // The time that a caller allows counts from when its request was complete.
        if is_long
            && let Ok(ReceivedRequest { wants: RequestGoal::Results(asked), .. }) = &mut decoded
            && let Ok(asked) = &mut **asked
            && let Some(deadline) = &mut asked.options.deadline
        {
            *deadline = deadline.saturating_sub(received.elapsed());
        }
        decoded
    };
    Some(DecodingTask { is_long, decoded: decoded.boxed() })
}

fn decoded(message: &Message, mut room: Room) -> DecodeResult {
    let (frame, is_text) = match message {
        Message::Text(text) => (Frame::Text(text), true),
        other => (Frame::Binary(binary(other)), false),
    };
    let coding = |serializer| AnswerCoding { serializer, is_text };
    match message::decode(frame, &mut room) {
        Ok((serializer, request)) => Ok(incoming(request, coding(serializer), room)),
        Err(rejected) => Err(Box::new((refusal(&rejected), coding(rejected.serializer)))),
    }
}

fn binary(message: &Message) -> &[u8] {
    match message {
        Message::Binary(bytes) => bytes,
        _ => &[],
    }
}

fn incoming(request: Request, coding: AnswerCoding, mut room: Room) -> ReceivedRequest {
    let Request { id, operation, options } = request;
    let batch_size = options.batch_size;
    let wants = match operation {
        Operation::Authentication(credentials) => RequestGoal::Authentication(credentials),
        operation => RequestGoal::Results(Box::new(GraphQuestion::new(operation, &options, &mut room))),
    };
    ReceivedRequest { id, coding, batch_size, wants, _room: room }
}

fn refusal(rejected: &RejectedRequest) -> Response {
    match rejected.error.code {
        ErrorCode::Overloaded => failure(rejected.id, &no_memory()),
        _ => rejected.response(),
    }
}
