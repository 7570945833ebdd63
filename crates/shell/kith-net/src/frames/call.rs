//! A request whose caller waits for the whole reply.

use super::{
    connection::{Connection, SentRequest},
    reply::{Pieces, ReplyReceiver},
};
use kith_wire::{
    Message,
    frame::{Header, Op},
};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::oneshot;
use tonic::Status;

/// A request under way. Dropping it cancels the request.
#[derive(Debug)]
pub(super) struct Call {
    sent: SentRequest,
    receiver: oneshot::Receiver<Result<Pieces, Status>>,
}

impl Call {
    /// Encodes a request and writes it to the connection in the caller's own task.
    ///
    /// # Errors
    /// The connection is lost, too many bytes are unsent, or the message is too long.
    pub fn send(
        connection: &Arc<Connection>,
        op: Op,
        deadline_us: u32,
        body: &impl Message,
    ) -> Result<Self, Status> {
        let (sender, receiver) = oneshot::channel();
        let header = Header { deadline_us, ..Header::request(0, op) };
        let sent =
            connection.request(header, body, ReplyReceiver::Whole { pieces: Pieces::new(), sender })?;
        Ok(Self { sent, receiver })
    }
}

impl Future for Call {
    type Output = Result<Pieces, Status>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = ready!(Pin::new(&mut self.receiver).poll(cx));
        self.sent.end();
        // The connection keeps the sender for as long as it keeps the request.
        Poll::Ready(
            reply.unwrap_or_else(|_| {
                Err(Status::internal("the connection dropped the request without a reply"))
            }),
        )
    }
}
