//! Tests of a connection with replies whose bytes arrive in all kinds of pieces.

use super::{
    call::Call,
    connection::Connection,
    parts::Parts,
    reader,
    shared::{ReplyMemory, SharedReplies},
    socket::Socket,
};
use crate::Budget;
use bytes::{Bytes, BytesMut};
use futures::{FutureExt, StreamExt};
use kith_wire::{
    MESSAGE_BYTES_MAX, Rope,
    frame::{self, Flags, HEADER_BYTES, Header, Op},
    v1,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::sync::Arc;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};
use tonic::{Code, Status};

/// A reply as the peer sends it, and the messages that its reader must receive.
#[derive(Clone, Debug)]
struct Planned {
    messages: Vec<Bytes>,
    error: Option<Status>,
    frames: Vec<Bytes>,
}

impl Planned {
    /// Draws the reply to request `id`: a few short and long messages, whole or in parts, some of them in shared memory,
    /// and perhaps an error at the end.
    fn draw(id: u64, memory: &mut ReplyMemory, rng: &mut StdRng) -> Self {
        let count = rng.random_range(1..4);
        let fails = rng.random_range(0..4) == 0;
        let (mut messages, mut frames) = (Vec::new(), Vec::new());
        for index in 0..count {
            let long = [40, 3_000, 70_000, 400_000][rng.random_range(0..4)];
            let bytes = rng.random_range(0..long);
            let mut message = vec![0; bytes];
            rng.fill(&mut message[..]);
            let message = Bytes::from(message);
            let part = rng.random_range(1.max(bytes / 9)..=bytes.max(1));
            let parts: Vec<&[u8]> = if bytes == 0 { vec![&[]] } else { message.chunks(part).collect() };
            for (number, part) in parts.iter().enumerate() {
                let flags = match (number + 1 < parts.len(), index + 1 < count || fails) {
                    (true, _) => Flags::PART,
                    (false, true) => Flags(0),
                    (false, false) => Flags::LAST,
                };
                let slot = match rng.random_range(0..3) {
                    0 => memory.put(&[message.slice_ref(part)]),
                    _ => None,
                };
                frames.push(match slot {
                    Some(slot) => framed(id, flags.with(Flags::SHARED), &slot.encode()),
                    None => framed(id, flags, part),
                });
            }
            messages.push(message);
        }
        let error = fails.then(|| {
            // A message that is never completed.
            frames.push(framed(id, Flags::PART, &[7; 40_000]));
            let status = Status::new(Code::Aborted, "no more");
            let mut frame = BytesMut::new();
            Header::request(id, Op::Evaluate).encode_error(&status, &mut frame);
            frames.push(frame.freeze());
            status
        });
        Self { messages, error, frames }
    }

    fn check(&self, seen: Result<Vec<Rope>, Status>) {
        match (&self.error, seen) {
            (None, Ok(messages)) => {
                assert!(messages.into_iter().map(Rope::into_bytes).eq(self.messages.clone()))
            }
            (Some(error), Err(seen)) => {
                assert_eq!((seen.code(), seen.message()), (error.code(), error.message()))
            }
            (error, seen) => panic!("{error:?}: {seen:?}"),
        }
    }
}

fn framed(id: u64, flags: Flags, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    Header { flags, ..Header::request(id, Op::Evaluate) }.encode_bytes(body, &mut frame).unwrap();
    frame.freeze()
}

/// Returns a connection and the peer's end of it.
fn connected(shared: Option<&Arc<SharedReplies>>) -> (Arc<Connection>, UnixStream) {
    connected_within(shared, None)
}

/// Like `connected`, with a budget for replies.
fn connected_within(
    shared: Option<&Arc<SharedReplies>>,
    replies: Option<Arc<Budget>>,
) -> (Arc<Connection>, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (reader::start(Socket::Right(near), None, shared.cloned(), replies), far)
}

fn asked(connection: &Arc<Connection>) -> Call {
    Call::send(connection, Op::Evaluate, 0, &v1::PingRequest::default()).unwrap()
}

/// A caller that waits for a reply.
enum Waiter {
    Whole(Call),
    InParts(Parts),
}

/// Merges the frames of all replies in a random order that keeps the order within each reply.
fn shuffled(plans: &[Planned], rng: &mut StdRng) -> Vec<u8> {
    let mut rows: Vec<_> = plans.iter().map(|plan| plan.frames.iter()).collect();
    let mut sent = Vec::new();
    while !rows.is_empty() {
        let row = rng.random_range(0..rows.len());
        match rows[row].next() {
            Some(frame) => sent.extend_from_slice(frame),
            None => drop(rows.remove(row)),
        }
    }
    sent
}

#[tokio::test]
async fn replies_are_whole_however_their_bytes_come_and_whoever_gives_up() {
    for seed in 0..100 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut memory = ReplyMemory::new().unwrap();
        let shared = SharedReplies::open(std::process::id(), memory.offer()).unwrap();
        let budget = Budget::new(1 << 30);
        let (connection, mut far) = connected_within(Some(&shared), Some(Arc::clone(&budget)));
        let count = rng.random_range(1..6);
        let plans: Vec<Planned> = (1..=count).map(|id| Planned::draw(id, &mut memory, &mut rng)).collect();
        let mut waiting: Vec<Option<Waiter>> = plans
            .iter()
            .map(|_| match rng.random_range(0..3) {
                0 => {
                    let sent = Parts::send(&connection, Op::Evaluate, 0, &v1::PingRequest::default());
                    Some(Waiter::InParts(sent.unwrap()))
                }
                _ => Some(Waiter::Whole(asked(&connection))),
            })
            .collect();
        let sent = shuffled(&plans, &mut rng);
        let given_up_after = rng.random_range(0..=sent.len());
        let mut at = 0;
        while at < sent.len() {
            let most = [500, 5_000, 200_000][rng.random_range(0..3)];
            let bytes = rng.random_range(1..=most).min(sent.len() - at);
            far.write_all(&sent[at..at + bytes]).await.unwrap();
            tokio::task::yield_now().await;
            if (at..at + bytes).contains(&given_up_after) {
                let one = rng.random_range(0..waiting.len());
                waiting[one] = None;
            }
            at += bytes;
        }
        for (plan, asked) in plans.iter().zip(waiting) {
            match asked {
                None => {}
                Some(Waiter::Whole(call)) => plan.check(call.await),
                Some(Waiter::InParts(parts)) => {
                    let seen: Vec<_> = parts.collect().await;
                    let messages = seen.iter().take(plan.messages.len()).cloned();
                    assert!(
                        messages.map(|seen| seen.unwrap().into_bytes()).eq(plan.messages.clone()),
                        "seed {seed}"
                    );
                    plan.check(seen.into_iter().collect());
                }
            }
        }
        assert!(connection.lost().is_none(), "seed {seed}");
        // Whichever callers gave up and whichever replies failed, the server gets all of its memory back.
        let last = asked(&connection);
        far.write_all(&framed(count + 1, Flags::LAST, &[])).await.unwrap();
        last.await.unwrap();
        drop(asked(&connection));
        let (mut came, mut is_asked) = (BytesMut::new(), false);
        while !is_asked {
            far.read_buf(&mut came).await.unwrap();
            while let Some(frame) = frame::decode(&mut came).unwrap() {
                is_asked |= frame.header.id == count + 2;
                if frame.header.op == Op::GiveBack as u8 {
                    let mut slots = frame::decode_slots(&frame.body).unwrap();
                    assert!(slots.all(|slot| memory.take_back(slot)), "seed {seed}");
                }
            }
        }
        assert_eq!((memory.taken(), budget.taken()), (0, 0), "seed {seed}");
    }
}

#[tokio::test]
async fn a_reply_that_does_not_fit_into_the_budget_is_refused_and_cancelled_and_the_connection_goes_on() {
    let budget = Budget::new(200_000);
    let (connection, mut far) = connected_within(None, Some(Arc::clone(&budget)));
    let (first, second, third) = (asked(&connection), asked(&connection), asked(&connection));
    let part = [1; 70_000];
    for (id, flags) in [(1, Flags::PART), (2, Flags::PART), (1, Flags::LAST), (2, Flags::LAST)] {
        far.write_all(&framed(id, flags, &part)).await.unwrap();
    }
    far.write_all(&framed(3, Flags::LAST, &[3; 100])).await.unwrap();
    let error = first.await.unwrap_err();
    assert_eq!(
        (error.code(), kith_wire::detail_of(&error).code.as_str()),
        (Code::ResourceExhausted, "overloaded")
    );
    let whole = second.await.unwrap();
    assert_eq!((whole[0].len(), budget.taken()), (140_000, 140_000), "held as long as somebody has it");
    assert_eq!(third.await.unwrap()[0].len(), 100);
    drop(whole);
    assert_eq!(budget.taken(), 0);
    let (mut came, mut cancelled) = (BytesMut::new(), None);
    while cancelled.is_none() {
        far.read_buf(&mut came).await.unwrap();
        while let Some(frame) = frame::decode(&mut came).unwrap() {
            cancelled = (frame.header.op == Op::Cancel as u8).then_some(frame.header.id).or(cancelled);
        }
    }
    assert_eq!(cancelled, Some(1));
}

#[tokio::test]
async fn a_message_that_claims_too_much_ends_its_connection_before_it_comes() {
    let (connection, mut far) = connected(None);
    let call = asked(&connection);
    far.write_all(&framed(1, Flags::PART, &[1; 100_000])).await.unwrap();
    let mut head = BytesMut::new();
    let flags = Flags::LAST;
    Header { flags, ..Header::request(1, Op::Evaluate) }.encode_head(MESSAGE_BYTES_MAX, &mut head).unwrap();
    assert_eq!(head.len(), HEADER_BYTES);
    far.write_all(&head).await.unwrap();
    let error = call.await.unwrap_err();
    assert!(error.message().contains("longer than the limit"), "{error}");
    assert!(connection.lost().is_some());
}

#[tokio::test]
async fn a_connection_cut_in_the_middle_of_a_part_answers_nobody() {
    let (connection, mut far) = connected(None);
    let (mut first, second) = (asked(&connection), asked(&connection));
    let frame = framed(1, Flags::PART, &[1; 100_000]);
    far.write_all(&frame[..frame.len() - 1]).await.unwrap();
    tokio::task::yield_now().await;
    assert!((&mut first).now_or_never().is_none());
    drop(far);
    for call in [first, second] {
        assert_eq!(call.await.unwrap_err().code(), Code::Unavailable);
    }
    assert!(connection.lost().is_some());
}
