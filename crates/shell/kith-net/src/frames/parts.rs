//! A reply that comes in several messages, under flow control by credit (`docs/design/0010-streaming.md`).

use super::{
    connection::{Connection, SentRequest},
    reply::{PartMessage, ReplyReceiver},
};
use futures::Stream;
use kith_wire::{
    Message, Rope,
    frame::{CREDIT_BYTES, Header, Op},
};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::mpsc;
use tonic::Status;

/// Credit is granted once this many bytes were taken. It is half of the whole credit, so that the peer need not wait as
/// long as the receiver keeps up.
const CREDIT_STEP: u32 = CREDIT_BYTES / 2;

/// The messages of a reply, first to last. The stream ends after the last message or an error; dropping it earlier cancels
/// the request. The peer gets new credit only for taken messages, so at most [`CREDIT_BYTES`] and one message wait here.
#[derive(Debug)]
pub struct Parts {
    sent: SentRequest,
    /// Its length is bounded by the credit.
    receiver: mpsc::UnboundedReceiver<PartMessage>,
    /// Taken bytes for which no credit was granted yet.
    taken: u32,
}

impl Parts {
    /// Sends a request, like [`Call::send`](super::call::Call::send).
    ///
    /// # Errors
    /// As `Call::send`.
    pub(super) fn send(
        connection: &Arc<Connection>,
        op: Op,
        deadline_us: u32,
        body: &impl Message,
    ) -> Result<Self, Status> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let header = Header { deadline_us, ..Header::request(0, op) }.credited();
        let sent = connection.request(header, body, ReplyReceiver::Parts(sender))?;
        Ok(Self { sent, receiver, taken: 0 })
    }

    fn took(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if CREDIT_STEP <= self.taken {
            self.sent.credit(std::mem::take(&mut self.taken));
        }
    }
}

impl Stream for Parts {
    type Item = Result<Rope, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.sent.is_over() {
            return Poll::Ready(None);
        }
        // The connection keeps the sender for as long as it keeps the request.
        let part = ready!(self.receiver.poll_recv(cx))
            .unwrap_or_else(|| Err(Status::internal("the connection dropped the request without a reply")));
        match part {
            Ok((body, is_last)) => {
                match is_last {
                    true => self.sent.end(),
                    false => self.took(body.len()),
                }
                Poll::Ready(Some(Ok(body)))
            }
            Err(status) => {
                self.sent.end();
                Poll::Ready(Some(Err(status)))
            }
        }
    }
}
