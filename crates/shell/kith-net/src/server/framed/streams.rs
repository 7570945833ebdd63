//! Replies in several messages, which are sent as their receivers grant credit. A receiver that stops reading occupies only
//! its own entry here, and the bytes for which it granted credit (`docs/design/0010-streaming.md`).

use super::EncodedMessage;
use crate::InFlight;
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use kith_wire::{
    Message,
    frame::{CREDIT_BYTES, Flags, Header},
    too_slow,
};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// A piece of a reply.
#[derive(Debug)]
pub struct Piece {
    /// The encoded message, or a part of it.
    pub body: EncodedMessage,
    /// The message or reply that ends with this piece.
    pub end: End,
}

/// The end of a message or reply that a piece marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing: the message continues in the next piece.
    Part,
    /// The message; the reply continues.
    Message,
    /// The reply.
    Reply,
}

impl End {
    /// The end of the last message of a reply, or of another message.
    pub fn of_message(is_last: bool) -> Self {
        if is_last { End::Reply } else { End::Message }
    }

    pub(super) fn flags(self) -> Flags {
        match self {
            End::Part => Flags::PART,
            End::Message => Flags::default(),
            End::Reply => Flags::LAST,
        }
    }
}

impl Piece {
    /// Encodes a message as one piece.
    pub fn of(message: &impl Message, end: End) -> Self {
        Self { body: [message.encode_to_vec().into(), Bytes::new(), Bytes::new()], end }
    }

    /// The length of the body.
    pub(super) fn bytes(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }
}

/// The pieces of a reply. Each is computed when it may be sent. The last piece or an error ends the stream.
pub type Pieces = BoxStream<'static, Result<Piece, Status>>;

/// The replies of one connection that are sent piece by piece.
#[derive(Default)]
pub(super) struct Streams {
    /// The next piece of each reply. Replies that wait for credit are not polled.
    steps: InFlight<SendOutcome>,
    /// The replies by request id.
    open: HashMap<u64, Open>,
}

/// The state of a reply under way.
struct Open {
    credit: Arc<Credit>,
    cancel: CancellationToken,
}

/// A reply under way.
struct Sending {
    header: Header,
    pieces: Pieces,
    credit: Arc<Credit>,
    cancel: CancellationToken,
    deadline: Option<Instant>,
}

/// A reply and its next piece; no piece if the reply was cancelled.
type SendOutcome = (Sending, Option<Result<Piece, Status>>);

/// How many more bytes the receiver accepts. Only the connection's task uses it.
#[derive(Debug)]
struct Credit {
    left: AtomicI64,
    more: Notify,
}

impl Credit {
    /// Waits until there is credit.
    async fn some(&self) {
        while self.left.load(Ordering::Relaxed) <= 0 {
            self.more.notified().await;
        }
    }

    fn add(&self, bytes: i64) {
        let left = self.left.load(Ordering::Relaxed).saturating_add(bytes);
        self.left.store(left, Ordering::Relaxed);
        self.more.notify_one();
    }
}

impl Streams {
    /// The number of replies under way.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether the reply to this request is under way.
    pub fn has(&self, id: u64) -> bool {
        self.open.contains_key(&id)
    }

    /// Starts a reply. Without the flag `CREDITED` in the request, it has unlimited credit.
    pub fn start(&mut self, header: Header, pieces: Pieces) {
        let left = if header.flags.has(Flags::CREDITED) { CREDIT_BYTES.into() } else { i64::MAX };
        let credit = Arc::new(Credit { left: AtomicI64::new(left), more: Notify::new() });
        let cancel = CancellationToken::new();
        let micros = Duration::from_micros(header.deadline_us.into());
        let deadline = (0 < header.deadline_us).then(|| Instant::now() + micros);
        let open = Open { credit: Arc::clone(&credit), cancel: cancel.clone() };
        self.open.insert(header.id, open);
        self.steps.push(step(Sending { header, pieces, credit, cancel, deadline }));
    }

    /// Adds credit to a reply. Ids of replies that have ended are ignored.
    pub fn credit(&self, id: u64, bytes: u32) {
        if let Some(open) = self.open.get(&id) {
            open.credit.add(bytes.into());
        }
    }

    /// Drops a reply.
    pub fn cancel(&mut self, id: u64) {
        if let Some(open) = self.open.remove(&id) {
            open.cancel.cancel();
        }
    }

    /// Returns the next piece of any reply, or the error that ends the reply; pending while no piece may be sent.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<(Header, Result<Piece, Status>)> {
        loop {
            let (sending, piece) = std::task::ready!(self.steps.poll_next(cx));
            let header = sending.header;
            let Some(piece) = piece.filter(|_| self.open.contains_key(&header.id)) else { continue };
            match &piece {
                Ok(piece) if piece.end != End::Reply => {
                    sending.credit.add(-i64::try_from(piece.bytes()).unwrap_or(i64::MAX));
                    self.steps.push(step(sending));
                }
                Ok(_) | Err(_) => drop(self.open.remove(&header.id)),
            }
            return Poll::Ready((header, piece));
        }
    }
}

async fn step(mut sending: Sending) -> SendOutcome {
    let Sending { pieces, credit, cancel, deadline, .. } = &mut sending;
    let next = async {
        credit.some().await;
        pieces.next().await.unwrap_or_else(|| Err(Status::internal("a reply ended before its last piece")))
    };
    let in_time = async {
        match deadline {
            Some(deadline) => {
                tokio::time::timeout_at(*deadline, next).await.unwrap_or_else(|_| Err(too_slow()))
            }
            None => next.await,
        }
    };
    let piece = cancel.run_until_cancelled(in_time).await;
    (sending, piece)
}
