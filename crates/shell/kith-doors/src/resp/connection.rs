//! One connection: a task that reads commands, has them interpreted, and writes their replies, one round at a time.

use super::{
    answer::Answer,
    clients::ListedConnection,
    dialogue::{Dialogue, Flow},
    endpoint::Endpoint,
    resp_rights::RespRights,
    round::Round,
    tracking::{self, KnownVersions},
};
use crate::parting::{LINGER, LINGER_BYTES, STRANGER_LINGER_BYTES, part};
use bytes::{Buf, BytesMut};
use kith_net::{
    Charge,
    server::connections::{self, Arrival, STRANGER_MESSAGES_MAX, UNCHARGED_BYTES},
};
use kith_query::QueryError;
use kith_wire::resp::{Decoder, Limits, MalformedCommand, Replies};
use std::{
    io,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The most commands of one round before the client has authenticated: each of them is refused with a line in the audit log.
const STRANGER_ROUND: u64 = 4;
/// The reply to a client that sends too many commands before it authenticates.
const UNKNOWN_FOR_LONG: &str = "NOAUTH too many commands before AUTH: closing the connection";
/// The least room that a read has.
const READ_BYTES: usize = 16 << 10;
/// Empty buffers larger than this are freed.
const KEPT_BYTES: usize = 1 << 20;
/// A client that takes no byte of its replies for this long is disconnected, because its round is held in memory. Where
/// memory is short, it is disconnected sooner, like every slow client.
const STALLED: Duration = Duration::from_secs(60);

/// Serves RESP to `caller` on `stream` until the peer closes it or breaks the protocol, or until `stop` is cancelled; the
/// round under way is answered first.
///
/// # Errors
/// Errors of the stream; `TimedOut` if the client does not read its replies.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    listed: ListedConnection,
    connected: Arc<connections::OpenConnection>,
    endpoint: Arc<Endpoint>,
    rights: RespRights,
    stop: CancellationToken,
) -> io::Result<()> {
    let dialogue = Dialogue::new(Arc::clone(&listed.client), rights);
    let connection = Connection {
        stream,
        listed,
        arrival: Arrival::new(&connected),
        connected: Arc::clone(&connected),
        endpoint,
        dialogue,
        decoder: Decoder::new(Limits::UNAUTHENTICATED),
        inbox: BytesMut::new(),
        out: Replies::default(),
        unknown: 0,
        sent: 0,
        known: None,
    };
    connection.run(stop).await
}

struct Connection<S> {
    stream: S,
    listed: ListedConnection,
    connected: Arc<connections::OpenConnection>,
    /// The command that has begun to arrive.
    arrival: Arrival,
    endpoint: Arc<Endpoint>,
    dialogue: Dialogue,
    decoder: Decoder,
    inbox: BytesMut,
    out: Replies,
    /// The number of commands that came before the client authenticated.
    unknown: u64,
    /// The number of bytes sent so far.
    sent: u64,
    /// If the client keeps values: the versions that it knows, and when to look at them again.
    known: Option<(KnownVersions, Instant)>,
}

/// The action of the connection after a round.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    /// Reads more from the socket.
    Read,
    /// Starts another round with what has been read already.
    Again,
    /// Closes the connection.
    Close,
    /// Closes the connection of a client that has sent too many commands without authenticating.
    Unknown,
    /// Closes the connection of a client that broke the protocol.
    Malformed(MalformedCommand),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn run(mut self, stop: CancellationToken) -> io::Result<()> {
        let stopped = stop.cancelled();
        tokio::pin!(stopped);
        loop {
            let (round, next) = self.take_in();
            self.answer(round).await?;
            if next == Next::Again {
                self.look_at_versions().await?;
            }
            match next {
                Next::Again => continue,
                Next::Read => {}
                Next::Close => return self.close().await,
                Next::Unknown => return self.hang_up_on(UNKNOWN_FOR_LONG).await,
                Next::Malformed(malformed) => return self.hang_up(&malformed).await,
            }
            if !self.make_room() {
                return self
                    .hang_up_on("ERR overloaded: requests under way use all the memory that this process has for them")
                    .await;
            }
            let keeps_values = self.look_at_versions().await?;
            let read = tokio::select! {
                read = self.stream.read_buf(&mut self.inbox) => read?,
                () = tokio::time::sleep(tracking::LOOK), if keeps_values => continue,
                () = self.arrival.is_too_slow(), if !self.inbox.is_empty() => {
                    return self.hang_up_on("ERR the command did not arrive in time").await;
                }
                () = &mut stopped => return self.close().await,
            };
            self.arrival.received(read);
            if read == 0 {
                return Ok(());
            }
            self.listed.asks();
        }
    }

    /// Tells a client that keeps values to forget them, if they may have changed. Returns whether the client keeps values.
    async fn look_at_versions(&mut self) -> io::Result<bool> {
        if !self.dialogue.keeps_values() {
            self.known = None;
            return Ok(false);
        }
        let now = Instant::now();
        let (known, due) = self.known.get_or_insert_with(|| (KnownVersions::default(), now));
        if *due <= now {
            *due = now + tracking::LOOK;
            if known.look(self.endpoint.stores()) {
                tracking::forget_all(&mut self.out);
                self.send().await?;
            }
        }
        Ok(true)
    }

    /// Interprets the commands that have been read, up to the end of the round.
    fn take_in(&mut self) -> (Round, Next) {
        let mut round = Round::new(self.dialogue.version());
        self.out.speak(self.dialogue.version());
        let limits = self.dialogue.limits();
        self.decoder.limit(limits);
        let is_unknown = limits != Limits::USUAL;
        if !is_unknown {
            self.unknown = 0;
        }
        let (mut taken, mut commands) = (0, 0);
        let next = loop {
            if is_unknown && STRANGER_MESSAGES_MAX <= self.unknown {
                break Next::Unknown;
            }
            if is_unknown && STRANGER_ROUND <= commands {
                break Next::Again;
            }
            let command = match self.decoder.decode(&self.inbox[taken..]) {
                Ok(Some(command)) => command,
                Ok(None) => break Next::Read,
                Err(malformed) => break Next::Malformed(malformed),
            };
            if !round.has_room_for(&command) {
                break Next::Again;
            }
            let flow = self.dialogue.interpret(&command, &mut round, &*self.endpoint);
            taken += self.decoder.take();
            commands += 1;
            self.unknown += u64::from(is_unknown);
            match flow {
                Flow::Next => {}
                Flow::Round => break Next::Again,
                Flow::Close => break Next::Close,
            }
        };
        self.inbox.advance(taken);
        if 0 < taken {
            self.arrival.finished();
        }
        if self.dialogue.limits() == Limits::USUAL {
            self.connected.is_known_now();
        }
        (round, next)
    }

    async fn answer(&mut self, mut round: Round) -> io::Result<()> {
        if round.is_empty() {
            return Ok(());
        }
        let answers = self.endpoint.read(round.reads()).await;
        if !round.is_too_large(&answers) {
            return self.reply(round, answers).await;
        }
        drop(answers);
        self.endpoint.note_errors(round.errors());
        // A client does not choose which of its commands arrive together, so each may have an answer of the full size.
        for mut alone in round.one_by_one() {
            let answers = self.endpoint.read(alone.reads()).await;
            self.reply(alone, answers).await?;
        }
        Ok(())
    }

    async fn reply(
        &mut self,
        mut round: Round,
        mut answers: Vec<Result<Answer, QueryError>>,
    ) -> io::Result<()> {
        let _charge = self.charge(&mut answers);
        loop {
            let is_all = round.encode(&answers, &mut self.out);
            self.send().await?;
            if is_all {
                self.endpoint.note_errors(round.errors());
                return Ok(());
            }
        }
    }

    /// Charges the memory of answers until the last of them is sent. If there is none left, they become errors.
    fn charge(&self, answers: &mut [Result<Answer, QueryError>]) -> Charge {
        let bytes = answers.iter().flatten().map(Answer::bytes).sum();
        self.connected.charge_reply(bytes).unwrap_or_else(|refused| {
            let refused = QueryError::from_status(&refused);
            answers
                .iter_mut()
                .filter(|answer| answer.is_ok())
                .for_each(|answer| *answer = Err(refused.clone()));
            self.connected.no_reply()
        })
    }

    /// Sends the encoded replies.
    async fn send(&mut self) -> io::Result<()> {
        let mut left = self.out.bytes();
        while !left.is_empty() {
            let written = in_time(&self.endpoint, self.stream.write(left)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left = &left[written..];
            self.sent += written as u64;
            self.connected.has_taken(self.sent);
        }
        // TLS buffers the little that the socket did not take.
        in_time(&self.endpoint, self.stream.flush()).await?;
        self.out.clear(KEPT_BYTES);
        Ok(())
    }

    /// Replies with what is wrong, and closes the connection: nothing after it can be decoded.
    async fn hang_up(&mut self, malformed: &MalformedCommand) -> io::Result<()> {
        self.endpoint.note_malformed(malformed);
        self.hang_up_on(&format!("ERR {malformed}")).await
    }

    async fn hang_up_on(&mut self, why: &str) -> io::Result<()> {
        self.out.error(why);
        self.send().await?;
        let most = if self.connected.is_known() { LINGER_BYTES } else { STRANGER_LINGER_BYTES };
        part(&mut self.stream, most).await
    }

    /// Closes the connection in an orderly way. Over TLS it notifies the peer, for which it waits at most [`LINGER`].
    async fn close(mut self) -> io::Result<()> {
        timeout(LINGER, self.stream.shutdown()).await.unwrap_or(Ok(()))
    }

    /// Makes room for a read. A command that is already long gets more room, so that it is not read in thousands of pieces.
    /// Returns `false` if there is no memory for it.
    #[must_use]
    fn make_room(&mut self) -> bool {
        if self.inbox.is_empty() {
            self.arrival.refund();
            if KEPT_BYTES < self.inbox.capacity() {
                self.inbox = BytesMut::new();
            }
        }
        if self.inbox.capacity() - self.inbox.len() < READ_BYTES / 2 {
            self.inbox.reserve(READ_BYTES.max(self.inbox.len().min(KEPT_BYTES)));
        }
        let is_large = UNCHARGED_BYTES < self.inbox.len();
        !is_large || self.arrival.pay(self.inbox.capacity())
    }
}

/// Waits for a write, but not for longer than [`STALLED`]. Nearly every write is done at once, and needs no timer.
async fn in_time<T>(endpoint: &Endpoint, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let mut step = pin!(step);
    if let Poll::Ready(done) = futures::poll!(step.as_mut()) {
        return done;
    }
    timeout(STALLED, step).await.unwrap_or_else(|_| {
        endpoint.note_stalled();
        Err(io::ErrorKind::TimedOut.into())
    })
}
