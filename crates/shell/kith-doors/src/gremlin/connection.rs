//! One connection: reads requests, starts a task for each, and ends these tasks when the peer closes the connection.

use super::{
    UNDER_WAY_MAX, WAITING_MAX, answer,
    failure::too_many,
    http::{self, Socket},
    incoming::{self, DecodeResult, DecodingTask, ReceivedRequest, RequestGoal},
    inlet::PartialMessages,
    introduction::Introduction,
    outbox::{self, ConnectionEnded, Outbox},
};
use crate::{DoorCaller, Stream};
use futures::{StreamExt, stream::SplitStream};
use std::{io, pin::pin, sync::Arc};
use tokio::{
    sync::Semaphore,
    task::{JoinError, JoinSet},
};
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
pub(super) async fn serve(stream: &mut Stream, caller: DoorCaller) -> io::Result<()> {
    let caller = Arc::new(caller);
    let unfinished = PartialMessages::new(caller.connected());
    let Some(socket) = http::serve(stream, &caller, unfinished.clone()).await? else { return Ok(()) };
    let (sink, source) = socket.split();
    let (outbox, sending) = outbox::new();
    let share = caller.connected().share().clone();
    let connection = Connection {
        source,
        outbox,
        unfinished,
        caller,
        permits: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
        introduction: Introduction::default(),
        tasks: JoinSet::new(),
        decoding: JoinSet::new(),
    };
    let mut sending = pin!(sending.run(sink));
    tokio::select! {
        // The peer takes no more answers. This ends the requests under way.
        sent = &mut sending => return sent,
        () = share.scope(connection.run()) => {}
    }
    sending.await
}

struct Connection<'s> {
    source: SplitStream<Socket<'s>>,
    outbox: Outbox,
    unfinished: PartialMessages,
    caller: Arc<DoorCaller>,
    introduction: Introduction,
    /// One place for each request that may be evaluated at once.
    permits: Arc<Semaphore>,
    /// One for each request that is evaluated or waits. They end when this is dropped.
    tasks: JoinSet<()>,
    /// One for each long message that is being decoded.
    decoding: JoinSet<DecodeResult>,
}

/// Why no more requests are read.
enum End {
    /// The peer has closed the connection.
    Gone,
    /// The connection is closed, and the peer receives the reason.
    Close(CloseFrame),
}

impl From<ConnectionEnded> for End {
    fn from(ConnectionEnded: ConnectionEnded) -> Self {
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

    /// Reads a message, or notes that a request has ended. It always reads, so that pings are answered and the end of the
    /// connection is noticed, however much is under way.
    async fn step(&mut self) -> Result<(), End> {
        tokio::select! {
            biased;
            Some(ended) = self.tasks.join_next() => check(ended),
            Some(decoded) = self.decoding.join_next() => {
                let decoded = decoded.map_err(|_| unanswered())?;
                self.decoded(decoded).await
            }
            message = self.source.next() => {
                let message = match message {
                    Some(Ok(message)) => message,
                    Some(Err(error)) => return Err(self.broken(error).await),
                    None => return Err(End::Gone),
                };
                let Some(DecodingTask { is_long, decoded }) = incoming::decoding(message, &self.unfinished) else {
                    return Ok(());
                };
                if !is_long {
                    return self.decoded(decoded.await).await;
                }
                self.decoding.spawn(decoded);
                Ok(())
            }
        }
    }

    /// Serves a request, or refuses a message that is none.
    async fn decoded(&mut self, decoded: DecodeResult) -> Result<(), End> {
        let incoming = match decoded {
            Ok(incoming) => incoming,
            Err(refused) => {
                let (refusal, coding) = *refused;
                self.outbox.send(&refusal, coding, None).await?;
                return Ok(());
            }
        };
        if let RequestGoal::Authentication(credentials) = &incoming.wants {
            // An identity changes for the requests that come later only: those under way keep the caller that they have.
            let caller = Arc::make_mut(&mut self.caller);
            let shown = (incoming.id, credentials, incoming.coding);
            for kept in self.introduction.check(shown, caller, &self.outbox).await? {
                self.start(kept).await?;
            }
        } else if self.caller.rights().is_known() {
            self.start(incoming).await?;
        } else {
            self.introduction.keep(incoming, &self.outbox).await?;
        }
        Ok(())
    }

    /// Starts a task for a request, or refuses it if too many wait.
    async fn start(&mut self, incoming: ReceivedRequest) -> Result<(), ConnectionEnded> {
        if UNDER_WAY_MAX + WAITING_MAX <= self.tasks.len() + self.decoding.len() {
            return self.outbox.fail(incoming.id, &too_many(), incoming.coding).await;
        }
        let (caller, permits) = (Arc::clone(&self.caller), Arc::clone(&self.permits));
        self.tasks.spawn(answer::answer(caller, incoming, self.outbox.clone(), permits));
        Ok(())
    }

    /// Waits until the requests under way are answered.
    async fn answer_all(&mut self) -> Result<(), End> {
        while let Some(decoded) = self.decoding.join_next().await {
            self.decoded(decoded.map_err(|_| unanswered())?).await?;
        }
        while let Some(ended) = self.tasks.join_next().await {
            check(ended)?;
        }
        Ok(())
    }

    /// The consequence of an error of the WebSocket. If the connection has to end, the requests under way are answered first.
    async fn broken(&mut self, error: Error) -> End {
        let (code, reason) = match error {
            Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                if self.caller.end().is_cancelled()
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
            Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                (CloseCode::Policy, "slow_request: the request did not arrive in time".to_owned())
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
    ended.map_err(|_| unanswered())
}

fn unanswered() -> End {
    End::Close(close(CloseCode::Error, "internal error: a request could not be answered"))
}

fn close(code: CloseCode, reason: &str) -> CloseFrame {
    let ends = reason.char_indices().map(|(at, char)| at + char.len_utf8());
    let end = ends.take_while(|end| *end <= REASON_BYTES_MAX).last().unwrap_or(0);
    CloseFrame { code, reason: reason[..end].into() }
}
