//! The messages that a connection sends, in the order in which the tasks of its requests have made them.

use super::{failure::failure, inlet::Inlet};
use crate::Stream;
use bytes::Bytes;
use futures::{SinkExt, stream::SplitSink};
use kith_gremlin::{
    GremlinError,
    message::{Response, Serializer, Status},
};
use kith_query::QueryError;
use std::{io, mem, sync::Arc};
use tokio::sync::mpsc;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Error, Message, Utf8Bytes, protocol::CloseFrame},
};

/// This many messages wait for a peer that reads slowly. The tasks that make further ones wait.
const WAITING_MAX: usize = 4;

/// A claim on the memory that a message takes until it is sent.
pub(super) type MemoryClaim = Arc<dyn Send + Sync>;
/// A message, and the reply whose memory it takes.
type Outgoing = (Message, Option<MemoryClaim>);

/// The connection has ended, so nobody wants answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionEnded;

/// Where the messages of a connection are put. Clones put them to the same connection.
#[derive(Clone, Debug)]
pub(super) struct Outbox(mpsc::Sender<Outgoing>);

/// Takes the messages of an outbox.
pub(super) struct OutboxReceiver(mpsc::Receiver<Outgoing>);

/// How the answers to one request are coded.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerCoding {
    pub serializer: Serializer,
    /// Whether the request came in a frame of text; its answers then go in such frames.
    pub is_text: bool,
}

/// An empty outbox, and what sends its messages.
pub(super) fn new() -> (Outbox, OutboxReceiver) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Outbox(sender), OutboxReceiver(receiver))
}

impl Outbox {
    /// Sends a response, which stands for `reply` or a part of it. A response that cannot be coded is replaced by the error.
    /// Returns whether it was sent as it is.
    ///
    /// # Errors
    /// [`ConnectionEnded`] if the connection has ended.
    pub async fn send(
        &self,
        response: &Response,
        coding: AnswerCoding,
        reply: Option<MemoryClaim>,
    ) -> Result<bool, ConnectionEnded> {
        let (bytes, is_coded) = match response.encode(coding.serializer) {
            Ok(bytes) => (bytes, true),
            Err(error) => (uncodable(response, &error).encode(coding.serializer).unwrap_or_default(), false),
        };
        let message = match coding.is_text {
            // GraphSON is text.
            true => Message::Text(Utf8Bytes::try_from(Bytes::from(bytes)).unwrap_or_default()),
            false => Message::Binary(bytes.into()),
        };
        self.0.send((message, reply)).await.map_err(|_| ConnectionEnded)?;
        Ok(is_coded)
    }

    /// Sends the answer that a request failed.
    ///
    /// # Errors
    /// [`ConnectionEnded`] if the connection has ended.
    pub async fn fail(
        &self,
        id: uuid::Uuid,
        error: &QueryError,
        coding: AnswerCoding,
    ) -> Result<(), ConnectionEnded> {
        self.send(&failure(Some(id), error), coding, None).await.map(drop)
    }

    /// Closes the WebSocket.
    pub async fn close(&self, frame: CloseFrame) {
        // If the connection has ended, it is closed.
        let _ = self.0.send((Message::Close(Some(frame)), None)).await;
    }
}

fn uncodable(response: &Response, error: &GremlinError) -> Response {
    let mut failed = Response::failure(response.id, error);
    failed.status = Status::Serialization;
    failed.message = format!("a result cannot be sent: {error}");
    failed
}

impl OutboxReceiver {
    /// Sends messages until no outbox is left.
    ///
    /// # Errors
    /// Errors of the stream. It is no error if the peer has closed the WebSocket.
    pub async fn run(
        mut self,
        mut sink: SplitSink<WebSocketStream<Inlet<&mut Stream>>, Message>,
    ) -> io::Result<()> {
        let mut unsent = Vec::new();
        while let Some((message, reply)) = self.0.recv().await {
            unsent.extend(reply);
            let sent = if self.0.is_empty() {
                unsent_none(&mut unsent, sink.send(message)).await
            } else {
                sink.feed(message).await
            };
            if let Err(error) = sent {
                return ended(error);
            }
        }
        Ok(())
    }
}

/// Sends a message and all before it, and then ends the charges of their replies.
async fn unsent_none(
    unsent: &mut Vec<MemoryClaim>,
    sending: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    let sent = sending.await;
    drop(mem::take(unsent));
    sent
}

fn ended(error: Error) -> io::Result<()> {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => Ok(()),
        Error::Protocol(_) => Ok(()),
        Error::Io(error) => Err(error),
        other => Err(io::Error::other(other)),
    }
}
