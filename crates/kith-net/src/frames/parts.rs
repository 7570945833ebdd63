//! A reply that comes in several messages, as it is given credit (`docs/design/0010-streaming.md`).

use super::connection::Connection;
use futures::Stream;
use kith_wire::{Rope, frame::CREDIT_BYTES};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::mpsc;
use tonic::Status;

/// A message of a reply, and whether it is the last; or the error that ends it.
pub(super) type PartMessage = Result<(Rope, bool), Status>;

/// Taken bytes for which credit is given at once: half of it, so that the peer never waits while its receiver does not.
const CREDIT_STEP: u32 = CREDIT_BYTES / 2;

/// The messages of a reply, first to last. Ends after the last or an error; dropped before, it cancels the request. What is not
/// taken out of it is not asked for: a message and [`CREDIT_BYTES`] at the most lie here.
#[derive(Debug)]
pub struct Parts {
    connection: Arc<Connection>,
    id: u64,
    /// Bounded by the credit.
    receiver: mpsc::UnboundedReceiver<PartMessage>,
    /// Bytes taken for which no credit was given yet.
    taken: u32,
    is_over: bool,
}

impl Parts {
    pub(super) fn new(
        connection: Arc<Connection>,
        id: u64,
        receiver: mpsc::UnboundedReceiver<PartMessage>,
    ) -> Self {
        Self { connection, id, receiver, taken: 0, is_over: false }
    }

    fn took(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if CREDIT_STEP <= self.taken {
            self.connection.credit(self.id, std::mem::take(&mut self.taken));
        }
    }
}

impl Stream for Parts {
    type Item = Result<Rope, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        // The sender lives as long as the connection keeps the request.
        let told = std::task::ready!(self.receiver.poll_recv(cx))
            .unwrap_or_else(|| Err(Status::internal("a request was forgotten")));
        match told {
            Ok((body, is_last)) => {
                self.is_over = is_last;
                if !is_last {
                    self.took(body.len());
                }
                Poll::Ready(Some(Ok(body)))
            }
            Err(status) => {
                self.is_over = true;
                Poll::Ready(Some(Err(status)))
            }
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.give_up(self.id);
        }
    }
}
