//! Replies in several messages, sent as their receivers give credit: one that stops reading keeps nothing but its own
//! place here, and what it gave credit for (`docs/design/0010-streaming.md`).

use super::Encoded;
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

/// One message of a reply in several.
#[derive(Debug)]
pub struct Piece {
    /// The message.
    pub body: Encoded,
    /// What ends with it.
    pub end: End,
}

/// What ends with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing: the message goes on.
    Part,
    /// Its message.
    Message,
    /// The reply.
    Reply,
}

impl End {
    /// Of the last message of a reply, or of another.
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
    /// A message as a piece.
    pub fn of(message: &impl Message, end: End) -> Self {
        Self { body: [message.encode_to_vec().into(), Bytes::new(), Bytes::new()], end }
    }

    /// Of the message.
    pub(super) fn bytes(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }
}

/// The pieces of a reply, each made when it may be sent. An error ends it, and so does the last piece.
pub type Pieces = BoxStream<'static, Result<Piece, Status>>;

/// The replies of one connection that are sent piece by piece.
#[derive(Default)]
pub(super) struct Streams {
    /// The next piece of each; those that wait for credit are not polled.
    steps: InFlight<SendOutcome>,
    /// By request id.
    open: HashMap<u64, Open>,
}

/// What the connection holds of a reply under way.
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

/// What came of it: nothing if it was cancelled.
type SendOutcome = (Sending, Option<Result<Piece, Status>>);

/// Bytes that the receiver takes beyond those that are on their way; used by the connection's task alone.
#[derive(Debug)]
struct Credit {
    left: AtomicI64,
    more: Notify,
}

impl Credit {
    /// Ready while there is some.
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
    /// How many there are.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether the reply to this request is among them.
    pub fn has(&self, id: u64) -> bool {
        self.open.contains_key(&id)
    }

    /// Takes what a request is answered with.
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

    /// Its receiver takes so many bytes more; without effect on one that is over.
    pub fn credit(&self, id: u64, bytes: u32) {
        if let Some(open) = self.open.get(&id) {
            open.credit.add(bytes.into());
        }
    }

    /// Drops one that nobody wants any more.
    pub fn cancel(&mut self, id: u64) {
        if let Some(open) = self.open.remove(&id) {
            open.cancel.cancel();
        }
    }

    /// The next piece of any of them, or the error that ends it; pending while there is none that may be sent.
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
