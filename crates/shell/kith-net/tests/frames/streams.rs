//! Tests with replies in several messages, over both transports: they arrive in order, and no further than their receiver
//! reads.

use super::{by_hand::Raw, *};
use futures::{StreamExt, stream};
use kith_types::ErrorCode;
use kith_wire::frame::{CREDIT_BYTES, Header};
use tokio::io::AsyncWriteExt;

/// A reply whose first part comes at once, and the others after the gate opens.
pub(super) const GATED: &str = "gated";
/// A reply with as many parts as the version says.
const PARTS: &str = "parts";
/// A part that is longer than a frame.
const PART_BYTES: usize = 256 << 10;
/// A reply far beyond the credit.
const MANY: u64 = 64;

impl Scripted {
    /// The parts of a reply, and whether each is the last.
    pub(super) fn parts(
        self: Arc<Self>,
        request: &v1::EvaluateRequest,
    ) -> BoxStream<'static, Result<(v1::EvaluateReply, bool), Status>> {
        let (count, is_gated) = (request.version, request.name == GATED);
        self.waiting.send_modify(|waiting| *waiting += 1);
        let guard = Reading(Arc::clone(&self));
        let parts = stream::iter(0..count).then(move |number| {
            let node = Arc::clone(&guard.0);
            async move {
                if is_gated && 0 < number {
                    let mut gate = node.gate.subscribe();
                    gate.wait_for(|is_open| *is_open).await.expect("the gate outlives its node");
                }
                node.started.fetch_add(1, Ordering::Relaxed);
                let value = value::Value::Set(vec![number as u8; PART_BYTES].into());
                let value = Some(v1::Value { value: Some(value) });
                Ok((v1::EvaluateReply { value, ..Default::default() }, number + 1 == count))
            }
        });
        parts.boxed()
    }
}

/// Counts as waiting until it is dropped.
pub(super) struct Reading(pub Arc<Scripted>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}

fn number_of(part: Option<Result<v1::EvaluateReply, Status>>) -> u64 {
    match part.expect("a part").expect("no error").value.and_then(|value| value.value) {
        Some(value::Value::Set(bytes)) => {
            assert!(bytes.len() == PART_BYTES && bytes.iter().all(|byte| *byte == bytes[0]), "a torn part");
            bytes[0].into()
        }
        other => panic!("a set was expected: {other:?}"),
    }
}

#[tokio::test]
async fn parts_come_in_order_over_both() {
    let server = Server::start();
    for (name, transport) in transports() {
        let parts = transport.evaluate_in_parts(server.addr.clone(), asking(PARTS, MANY));
        let numbers: Vec<u64> = parts.map(|part| number_of(Some(part))).collect().await;
        assert_eq!(numbers, (0..MANY).collect::<Vec<_>>(), "{name}");
        server.until_waiting(0).await;
    }
}

#[tokio::test]
async fn a_reader_that_stops_is_sent_its_credit_and_holds_up_nobody() {
    let server = Server::start();
    let transport: Arc<dyn Transport> = Arc::new(FramedTransport::default());
    let mut parts = Arc::clone(&transport).evaluate_in_parts(server.addr.clone(), asking(PARTS, MANY));
    assert_eq!(number_of(parts.next().await), 0);
    for version in 0..200 {
        let reply = transport.evaluate(&server.addr, asking(ECHO, version)).await.unwrap();
        assert_eq!(count_of(reply), version);
    }
    // The bytes that the others asked for are counted as well: a part beyond the credit, and one that is computed ahead.
    let made = server.node.started.load(Ordering::Relaxed) - 200;
    let credit = u64::from(CREDIT_BYTES) / PART_BYTES as u64;
    assert!((1..=credit + 2).contains(&made), "{made} parts were made for a credit of {credit}");
    for number in 1..MANY {
        assert_eq!(number_of(parts.next().await), number);
    }
    assert!(parts.next().await.is_none());
}

#[tokio::test]
async fn a_reply_that_nobody_wants_any_more_ends_at_the_node() {
    let server = Server::start();
    for (name, transport) in transports() {
        let mut parts = Arc::clone(&transport).evaluate_in_parts(server.addr.clone(), asking(GATED, 3));
        assert_eq!(number_of(parts.next().await), 0, "{name}");
        server.until_waiting(1).await;
        drop(parts);
        server.until_waiting(0).await;
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 3)).await.unwrap()), 3);
    }
}

#[tokio::test]
async fn the_deadline_ends_a_reply_in_its_middle() {
    let server = Server::start();
    let header = v1::RequestHeader { deadline_us: 20_000, ..Default::default() };
    let request = v1::EvaluateRequest { header: Some(header), ..asking(GATED, 3) };
    let transport = Arc::new(FramedTransport::default());
    let mut parts = transport.evaluate_in_parts(server.addr.clone(), request);
    assert_eq!(number_of(parts.next().await), 0);
    let error = parts.next().await.expect("an end").unwrap_err();
    assert_eq!(kith_wire::code_of(&error), ErrorCode::DeadlineExceeded);
    assert!(parts.next().await.is_none());
    server.until_waiting(0).await;
}

#[tokio::test]
async fn a_node_that_dies_in_the_middle_of_a_reply_is_unavailable() {
    for (name, transport) in transports() {
        let mut server = Server::start();
        let mut parts = transport.evaluate_in_parts(server.addr.clone(), asking(GATED, 3));
        assert_eq!(number_of(parts.next().await), 0, "{name}");
        server.die();
        let lost = parts.next().await.expect("an end").unwrap_err();
        assert!(is_connection(&lost), "{name}: {lost:?}");
    }
}

#[tokio::test]
async fn credit_that_is_none_breaks_the_protocol_and_credit_for_nobody_does_not() {
    let server = Server::start();
    let mut raw = Raw::connect(&server.addr).await;
    let mut out = bytes::BytesMut::new();
    Header::encode_credit(77, 5, &mut out);
    Header::request(1, Op::Evaluate).encode(&asking(ECHO, 1), &mut out).unwrap();
    raw.stream.write_all(&out).await.unwrap();
    assert_eq!(raw.receive().await.unwrap().header.id, 1);
    out.clear();
    Header::request(1, Op::Credit).encode_bytes(&[1, 2, 3], &mut out).unwrap();
    raw.stream.write_all(&out).await.unwrap();
    assert_eq!(raw.receive().await.unwrap().header.id, 0, "an error of the connection");
    assert!(raw.receive().await.is_none());
}
