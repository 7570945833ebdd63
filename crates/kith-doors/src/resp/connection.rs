//! One connection: reads, has commands interpreted, writes. One task, a round at a time.

use super::{
    answer::Answer,
    clients::Connected,
    dialogue::{Dialogue, Flow},
    endpoint::Endpoint,
    round::Round,
    visitor::Visitor,
};
use crate::parting::{LINGER, LINGER_BYTES, STRANGER_LINGER_BYTES, part};
use bytes::{Buf, BytesMut};
use kith_api::QueryError;
use kith_net::{
    Charge,
    server::connections::{self, Reason, STRANGER_MESSAGES_MAX, Seen, UNCHARGED_BYTES, Watch, closed},
};
use kith_wire::resp::{Decoder, Limits, Malformed, Replies};
use std::{io, pin::pin, sync::Arc, task::Poll, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{Instant, Interval, MissedTickBehavior, timeout},
};
use tokio_util::sync::CancellationToken;

/// Commands of one round of a client that nobody knows: each is refused, and that is a line of the audit log.
const STRANGER_ROUND: u64 = 4;
/// What a client is told that nobody knows after so many commands.
const UNKNOWN_FOR_LONG: &str = "NOAUTH too many commands before AUTH: closing the connection";
/// What one read takes at the least.
const READ_BYTES: usize = 16 << 10;
/// Emptied buffers above this size are given back.
const KEPT_BYTES: usize = 1 << 20;
/// Who takes no byte of its replies for so long is hung up on: its round is held in memory. Sooner where memory is short, as all are.
const STALLED: Duration = Duration::from_secs(60);

/// Speaks RESP with `visitor` on `stream` until its peer closes it or breaks the protocol, or `stop`: the round under way is answered then.
///
/// # Errors
/// The stream's.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    connected: Connected,
    place: Arc<connections::Connected>,
    endpoint: Arc<Endpoint>,
    visitor: Visitor,
    stop: CancellationToken,
) -> io::Result<()> {
    let dialogue = Dialogue::new(Arc::clone(&connected.client), visitor);
    let connection = Connection {
        stream,
        connected,
        begun: Begun::new(&place),
        place: Arc::clone(&place),
        endpoint,
        dialogue,
        decoder: Decoder::new(Limits::UNAUTHENTICATED),
        inbox: BytesMut::new(),
        out: Replies::default(),
        unknown: 0,
        sent: 0,
    };
    connection.run(stop).await
}

struct Connection<S> {
    stream: S,
    connected: Connected,
    place: Arc<connections::Connected>,
    begun: Begun,
    endpoint: Arc<Endpoint>,
    dialogue: Dialogue,
    decoder: Decoder,
    inbox: BytesMut,
    out: Replies,
    /// Commands that came since nobody knows the client.
    unknown: u64,
    /// Bytes that were sent so far.
    sent: u64,
}

/// What follows a round.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    /// More has to come.
    Read,
    /// Another round, of what is here already.
    Again,
    Close,
    /// After too many commands of a client that nobody knows.
    Unknown,
    Malformed(Malformed),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn run(mut self, stop: CancellationToken) -> io::Result<()> {
        let stopped = stop.cancelled();
        tokio::pin!(stopped);
        loop {
            let (round, next) = self.take_in();
            self.answer(round).await?;
            match next {
                Next::Again => continue,
                Next::Read => {}
                Next::Close => return self.close().await,
                Next::Unknown => return self.hang_up_on(UNKNOWN_FOR_LONG).await,
                Next::Malformed(malformed) => return self.hang_up(&malformed).await,
            }
            if !self.make_room() {
                return self
                    .hang_up_on("ERR overloaded: requests that are under way take all the memory there is")
                    .await;
            }
            let read = tokio::select! {
                read = self.stream.read_buf(&mut self.inbox) => read?,
                () = self.begun.is_too_slow(), if !self.inbox.is_empty() => {
                    return self.hang_up_on("ERR the command did not come in time").await;
                }
                () = &mut stopped => return self.close().await,
            };
            self.begun.received += read as u64;
            if read == 0 {
                return Ok(());
            }
            self.connected.asks();
        }
    }

    /// The commands that are here, interpreted.
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
        self.begun.taken += u64::from(0 < taken);
        if self.dialogue.limits() == Limits::USUAL {
            self.place.is_known_now();
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
        // Which commands arrive together is not their sender's choice: each has all the room for itself.
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

    /// Charges answers, which are kept until the last of them is sent. They become errors if there is no memory for them.
    fn charge(&self, answers: &mut [Result<Answer, QueryError>]) -> Charge {
        let bytes = answers.iter().flatten().map(Answer::bytes).sum();
        self.place.charge_reply(bytes).unwrap_or_else(|refused| {
            let refused = QueryError::from_status(&refused);
            answers
                .iter_mut()
                .filter(|answer| answer.is_ok())
                .for_each(|answer| *answer = Err(refused.clone()));
            self.place.no_reply()
        })
    }

    /// Sends what is written.
    async fn send(&mut self) -> io::Result<()> {
        let mut left = self.out.bytes();
        while !left.is_empty() {
            let written = in_time(&self.endpoint, self.stream.write(left)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left = &left[written..];
            self.sent += written as u64;
            self.place.has_taken(self.sent);
        }
        // TLS keeps what the socket did not take: a little.
        in_time(&self.endpoint, self.stream.flush()).await?;
        self.out.clear(KEPT_BYTES);
        Ok(())
    }

    /// Says what is wrong, and closes: nothing after it can be understood.
    async fn hang_up(&mut self, malformed: &Malformed) -> io::Result<()> {
        self.endpoint.note_malformed(malformed);
        self.hang_up_on(&format!("ERR {malformed}")).await
    }

    async fn hang_up_on(&mut self, why: &str) -> io::Result<()> {
        self.out.error(why);
        self.send().await?;
        let most = if self.place.is_known() { LINGER_BYTES } else { STRANGER_LINGER_BYTES };
        part(&mut self.stream, most).await
    }

    /// The end, in order: over TLS that is said, and nobody waits for somebody who does not hear it.
    async fn close(mut self) -> io::Result<()> {
        timeout(LINGER, self.stream.shutdown()).await.unwrap_or(Ok(()))
    }

    /// Room for a read: more for a command that is long already, so that it is not read in thousands of pieces. `false`: there is no
    /// memory for it.
    #[must_use]
    fn make_room(&mut self) -> bool {
        if self.inbox.is_empty() {
            self.begun.charge = None;
            if KEPT_BYTES < self.inbox.capacity() {
                self.inbox = BytesMut::new();
            }
        }
        if self.inbox.capacity() - self.inbox.len() < READ_BYTES / 2 {
            self.inbox.reserve(READ_BYTES.max(self.inbox.len().min(KEPT_BYTES)));
        }
        let is_large = UNCHARGED_BYTES < self.inbox.len();
        !is_large || self.begun.pay(&self.place, self.inbox.capacity())
    }
}

/// The command that has begun, and is not whole.
struct Begun {
    charge: Option<Charge>,
    watch: Watch,
    look: Interval,
    received: u64,
    taken: u64,
}

impl Begun {
    fn new(place: &connections::Connected) -> Self {
        let (watch, every) = place.watch();
        let mut look = tokio::time::interval_at(Instant::now() + every, every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { charge: None, watch, look, received: 0, taken: 0 }
    }

    #[must_use]
    fn pay(&mut self, place: &connections::Connected, bytes: usize) -> bool {
        self.charge.get_or_insert_with(|| place.charge()).grow_to(bytes)
    }

    /// Ready if it should have come by now.
    async fn is_too_slow(&mut self) {
        loop {
            self.look.tick().await;
            let (messages, received) = (self.taken, self.received);
            let seen = Seen { messages, received, has_begun: true, ..Seen::default() };
            if self.watch.look(seen) == Some(Reason::SlowRequest) {
                return closed(Reason::SlowRequest.code().name());
            }
        }
    }
}

/// A step of writing, for which nobody waits for ever. Nearly always it is done at once, and needs no timer.
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
