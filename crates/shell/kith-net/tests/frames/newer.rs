//! Tests with a peer of a later release, over sockets (`docs/formats/README.md`). What it adds is ignored. What it requests
//! that this release does not have is refused by name. Neither costs the connection.

use super::by_hand::Raw;
use super::*;
use kith_query::QueryError;
use kith_wire::frame::{Flags, Header, PREFACE_BYTES, Preface};
use tokio::io::AsyncReadExt;

/// The preface version of a later release.
const LATER: Preface = Preface { version: 2 };
/// Fields 1000 and 1001, a number and a text, which this release does not know.
const NEW_FIELDS: &[u8] = b"\xc0\x3e\x07\xca\x3e\x03new";
/// An operation that this release does not have.
const NEW_OPERATION: u8 = 200;

/// A message with new fields, both at the top level and in the message that is its first field.
fn wider(message: &impl Message) -> Vec<u8> {
    let mut bytes = message.encode_to_vec();
    // A message field that occurs twice is merged, so these are further fields of the first one.
    bytes.extend_from_slice(&[0x0a, NEW_FIELDS.len() as u8]);
    bytes.extend_from_slice(NEW_FIELDS);
    bytes.extend_from_slice(NEW_FIELDS);
    bytes
}

/// Exchanges prefaces as a peer of a later release does; this release continues with its own version.
async fn greeted(mut stream: TcpStream) -> Raw {
    stream.write_all(&LATER.encode()).await.unwrap();
    let mut preface = [0; PREFACE_BYTES];
    stream.read_exact(&mut preface).await.unwrap();
    assert_eq!(Preface::decode(preface), Ok(Preface { version: 1 }));
    Raw::over(stream)
}

async fn later_client(server: &Server) -> Raw {
    greeted(TcpStream::connect(&server.addr).await.unwrap()).await
}

#[tokio::test]
async fn new_fields_of_a_request_are_ignored() {
    let server = Server::start();
    let mut client = later_client(&server).await;
    let header = v1::RequestHeader { epoch: 3, ..Default::default() };
    let asked = v1::EvaluateRequest { header: Some(header), ..asking(ECHO, 7) };
    client.send_bytes(Header::request(1, Op::Evaluate), &wider(&asked)).await;
    let reply = client.receive().await.expect("a reply");
    assert!(!reply.header.flags.has(Flags::ERROR), "{:?}", reply.status());
    assert_eq!(count_of(v1::EvaluateReply::decode(reply.body).unwrap()), 7);
}

#[tokio::test]
async fn a_new_operation_is_refused_by_its_number_and_the_connection_goes_on() {
    let server = Server::start();
    let mut client = later_client(&server).await;
    for flags in [Flags::LAST, Flags::LAST.with(Flags::CREDITED)] {
        let header = Header { op: NEW_OPERATION, flags, ..Header::request(1, Op::Evaluate) };
        client.send_bytes(header, NEW_FIELDS).await;
        let reply = client.receive().await.expect("a reply");
        assert_eq!((reply.header.id, reply.header.op), (1, NEW_OPERATION));
        let refusal = reply.status();
        assert_eq!(kith_wire::code_of(&refusal), ErrorCode::UnsupportedOperation);
        assert!(refusal.message().contains("operation 200"), "{refusal:?}");
    }
    client.send(Header::request(2, Op::Evaluate), &asking(ECHO, 8)).await;
    let reply = client.receive().await.expect("the connection goes on");
    assert_eq!(count_of(v1::EvaluateReply::decode(reply.body).unwrap()), 8);
}

/// A status with a code that this release does not have.
fn new_error() -> Status {
    let known = kith_wire::status(ErrorCode::Overloaded, "not now", "ask tomorrow");
    let (from, to) = (b"overloaded", b"too_clever");
    let mut details = known.details().to_vec();
    let at = details.windows(from.len()).position(|part| part == from).expect("it names its code");
    details[at..at + to.len()].copy_from_slice(to);
    Status::with_details(known.code(), known.message(), details.into())
}

/// Answers the first request with a reply that has new fields, the second with a new error, and the third like the first.
async fn later_server(listener: &TcpListener) -> Raw {
    let (stream, _) = listener.accept().await.unwrap();
    let mut server = greeted(stream).await;
    for _ in 0..3 {
        let asked = server.receive().await.expect("a request");
        let request = v1::EvaluateRequest::decode(asked.body).unwrap();
        let reply = asked.header.reply(Flags::LAST);
        if request.name == FAIL {
            let mut bytes = bytes::BytesMut::new();
            asked.header.encode_error(&new_error(), &mut bytes);
            server.stream.write_all(&bytes).await.unwrap();
            continue;
        }
        let value = v1::Value { value: Some(value::Value::Count(request.version)) };
        let mut body = v1::EvaluateReply { value: Some(value), ..Default::default() }.encode_to_vec();
        body.extend_from_slice(NEW_FIELDS);
        server.send_bytes(reply, &body).await;
    }
    server
}

#[tokio::test]
async fn new_fields_of_a_reply_are_ignored_and_a_new_code_is_unrecognized() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let transport = FramedTransport::default();
    let asked = async {
        let first = transport.evaluate(&addr, asking(ECHO, 7)).await.unwrap();
        assert_eq!(count_of(first), 7);
        let error = transport.evaluate(&addr, asking(FAIL, 7)).await.unwrap_err();
        assert_eq!(
            (error.code(), kith_wire::code_of(&error)),
            (Code::ResourceExhausted, ErrorCode::Unrecognized)
        );
        let error = QueryError::from_status(&error);
        assert_eq!(error.code(), ErrorCode::Unrecognized);
        assert!(error.to_string().contains("too_clever: not now"), "{error}");
        let third = transport.evaluate(&addr, asking(ECHO, 9)).await.unwrap();
        assert_eq!(count_of(third), 9, "over the same connection");
    };
    // The peer lives as long as it gets requests.
    let ((), _server) = tokio::join!(asked, later_server(&listener));
}
