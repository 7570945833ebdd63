//! A reply that comes in several messages, as it is given credit (`docs/design/0010-streaming.md`).

use super::{
    connection::{Connection, Sent},
    reply::{PartMessage, Replying},
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

/// Taken bytes for which credit is given at once: half of it, so that the peer never waits while its receiver does not.
const CREDIT_STEP: u32 = CREDIT_BYTES / 2;

/// The messages of a reply, first to last. Ends after the last or an error; dropped before, it cancels the request. What is not
/// taken out of it is not asked for: a message and [`CREDIT_BYTES`] at the most lie here.
#[derive(Debug)]
pub struct Parts {
    sent: Sent,
    /// Bounded by the credit.
    receiver: mpsc::UnboundedReceiver<PartMessage>,
    /// Bytes taken for which no credit was given yet.
    taken: u32,
}

impl Parts {
    /// Sends a request, as [`Call::send`](super::call::Call::send) does.
    ///
    /// # Errors
    /// As `Call::send`.
    pub(super) fn send(
        connection: &Arc<Connection>,
        op: Op,
        deadline_us: u32,
        body: &impl Message,
    ) -> Result<Self, Status> {
        let (told, receiver) = mpsc::unbounded_channel();
        let header = Header { deadline_us, ..Header::request(0, op) }.credited();
        let sent = connection.request(header, body, Replying::Parts(told))?;
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
        // The sender lives as long as the connection keeps the request.
        let told = ready!(self.receiver.poll_recv(cx))
            .unwrap_or_else(|| Err(Status::internal("a request was forgotten")));
        match told {
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
