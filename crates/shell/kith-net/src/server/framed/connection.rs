//! One framed connection. A single task reads, runs requests, and writes answers, so that with one request in flight no
//! other task is woken.

use super::{
    FrameReply, FrameService, expands,
    inbox::{Inbox, NextFrame},
    outbox::Outbox,
    refusals::{status_of, too_long_for_a_stranger, too_many_of_a_stranger},
    running::{RequestResult, RunningRequests},
    streams::Streams,
    unsupported_frame,
};
use crate::{
    Charge,
    server::connections::{
        ActivitySample, Lookout, OpenConnection, Reason, STRANGER_MESSAGES_MAX, farewell, no_memory,
    },
};
use kith_types::ErrorCode;
use kith_wire::{
    REQUEST_BYTES_MAX,
    frame::{Flags, Frame, FrameError, Header, Op, PREFACE_BYTES, Preface},
};
use metrics::Counter;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

/// How many requests of one connection may be under way; further ones stay unread. A router accepts as many in all, so that
/// it is the process that answers `overloaded`, and not a connection that falls silent.
const RUNNING_MAX: usize = 8_192;
/// Short replies that wait for the peer are charged once they exceed this many bytes together.
const UNCHARGED_UNSENT_BYTES: usize = 64 << 10;
/// A peer that has begun its preface must complete it within this time, or it is disconnected.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stopping process waits for a connection's requests to end and for its peer to read the replies.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves frames on `stream`, which begins with a preface. Ends when the peer closes the connection or violates the
/// protocol, or when `stop` is cancelled and its requests have ended.
///
/// # Errors
/// Errors of the socket; `TimedOut` if the peer was disconnected early (see [`OpenConnection::unless_strange`]).
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    service: Arc<dyn FrameService>,
    is_local: bool,
    connected: Arc<OpenConnection>,
    stop: CancellationToken,
) -> io::Result<()> {
    connected.unless_strange(greet(&mut stream)).await?;
    if is_local {
        // The port has no gate if it has a Unix socket, so nobody needs to authenticate.
        connected.is_known_now();
    }
    let mut connection = Connection {
        stream,
        service,
        is_local,
        inbox: Inbox::new(Arc::clone(&connected)),
        connected: Arc::clone(&connected),
        lookout: Lookout::new(&connected),
        taken: 0,
        outbox: Outbox::default(),
        unsent: connected.no_reply(),
        running: RunningRequests::new(Arc::clone(&connected)),
        streams: Streams::default(),
        end: End::Open(Box::pin(stop.cancelled_owned())),
        is_parting: false,
        frames: metrics::counter!("kith_server_frames_total"),
    };
    connected.unless_strange(std::future::poll_fn(|cx| connection.poll(cx))).await?;
    if connection.is_parting {
        let left = async {
            farewell::leave(&mut connection.stream).await;
            Ok(())
        };
        connected.unless_strange(left).await?;
    }
    Ok(())
}

/// Reads the peer's preface and answers with this side's.
async fn greet(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<()> {
    let mut preface = [0; PREFACE_BYTES];
    tokio::time::timeout(PREFACE_TIMEOUT, stream.read_exact(&mut preface)).await??;
    Preface::decode(preface).map_err(io::Error::other)?;
    stream.write_all(&Preface::OWN.encode()).await?;
    stream.flush().await
}

struct Connection<S> {
    stream: S,
    service: Arc<dyn FrameService>,
    /// Whether the peer runs on this machine, so that it can map memory of this process.
    is_local: bool,
    connected: Arc<OpenConnection>,
    lookout: Lookout,
    inbox: Inbox,
    outbox: Outbox,
    /// The charge for short replies in the outbox.
    unsent: Charge,
    running: RunningRequests,
    streams: Streams,
    end: End,
    /// Whether the peer was sent the reason why the connection closes, and may not have read that yet.
    is_parting: bool,
    /// The number of frames that have arrived so far.
    taken: u64,
    frames: Counter,
}

/// The result of one read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// Bytes arrived, and there may be more.
    Some,
    /// No bytes arrived, or none are wanted now.
    Nothing,
    /// The peer has closed the connection, so nobody waits for answers.
    Eof,
}

/// Whether the connection is open or closing.
enum End {
    /// It reads requests until the process stops.
    Open(Pin<Box<WaitForCancellationFutureOwned>>),
    /// Requests under way may end. It closes after them, at the latest when the timer ends.
    Stopping(Pin<Box<Sleep>>),
    /// It closes when the outbox is sent, at the latest when the timer ends.
    Closing(Pin<Box<Sleep>>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_stop(cx);
        self.poll_look(cx);
        loop {
            let read = self.poll_read(cx)?;
            let answered = self.poll_running(cx) | self.poll_streams(cx);
            let was_full = self.is_full();
            let is_sent = self.outbox.poll_send(&mut self.stream, cx)?.is_ready();
            self.connected.has_taken(self.outbox.given());
            if read == Read::Eof || self.is_over(is_sent, cx) {
                return Poll::Ready(Ok(()));
            }
            // There is room again for unread requests and unsent answers, or for the next frame of a long reply.
            let has_room = is_sent && (was_full || !self.outbox.is_empty());
            // A request that has begun since is checked sooner.
            let is_looked_at = self.inbox.has_begun() && self.poll_look(cx);
            if read != Read::Some && !answered && !has_room && !is_looked_at {
                return Poll::Pending;
            }
        }
    }

    fn poll_stop(&mut self, cx: &mut Context<'_>) {
        if let End::Open(stopped) = &mut self.end
            && stopped.as_mut().poll(cx).is_ready()
        {
            self.end = End::Stopping(Box::pin(sleep(STOP_TIMEOUT)));
        }
    }

    /// Closes the connection if it is idle or its peer is too slow. Returns whether it was time to check that.
    fn poll_look(&mut self, cx: &mut Context<'_>) -> bool {
        let mut is_looked_at = false;
        loop {
            let has_begun = self.may_take() && self.inbox.has_begun();
            if !matches!(self.end, End::Open(_)) || self.lookout.poll_due(cx, has_begun).is_pending() {
                return is_looked_at;
            }
            is_looked_at = true;
            let seen = ActivitySample {
                messages: self.taken,
                received: self.inbox.received,
                sent: self.outbox.sent(),
                has_begun,
                is_unsent: !self.outbox.is_empty(),
                is_under_way: 0 < self.under_way(),
            };
            match self.lookout.look(seen) {
                None => self.inbox.rest(),
                Some(reason) => self.part(reason),
            }
        }
    }

    /// Tells the peer why, and closes the connection.
    fn part(&mut self, reason: Reason) {
        self.close(&status_of(reason));
    }

    /// Whether the connection has ended. `is_sent` says whether the socket has accepted all bytes that the outbox has
    /// encoded.
    fn is_over(&mut self, is_sent: bool, cx: &mut Context<'_>) -> bool {
        let is_sent = is_sent && self.outbox.is_empty();
        let is_idle = is_sent && self.under_way() == 0;
        match &mut self.end {
            End::Open(_) => false,
            End::Stopping(timeout) => is_idle || timeout.as_mut().poll(cx).is_ready(),
            End::Closing(timeout) => is_sent || timeout.as_mut().poll(cx).is_ready(),
        }
    }

    /// Reads once, and takes all whole frames out of the inbox.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> io::Result<Read> {
        if !matches!(self.end, End::Open(_)) {
            return Ok(Read::Nothing);
        }
        // Frames that stayed in the inbox while the outbox was full come first.
        self.take_in(cx);
        if !self.may_take() {
            return Ok(Read::Nothing);
        }
        match self.inbox.poll_read(&mut self.stream, cx)? {
            Poll::Ready(0) => Ok(Read::Eof),
            Poll::Ready(_) => {
                self.take_in(cx);
                Ok(Read::Some)
            }
            Poll::Pending => Ok(Read::Nothing),
        }
    }

    fn may_take(&mut self) -> bool {
        matches!(self.end, End::Open(_)) && !self.is_full() && self.under_way() < RUNNING_MAX
    }

    /// Whether the peer must read before anything more is done for it, because much waits for it or memory is short.
    fn is_full(&mut self) -> bool {
        let bytes = self.outbox.encoded();
        let charged = if bytes <= UNCHARGED_UNSENT_BYTES { 0 } else { bytes };
        self.unsent.shrink_to(charged);
        self.outbox.is_full() || !self.unsent.grow_to(charged)
    }

    fn under_way(&self) -> usize {
        self.running.len() + self.streams.len()
    }

    fn take_in(&mut self, cx: &mut Context<'_>) {
        while self.may_take() {
            match self.inbox.next() {
                Ok(NextFrame::Frame(frame)) => {
                    self.frames.increment(1);
                    self.taken += 1;
                    self.on_frame(frame, cx);
                    if STRANGER_MESSAGES_MAX <= self.taken && !self.connected.is_known() {
                        self.close(&too_many_of_a_stranger());
                    }
                }
                Ok(NextFrame::Refused(header)) => self.outbox.error(&header, &no_memory()),
                Ok(NextFrame::More) => return,
                Err(FrameError::TooLong { bytes, .. })
                    if !self.connected.is_known() && bytes <= REQUEST_BYTES_MAX as u64 =>
                {
                    self.close(&too_long_for_a_stranger(bytes));
                }
                Err(error) => self.malformed(&error.to_string()),
            }
        }
    }

    fn on_frame(&mut self, frame: Frame, cx: &mut Context<'_>) {
        let header = frame.header;
        match Op::from_number(header.op) {
            Some(Op::Cancel) => {
                self.running.cancel(header.id);
                self.streams.cancel(header.id);
                self.outbox.cancel(header.id);
            }
            Some(Op::Alive) => self.outbox.acknowledge(&header),
            Some(Op::Identify) => self.identify(&header, &frame.body),
            Some(Op::Credit) => match frame.credit() {
                Some(bytes) => self.streams.credit(header.id, bytes),
                None => self.malformed("a credit frame without a number"),
            },
            Some(Op::Share) if self.is_local => self.outbox.share(&header),
            Some(Op::Share) | None => self.outbox.error(&header, &unsupported_frame(&frame)),
            Some(Op::GiveBack) => {
                if !self.outbox.take_back(&frame.body) {
                    self.malformed("a peer gives back slots that it does not have");
                }
            }
            Some(_) if header.id == 0 => {
                self.malformed("a request with id 0");
            }
            Some(_) if self.running.has(header.id) || self.streams.has(header.id) => {
                self.malformed("a request with the id of one that is under way");
            }
            Some(_) if !header.flags.has(Flags::LAST) => {
                self.malformed("a request in pieces");
            }
            Some(op) => self.start(op, frame, cx),
        }
    }

    /// Authenticates the peer by its token.
    fn identify(&mut self, header: &Header, token: &[u8]) {
        match Arc::clone(&self.service).identify(token) {
            Ok(service) => {
                self.connected.is_known_now();
                self.service = service.unwrap_or_else(|| Arc::clone(&self.service));
                self.outbox.acknowledge(header);
            }
            Err(status) => {
                // A peer with an unknown token counts as unauthenticated from now on, whatever certificate it has.
                if let Some(nobody) = Arc::clone(&self.service).of_nobody() {
                    self.service = nobody;
                }
                self.outbox.error(header, &status);
            }
        }
    }

    /// Starts a request.
    fn start(&mut self, op: Op, frame: Frame, cx: &mut Context<'_>) {
        let header = frame.header;
        if let Err(status) = expands::check(op, &frame.body) {
            return self.outbox.error(&header, &status);
        }
        let service = Arc::clone(&self.service);
        let call = match (header.flags.has(Flags::CREDITED), self.under_way()) {
            (true, _) => service.call_credited(op, frame.body),
            (false, 0) => service.call_alone(op, frame.body),
            (false, _) => service.call(op, frame.body),
        };
        if let Some(answer) = self.running.start(header, call, cx) {
            self.answer(&header, answer);
        }
    }

    fn answer(&mut self, header: &Header, answer: RequestResult) {
        match answer {
            Ok((FrameReply::Pieces(pieces), _)) => self.streams.start(*header, pieces),
            answer => self.outbox.answer(header, answer),
        }
    }

    /// Tells the peer that it violated the protocol, and closes the connection: nothing after the error can be understood.
    fn malformed(&mut self, what: &str) {
        metrics::counter!("kith_server_malformed_connections_total").increment(1);
        tracing::warn!(what, "closing a framed connection whose peer violates the protocol");
        let help = "use a client of this release";
        self.close(&kith_wire::status(ErrorCode::BadRequest, what, help));
    }

    /// Sends `status` and closes the connection: requests under way are dropped, and nothing more is read.
    fn close(&mut self, status: &Status) {
        self.outbox.error(&Header::of_connection(), status);
        self.is_parting = true;
        self.running.clear();
        self.streams = Streams::default();
        self.end = End::Closing(Box::pin(sleep(STOP_TIMEOUT)));
    }

    /// Lets requests go on, and passes answers to the outbox as long as the peer reads the ones before. Returns whether any
    /// were passed.
    fn poll_running(&mut self, cx: &mut Context<'_>) -> bool {
        self.running.poll(cx);
        let mut answered = false;
        while !self.is_full()
            && let Some((header, answer)) = self.running.take_answer()
        {
            self.answer(&header, answer);
            answered = true;
        }
        answered
    }

    /// Passes one piece of a reply with credit to the outbox, unless the peer does not read the ones before. It is only
    /// one, so that a piece is sent while it is in the CPU cache, before the next is computed.
    fn poll_streams(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.is_full()
            && let Poll::Ready((header, piece)) = self.streams.poll_next(cx)
        {
            let charged = piece.and_then(|piece| {
                let charge = self.connected.charge_reply(piece.bytes())?;
                Ok((piece, charge))
            });
            if charged.is_err() {
                self.streams.cancel(header.id);
            }
            self.outbox.piece(&header, charged);
            return true;
        }
        false
    }
}
