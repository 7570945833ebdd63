//! One connection: reads requests, starts a task for each, and ends these tasks when the peer closes the connection.

use super::{
    UNDER_WAY_MAX, answer,
    incoming::{self, Incoming},
    inlet::Unfinished,
    introduction::Introduction,
    outbox::{self, Ended, Outbox},
    upgrade::{self, Socket},
};
use crate::{Guest, Stream};
use futures::{StreamExt, stream::SplitStream};
use kith_gremlin::message::Operation;
use std::{io, pin::pin, sync::Arc};
use tokio::task::{JoinError, JoinSet};
use tokio_tungstenite::tungstenite::{
    Error,
    error::CapacityError,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

/// The reason of a close frame has at most this many bytes.
const REASON_BYTES_MAX: usize = 123;

/// Serves a connection until its peer closes it or breaks the protocol, or until it has to end; the requests under way are then
/// answered first.
///
/// # Errors
/// Errors of the stream.
pub(super) async fn serve(stream: &mut Stream, guest: Guest) -> io::Result<()> {
    let unfinished = Unfinished::new(guest.place());
    let socket = match upgrade::accept(stream, unfinished.clone()).await {
        Ok(socket) => socket,
        Err(refusal) => return refusal.tell(stream).await,
    };
    let (sink, source) = socket.split();
    let (outbox, sending) = outbox::new();
    let connection = Connection {
        source,
        outbox,
        unfinished,
        guest: Arc::new(guest),
        introduction: Introduction::default(),
        tasks: JoinSet::new(),
    };
    let mut sending = pin!(sending.run(sink));
    tokio::select! {
        // The peer takes no more answers. This ends the requests under way.
        sent = &mut sending => return sent,
        () = connection.run() => {}
    }
    sending.await
}

struct Connection<'s> {
    source: SplitStream<Socket<'s>>,
    outbox: Outbox,
    unfinished: Unfinished,
    guest: Arc<Guest>,
    introduction: Introduction,
    /// One for each request under way. They end when this is dropped.
    tasks: JoinSet<()>,
}

/// Why no more requests are read.
enum End {
    /// The peer has closed the connection.
    Gone,
    /// The connection is closed, and the peer is told why.
    Close(CloseFrame),
}

impl From<Ended> for End {
    fn from(Ended: Ended) -> Self {
        Self::Gone
    }
}

impl Connection<'_> {
    async fn run(mut self) {
        loop {
            if let Err(end) = self.step().await {
                if let End::Close(frame) = end {
                    self.outbox.close(frame).await;
                }
                return;
            }
        }
    }

    /// Reads a request, or waits until one under way has ended.
    async fn step(&mut self) -> Result<(), End> {
        tokio::select! {
            biased;
            Some(ended) = self.tasks.join_next() => check(ended),
            message = self.source.next(), if self.tasks.len() < UNDER_WAY_MAX => {
                let message = match message {
                    Some(Ok(message)) => message,
                    Some(Err(error)) => return Err(self.broken(error).await),
                    None => return Err(End::Gone),
                };
                match incoming::receive(message, &self.unfinished, &self.outbox).await? {
                    Some(incoming) => self.take(incoming).await,
                    None => Ok(()),
                }
            }
        }
    }

    async fn take(&mut self, incoming: Incoming) -> Result<(), End> {
        if let Operation::Authentication(credentials) = &incoming.request.operation {
            // An identity changes for the requests that come later only.
            self.answer_all().await?;
            let Some(guest) = Arc::get_mut(&mut self.guest) else {
                return Err(End::Close(close(
                    CloseCode::Error,
                    "internal error: a request is still under way",
                )));
            };
            let shown = (incoming.request.id, credentials, incoming.coding);
            for kept in self.introduction.check(shown, guest, &self.outbox).await? {
                self.start(kept);
            }
        } else if self.guest.visitor().is_known() {
            self.start(incoming);
        } else {
            self.introduction.keep(incoming, &self.outbox).await?;
        }
        Ok(())
    }

    fn start(&mut self, incoming: Incoming) {
        self.tasks.spawn(answer::answer(Arc::clone(&self.guest), incoming, self.outbox.clone()));
    }

    /// Waits until the requests under way are answered.
    async fn answer_all(&mut self) -> Result<(), End> {
        while let Some(ended) = self.tasks.join_next().await {
            check(ended)?;
        }
        Ok(())
    }

    /// What follows from an error of the WebSocket. If the connection has to end, the requests under way are answered first.
    async fn broken(&mut self, error: Error) -> End {
        let (code, reason) = match error {
            Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                if self.guest.end().is_cancelled()
                    && let Err(end) = self.answer_all().await
                {
                    return end;
                }
                (CloseCode::Away, "the server ends this connection; connect again".to_owned())
            }
            Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => {
                let reason =
                    format!("too_large: the request has {size} bytes, at most {max_size} are allowed");
                (CloseCode::Size, reason)
            }
            Error::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                let reason = "overloaded: the requests under way use all memory for requests; try again";
                (CloseCode::Again, reason.to_owned())
            }
            Error::Protocol(error) => (CloseCode::Protocol, error.to_string()),
            Error::Utf8(error) => (CloseCode::Invalid, error),
            _ => return End::Gone,
        };
        End::Close(close(code, &reason))
    }
}

/// A task that panicked has not answered its request, so the connection is closed.
fn check(ended: Result<(), JoinError>) -> Result<(), End> {
    ended.map_err(|_| End::Close(close(CloseCode::Error, "internal error: a request could not be answered")))
}

fn close(code: CloseCode, reason: &str) -> CloseFrame {
    let ends = reason.char_indices().map(|(at, char)| at + char.len_utf8());
    let end = ends.take_while(|end| *end <= REASON_BYTES_MAX).last().unwrap_or(0);
    CloseFrame { code, reason: reason[..end].into() }
}
