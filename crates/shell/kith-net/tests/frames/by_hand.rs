//! Tests with hand-made frames, for errors that only frames can have.

use super::*;
use kith_types::ErrorCode;
use kith_wire::frame::{self, Flags, Header, PREFACE_BYTES, Preface};
use std::{collections::HashMap, net::SocketAddr};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A framed connection that sends and receives single frames.
pub(super) struct Raw<S = TcpStream> {
    pub(super) stream: S,
    buffer: bytes::BytesMut,
    /// The incomplete messages, by request.
    parts: HashMap<u64, bytes::BytesMut>,
}

impl Raw {
    pub(super) async fn connect(addr: &str) -> Self {
        Self::greet(TcpStream::connect(addr.parse::<SocketAddr>().unwrap()).await.unwrap()).await
    }

    /// The peer of such a connection.
    async fn accept(listener: &TcpListener) -> Self {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut preface = [0; PREFACE_BYTES];
        stream.read_exact(&mut preface).await.unwrap();
        stream.write_all(&Preface::OWN.encode()).await.unwrap();
        Self::over(stream)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    /// Connects and exchanges the prefaces.
    pub(super) fn over(stream: S) -> Self {
        Self { stream, buffer: bytes::BytesMut::new(), parts: HashMap::new() }
    }

    pub(super) async fn greet(mut stream: S) -> Self {
        stream.write_all(&Preface::OWN.encode()).await.unwrap();
        let mut preface = [0; PREFACE_BYTES];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(Preface::decode(preface), Ok(Preface::OWN));
        Self::over(stream)
    }

    pub(super) async fn send(&mut self, header: Header, body: &impl Message) {
        let mut out = bytes::BytesMut::new();
        header.encode(body, &mut out).unwrap();
        self.stream.write_all(&out).await.unwrap();
    }

    pub(super) async fn send_bytes(&mut self, header: Header, body: &[u8]) {
        let mut out = bytes::BytesMut::new();
        header.encode_bytes(body, &mut out).unwrap();
        self.stream.write_all(&out).await.unwrap();
    }

    /// Receives frames up to a whole message; `None` once the peer has closed.
    pub(super) async fn receive(&mut self) -> Option<Frame> {
        loop {
            let mut frame = self.receive_frame().await?;
            let part = self.parts.entry(frame.header.id).or_default();
            part.extend_from_slice(&frame.body);
            if !frame.header.flags.has(Flags::PART) {
                frame.body = std::mem::take(part).freeze();
                return Some(frame);
            }
        }
    }

    pub(super) async fn receive_frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = frame::decode(&mut self.buffer).unwrap() {
                return Some(frame);
            }
            if self.stream.read_buf(&mut self.buffer).await.unwrap() == 0 {
                return None;
            }
        }
    }
}

#[tokio::test]
async fn malformed_frames_close_their_connection_and_no_other() {
    let server = Server::start();
    let mut other = Raw::connect(&server.addr).await;
    let waiting = || Header::request(1, Op::Evaluate);
    let long = (frame::HEADER_BYTES as u32 + kith_wire::MESSAGE_BYTES_MAX as u32 + 17).to_le_bytes();
    for (what, bytes) in [("too short", 3_u32.to_le_bytes()), ("too long", long)] {
        let mut raw = Raw::connect(&server.addr).await;
        raw.stream.write_all(&bytes).await.unwrap();
        let last = raw.receive().await.unwrap();
        assert_eq!((last.header.id, last.status().code()), (0, Code::InvalidArgument), "{what}");
        assert_eq!(raw.receive().await, None, "{what}");
    }
    for (what, header) in [
        ("id 0", Header::request(0, Op::Evaluate)),
        ("an id twice", waiting()),
        ("in pieces", Header { flags: Flags::default(), ..Header::request(5, Op::Evaluate) }),
    ] {
        let mut raw = Raw::connect(&server.addr).await;
        raw.send(waiting(), &asking(WAIT, 1)).await;
        raw.send(header, &asking(ECHO, 1)).await;
        assert_eq!(raw.receive().await.unwrap().header.id, 0, "{what}");
        assert_eq!(raw.receive().await, None, "{what}");
        server.until_waiting(0).await;
    }
    other.send(Header::request(8, Op::Evaluate), &asking(ECHO, 4)).await;
    assert_eq!(other.receive().await.unwrap().header.id, 8);
}

#[tokio::test]
async fn a_request_that_crosses_the_peers_goodbye_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    let transport = FramedTransport::default();
    let serve = async {
        let mut first = Raw::accept(&listener).await;
        first.receive().await.expect("a request");
        let mut goodbye = bytes::BytesMut::new();
        let idle = kith_wire::status(ErrorCode::Idle, "nothing was asked", "connect again");
        Header::of_connection().encode_error(&idle, &mut goodbye);
        first.stream.write_all(&goodbye).await.expect("it takes bytes");
        let mut second = Raw::accept(&listener).await;
        let asked = second.receive().await.expect("the request once more").header;
        let value = Some(v1::Value { value: Some(value::Value::Count(9)) });
        second.send(asked.reply(Flags::LAST), &v1::EvaluateReply { value, ..Default::default() }).await;
    };
    let (answer, ()) = tokio::join!(transport.evaluate(&addr, asking(ECHO, 1)), serve);
    assert_eq!(count_of(answer.expect("it is answered")), 9);
}

#[tokio::test]
async fn what_is_not_served_is_refused_by_name_and_the_connection_goes_on() {
    let server = Server::start();
    let mut raw = Raw::connect(&server.addr).await;
    let newer = Header { op: 200, ..Header::request(1, Op::Ping) };
    for header in [newer, Header::request(3, Op::Ping)] {
        raw.send(header, &()).await;
        let refused = raw.receive().await.unwrap();
        assert_eq!(refused.header.id, header.id);
        assert_eq!(kith_wire::code_of(&refused.status()), ErrorCode::UnsupportedOperation);
    }
    // It is not an `EvaluateRequest`: field 1 claims to be longer than it is.
    raw.send_bytes(Header::request(4, Op::Evaluate), &[0x0a, 0x7f]).await;
    assert_eq!(kith_wire::code_of(&raw.receive().await.unwrap().status()), ErrorCode::BadRequest);
    raw.send(Header::request(5, Op::Alive), &()).await;
    let alive = raw.receive().await.unwrap();
    assert!(alive.body.is_empty() && alive.header.flags == Flags::LAST);
}

#[tokio::test]
async fn one_who_does_not_read_is_not_worked_for_and_holds_up_nobody() {
    const REQUESTS: u64 = 400;
    let server = Server::start();
    let mut slow = Raw::connect(&server.addr).await;
    for id in 1..=REQUESTS {
        slow.send(Header::request(id, Op::Evaluate), &asking(LONG, 1)).await;
    }
    let quick = FramedTransport::default();
    for version in 0..50 {
        let reply = quick.evaluate(&server.addr, asking(ECHO, version)).await.unwrap();
        assert_eq!(count_of(reply), version);
    }
    // One MiB in the connection's own buffer and what the sockets hold, in replies of 256 KiB.
    let started = server.node.started.load(Ordering::Relaxed) - 50;
    assert!(started < REQUESTS / 2, "{started} of {REQUESTS} were answered to one who does not read");
    let mut answered = 0;
    while answered < REQUESTS {
        assert_eq!(slow.receive().await.unwrap().body.len() / LONG_BYTES, 1);
        answered += 1;
    }
    assert_eq!(server.node.started.load(Ordering::Relaxed), REQUESTS + 50);
}

#[tokio::test]
async fn work_of_one_who_does_not_read_goes_on() {
    let server = Server::start();
    let mut slow = Raw::connect(&server.addr).await;
    slow.send(Header::request(1, Op::Evaluate), &asking(WAIT, 1)).await;
    for id in 2..=100 {
        slow.send(Header::request(id, Op::Evaluate), &asking(LONG, 1)).await;
    }
    // These replies are longer than the sockets and the outbox hold.
    while server.node.started.load(Ordering::Relaxed) < 100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.node.gate.send_replace(true);
    let mut waiting = server.node.waiting.subscribe();
    let ended = tokio::time::timeout(Duration::from_secs(20), waiting.wait_for(|waiting| *waiting == 0));
    ended.await.expect("the request goes on").expect("the node is there");
    let mut ids: Vec<u64> = vec![];
    while ids.len() < 100 {
        ids.push(slow.receive().await.unwrap().header.id);
    }
    assert!(ids.contains(&1));
}

#[tokio::test]
async fn a_huge_reply_holds_up_no_small_ones_behind_it() {
    const SMALL: u64 = 200;
    let server = Server::start();
    let mut raw = Raw::connect(&server.addr).await;
    raw.send(Header::request(1, Op::Evaluate), &asking(HUGE, 0)).await;
    // It is being sent, and cannot get far before it is read.
    let first = raw.receive_frame().await.unwrap();
    assert_eq!((first.header.id, first.header.flags), (1, Flags::PART));
    for id in 2..2 + SMALL {
        raw.send(Header::request(id, Op::Evaluate), &asking(ECHO, id)).await;
    }
    let (mut huge_bytes, mut small_count) = (first.body.len(), 0);
    loop {
        let frame = raw.receive_frame().await.unwrap();
        if frame.header.id != 1 {
            small_count += 1;
            continue;
        }
        huge_bytes += frame.body.len();
        if frame.header.flags.has(Flags::LAST) {
            break;
        }
    }
    assert_eq!(small_count, SMALL, "all that were asked for before it was read came before its end");
    assert!(HUGE_BYTES < huge_bytes && huge_bytes < HUGE_BYTES + 64, "{huge_bytes}");
}

#[tokio::test]
async fn long_replies_take_turns_and_what_is_left_of_a_cancelled_one_is_not_sent() {
    let server = Server::start();
    let mut raw = Raw::connect(&server.addr).await;
    for id in [1, 2] {
        raw.send(Header::request(id, Op::Evaluate), &asking(HUGE, 0)).await;
    }
    let mut got = HashMap::from([(1, 0), (2, 0)]);
    // Both are being sent; then the first one is cancelled.
    while got.values().any(|bytes| *bytes == 0) {
        let frame = raw.receive_frame().await.unwrap();
        *got.get_mut(&frame.header.id).unwrap() += frame.body.len();
    }
    raw.send(Header::request(1, Op::Cancel), &()).await;
    loop {
        let frame = raw.receive_frame().await.unwrap();
        *got.get_mut(&frame.header.id).unwrap() += frame.body.len();
        if frame.header.flags.has(Flags::LAST) {
            assert_eq!(frame.header.id, 2);
            break;
        }
    }
    assert!(got[&1] < HUGE_BYTES && HUGE_BYTES < got[&2], "{got:?}");
    raw.send(Header::request(3, Op::Evaluate), &asking(ECHO, 3)).await;
    assert_eq!(raw.receive_frame().await.unwrap().header.id, 3);
}

#[tokio::test]
async fn a_peer_that_freezes_is_asked_whether_it_is_there_and_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let transport = FramedTransport::default();
    let call = async {
        let lost = transport.evaluate(&addr, asking(ECHO, 1)).await.unwrap_err();
        assert!(is_connection(&lost) && lost.message().contains("silent"), "{lost:?}");
        // The next request uses a new connection, whose peer is healthy.
        count_of(transport.evaluate(&addr, asking(ECHO, 2)).await.unwrap())
    };
    let peer = async {
        let mut frozen = Raw::accept(&listener).await;
        let mut asked = Vec::new();
        while let Some(frame) = frozen.receive().await {
            asked.push(frame.header.op);
        }
        let mut well = Raw::accept(&listener).await;
        let request = well.receive().await.unwrap().header;
        let value = v1::Value { value: Some(value::Value::Count(2)) };
        let reply = v1::EvaluateReply { value: Some(value), ..Default::default() };
        well.send(request.reply(Flags::LAST), &reply).await;
        asked
    };
    let (count, asked) = tokio::join!(call, peer);
    assert_eq!((count, asked), (2, vec![Op::Evaluate as u8, Op::Alive as u8]));
}

#[tokio::test]
async fn neither_http2_nor_frames_is_closed() {
    let server = Server::start();
    let mut stream = TcpStream::connect(&server.addr).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // The peer closed with bytes unread, which is seen as the end of the stream or as a reset.
    let closed = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
    assert!(closed.is_ok() && answer.is_empty(), "{closed:?} {answer:?}");
}
