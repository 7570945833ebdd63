//! Tests of long replies in shared memory.

use super::{
    by_hand::Raw,
    slices::{assert_whole, framed, in_slices},
    streams::GATED,
    *,
};
use kith_types::ErrorCode;
use kith_wire::frame::{Flags, Header, Offer, SlotPlace, decode_slots, encode_slots};
use std::{collections::BTreeSet, fs::File, os::unix::fs::FileExt};
use tokio::net::UnixStream;

/// A client over a Unix socket that has accepted the offer of shared memory.
struct Local {
    raw: Raw<UnixStream>,
    offer: Offer,
    memory: File,
    last_id: u64,
}

/// The bytes that have arrived of a reply.
#[derive(Default)]
struct Came {
    body: Vec<u8>,
    slots: Vec<u32>,
    /// The bytes of bodies that came through the socket.
    inline: usize,
}

async fn past_tcp(server: &Server) -> Raw<UnixStream> {
    Raw::greet(UnixStream::connect(format!("\0kith:{}", server.addr)).await.unwrap()).await
}

impl Local {
    async fn connect(server: &Server) -> Self {
        let mut raw = past_tcp(server).await;
        raw.send_bytes(Header::request(1, Op::Share), &[]).await;
        let offer = Offer::decode(&raw.receive().await.unwrap().body).expect("an offer");
        let memory = File::open(format!("/proc/self/fd/{}", offer.descriptor)).unwrap();
        Self { raw, offer, memory, last_id: 1 }
    }

    /// Requests a reply of the node, in shared memory or not.
    async fn ask(&mut self, what: &str, flags: Flags) -> Came {
        self.last_id += 1;
        let header = Header::request(self.last_id, Op::Evaluate);
        self.raw.send(Header { flags: header.flags.with(flags), ..header }, &asking(what, 0)).await;
        let mut came = Came::default();
        loop {
            let frame = self.raw.receive_frame().await.unwrap();
            assert_eq!(frame.header.id, self.last_id);
            if frame.header.flags.has(Flags::SHARED) {
                let slot = SlotPlace::decode(&frame.body).expect("a place");
                let mut body = vec![0; slot.bytes as usize];
                let at = u64::from(slot.slot) * u64::from(self.offer.slot_bytes);
                self.memory.read_exact_at(&mut body, at).unwrap();
                came.body.extend(body);
                came.slots.push(slot.slot);
            } else {
                came.inline += frame.body.len();
                came.body.extend_from_slice(&frame.body);
            }
            if frame.header.flags.has(Flags::LAST) {
                return came;
            }
        }
    }

    async fn give_back(&mut self, slots: &[u32]) {
        self.raw.send_bytes(Header::request(0, Op::GiveBack), &encode_slots(slots)).await;
    }
}

fn assert_huge(came: &Came) {
    let reply = v1::EvaluateReply::decode(&came.body[..]).expect("a reply");
    let value = reply.value.and_then(|value| value.value);
    assert!(value == Some(value::Value::Set(vec![8; HUGE_BYTES].into())), "{} bytes", came.body.len());
}

#[tokio::test]
async fn what_does_not_fit_or_is_not_asked_for_there_follows_its_header() {
    let server = Server::start();
    let mut local = Local::connect(&server).await;
    let none = local.ask(HUGE, Flags::default()).await;
    assert_huge(&none);
    assert!(none.slots.is_empty(), "it was not asked for");
    let first = local.ask(HUGE, Flags::SHARED).await;
    assert_huge(&first);
    let slots: BTreeSet<u32> = first.slots.iter().copied().collect();
    assert!(slots.len() == first.slots.len() && slots.len() == local.offer.slots as usize, "{slots:?}");
    assert_eq!(first.inline, first.body.len() - local.offer.body_bytes() as usize);
    let second = local.ask(HUGE, Flags::SHARED).await;
    assert_huge(&second);
    assert!(second.slots.is_empty(), "they are all taken");
    local.give_back(&first.slots[3..7]).await;
    let third = local.ask(HUGE, Flags::SHARED).await;
    assert_huge(&third);
    let again: BTreeSet<u32> = third.slots.iter().copied().collect();
    assert_eq!(again, first.slots[3..7].iter().copied().collect());
    let short = local.ask(ECHO, Flags::SHARED).await;
    assert!(short.slots.is_empty() && 0 < short.inline, "it is not worth a slot");
}

#[tokio::test]
async fn memory_is_offered_once_and_past_tcp_alone() {
    let server = Server::start();
    let mut over_tcp = Raw::connect(&server.addr).await;
    let mut local = Local::connect(&server).await;
    over_tcp.send_bytes(Header::request(1, Op::Share), &[]).await;
    local.raw.send_bytes(Header::request(2, Op::Share), &[]).await;
    for (refused, code) in
        [(over_tcp.receive().await, "unsupported_operation"), (local.raw.receive().await, "bad_request")]
    {
        assert_eq!(kith_wire::detail_of(&refused.unwrap().status()).code, code);
    }
    local.last_id = 2;
    assert_huge(&local.ask(HUGE, Flags::SHARED).await);
    // Without an offer the flag has no effect.
    let header = Header::request(2, Op::Evaluate);
    over_tcp.send(Header { flags: header.flags.with(Flags::SHARED), ..header }, &asking(LONG, 0)).await;
    let whole = over_tcp.receive().await.unwrap();
    assert!(!whole.header.flags.has(Flags::SHARED) && LONG_BYTES < whole.body.len());
}

#[tokio::test]
async fn what_is_given_back_and_was_not_taken_closes_the_connection() {
    let server = Server::start();
    for (what, body) in [
        ("never taken", encode_slots(&[0])),
        ("no slot", encode_slots(&[u32::MAX])),
        ("no number", Bytes::from_static(&[1, 2, 3])),
    ] {
        let mut local = Local::connect(&server).await;
        local.raw.send_bytes(Header::request(0, Op::GiveBack), &body).await;
        assert_eq!(local.raw.receive().await.unwrap().header.id, 0, "{what}");
        assert_eq!(local.raw.receive().await, None, "{what}");
    }
    let mut twice = Local::connect(&server).await;
    let came = twice.ask(LONG, Flags::SHARED).await;
    twice.give_back(&[came.slots[0], came.slots[0]]).await;
    assert_eq!(twice.raw.receive().await.unwrap().header.id, 0);
    let mut unoffered = past_tcp(&server).await;
    unoffered.send_bytes(Header::request(0, Op::GiveBack), &encode_slots(&[0])).await;
    assert_eq!(unoffered.receive().await.unwrap().header.id, 0);
    assert_huge(&Local::connect(&server).await.ask(HUGE, Flags::SHARED).await);
}

#[tokio::test]
async fn replies_that_are_kept_stay_what_they_were() {
    let mut server = Server::start();
    let transport = framed();
    let mut kept = Vec::new();
    for round in 0..12 {
        let count = 40 - round;
        let reply = transport.evaluate(&server.addr, in_slices(ECHO, count)).await.unwrap();
        // Every third body is dropped at once, and a later one takes its slot.
        if round % 3 != 0 {
            kept.push((reply, count));
        }
        let error = transport.evaluate(&server.addr, in_slices(FAIL, 9)).await.unwrap_err();
        assert_eq!(kith_wire::code_of(&error), ErrorCode::Damaged);
    }
    kept.iter().for_each(|(reply, count)| assert_whole(reply, *count));
    server.die();
    assert!(transport.evaluate(&server.addr, in_slices(ECHO, 3)).await.is_err());
    kept.iter().for_each(|(reply, count)| assert_whole(reply, *count));
}

#[tokio::test]
async fn slots_of_a_reply_that_nobody_wants_any_more_come_back() {
    let server = Server::start();
    let mut local = Local::connect(&server).await;
    let request = Header::request(2, Op::Evaluate);
    let request = Header { flags: request.flags.with(Flags::SHARED), ..request };
    local.raw.send(request, &in_slices(GATED, 5)).await;
    server.until_waiting(1).await;
    local.raw.send(Header::request(2, Op::Cancel), &()).await;
    server.until_waiting(0).await;
    // The held frames come with the next frame, whichever request that belongs to.
    local.raw.send(Header::request(3, Op::Alive), &()).await;
    let held = local.raw.receive_frame().await.unwrap();
    assert_eq!((held.header.id, held.header.flags), (2, Flags::PART.with(Flags::SHARED)));
    assert_eq!(local.raw.receive_frame().await.unwrap().header.id, 3);
    let slot = SlotPlace::decode(&held.body).expect("a place").slot;
    local.give_back(&[slot]).await;
    local.last_id = 3;
    let came = local.ask(HUGE, Flags::SHARED).await;
    assert_eq!(came.slots.len(), local.offer.slots as usize, "all are there again");
    assert!(decode_slots(&encode_slots(&came.slots)).unwrap().any(|taken| taken == slot));
}
