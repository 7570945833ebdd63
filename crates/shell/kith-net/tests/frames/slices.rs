//! Tests with one message that is computed and sent part by part.

use super::{streams::GATED, *};
use futures::stream;
use kith_types::ErrorCode;

/// A length that is copied, one that is not, and one that exceeds a frame.
const SLICE_BYTES: [usize; 3] = [40 << 10, 20 << 10, 150 << 10];

impl Scripted {
    /// Returns as many slices as the request's version says. For [`GATED`] all but the first come after the gate has
    /// opened; for [`FAIL`] an error comes instead of the last.
    pub(super) fn slices(self: Arc<Self>, request: &v1::EvaluateRequest) -> Pieces {
        let (count, graph) = (request.version, request.name.clone());
        self.waiting.send_modify(|waiting| *waiting += 1);
        let guard = streams::Reading(Arc::clone(&self));
        let slices = stream::iter(0..count).then(move |number| {
            let (node, graph) = (Arc::clone(&guard.0), graph.clone());
            async move {
                if graph == GATED && 0 < number {
                    let mut gate = node.gate.subscribe();
                    gate.wait_for(|is_open| *is_open).await.expect("the gate outlives its node");
                }
                let is_last = number + 1 == count;
                if graph == FAIL && is_last {
                    return Err(kith_wire::status(ErrorCode::Damaged, "a block is bad", "load again"));
                }
                let service_us = if is_last { 7 } else { 0 };
                let slice =
                    v1::EvaluateReply { slices: vec![slice(number)], service_us, ..Default::default() };
                Ok(Piece::of(&slice, if is_last { End::Reply } else { End::Part }))
            }
        });
        slices.boxed()
    }
}

fn slice(number: u64) -> Bytes {
    vec![number as u8; SLICE_BYTES[number as usize % SLICE_BYTES.len()]].into()
}

pub(super) fn in_slices(graph: &str, slices: u64) -> v1::EvaluateRequest {
    v1::EvaluateRequest { in_slices: true, ..asking(graph, slices) }
}

pub(super) fn assert_whole(reply: &v1::EvaluateReply, slices: u64) {
    assert!(reply.slices.iter().cloned().eq((0..slices).map(slice)), "torn or lost slices");
    assert_eq!((reply.service_us, reply.value.is_none()), (7, true));
}

pub(super) fn framed() -> Arc<dyn Transport> {
    TransportKind::Framed.build(&Dialer::default())
}

#[tokio::test]
async fn slices_are_one_reply() {
    let server = Server::start();
    for (name, transport) in transports() {
        for count in [1, 2, 40] {
            let reply = transport.evaluate(&server.addr, in_slices(ECHO, count)).await.unwrap();
            // Over gRPC the reply comes as a whole.
            match name {
                "grpc" => assert_eq!(count_of(reply), count),
                _ => assert_whole(&reply, count),
            }
        }
        server.until_waiting(0).await;
    }
}

#[tokio::test]
async fn others_are_answered_between_the_slices_and_whole() {
    let server = Server::start();
    let transport = framed();
    let (asker, addr) = (Arc::clone(&transport), server.addr.clone());
    let sliced = tokio::spawn(async move { asker.evaluate(&addr, in_slices(GATED, 5)).await });
    server.until_waiting(1).await;
    for version in 0..20 {
        let reply = transport.evaluate(&server.addr, in_slices(ECHO, version)).await.unwrap();
        assert_eq!(count_of(reply), version, "it is not the only one of its connection");
    }
    server.open_gate();
    assert_whole(&sliced.await.unwrap().unwrap(), 5);
}

#[tokio::test]
async fn an_error_ends_a_reply_between_its_slices() {
    let server = Server::start();
    let transport = framed();
    for count in [1, 2, 9] {
        let error = transport.evaluate(&server.addr, in_slices(FAIL, count)).await.unwrap_err();
        assert_eq!(kith_wire::code_of(&error), ErrorCode::Damaged);
        assert_whole(&transport.evaluate(&server.addr, in_slices(ECHO, 3)).await.unwrap(), 3);
    }
}

#[tokio::test]
async fn a_sliced_reply_that_nobody_wants_any_more_ends_at_the_node() {
    let server = Server::start();
    let transport = framed();
    let (asker, addr) = (Arc::clone(&transport), server.addr.clone());
    let sliced = tokio::spawn(async move { asker.evaluate(&addr, in_slices(GATED, 5)).await });
    server.until_waiting(1).await;
    sliced.abort();
    server.until_waiting(0).await;
    assert_whole(&transport.evaluate(&server.addr, in_slices(ECHO, 3)).await.unwrap(), 3);
}

#[tokio::test]
async fn a_sliced_reply_ends_with_its_deadline_or_its_node() {
    let mut server = Server::start();
    let transport = framed();
    let header = v1::RequestHeader { deadline_us: 20_000, ..Default::default() };
    let request = v1::EvaluateRequest { header: Some(header), ..in_slices(GATED, 3) };
    let error = transport.evaluate(&server.addr, request).await.unwrap_err();
    assert_eq!(kith_wire::code_of(&error), ErrorCode::DeadlineExceeded);
    server.until_waiting(0).await;
    let (asker, addr) = (Arc::clone(&transport), server.addr.clone());
    let sliced = tokio::spawn(async move { asker.evaluate(&addr, in_slices(GATED, 3)).await });
    server.until_waiting(1).await;
    server.die();
    assert!(is_connection(&sliced.await.unwrap().unwrap_err()));
}
