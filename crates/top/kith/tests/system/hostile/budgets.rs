//! The memory that requests and replies of known callers may hold.

use super::{MIB, TIMEOUT, header, http2, resident, started};
use crate::support::{
    values::{create, push},
    words::{WORDS, assert_reads, judge, mget},
};
use bytes::BytesMut;
use kith_wire::{
    Message,
    frame::{self, Frame, Header, Op, PREFACE_BYTES, Preface},
    v1,
};
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

/// The most memory that a process had in use so far.
fn most_resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Speaks frames by hand.
fn greeted(addr: &str) -> TcpStream {
    let mut stream = TcpStream::connect(addr).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
    stream.write_all(&Preface::OWN.encode()).expect("it reads");
    stream.read_exact(&mut [0; PREFACE_BYTES]).expect("it speaks frames");
    stream
}

/// Sends so much of a body, as far as the peer takes it.
fn send(stream: &mut TcpStream, bytes: usize) {
    let piece = vec![0; 1 << 20];
    for _ in 0..bytes >> 20 {
        if stream.write_all(&piece).is_err() {
            return;
        }
    }
}

/// The frames that come until the peer closes, or says something.
fn last_frame(stream: &mut TcpStream) -> Option<Frame> {
    let mut bytes = BytesMut::new();
    loop {
        if let Some(frame) = frame::decode(&mut bytes).expect("frames") {
            return Some(frame);
        }
        let mut piece = [0; 4_096];
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

/// Claims a body of so many bytes, and sends so many of them.
fn claim(addr: &str, claimed: u32, sent: usize) -> TcpStream {
    let mut stream = greeted(addr);
    stream.write_all(&header(claimed)).expect("it reads");
    send(&mut stream, sent);
    stream
}

/// Why the peer of a claim refused it, if it did so within half a second.
fn refusal(stream: &mut TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a socket");
    last_frame(stream).map(|frame| kith_wire::detail_of(&frame.status()).code)
}

#[test]
fn frames_that_claim_much_and_never_end_take_what_the_budget_has_and_no_more() {
    let cluster = started(&["--nodes", "1"]);
    let ready = cluster.ready();
    let router = &ready["routers"][0];
    let (addr, http) = (router["addr"].as_str().expect("text"), ready["http"].as_str().expect("text"));
    let pid = router["pid"].as_u64().expect("a pid") as u32;

    // An HTTP request that does not end is not waited for either.
    let mut http = TcpStream::connect(http).expect("it listens");
    http.set_read_timeout(Some(TIMEOUT)).expect("a socket");
    http.write_all(b"GET /metrics HTTP/1.1\r\nhost: ").expect("it reads");

    let before = resident(pid);
    let check = |what: &str| {
        let grown = resident(pid).saturating_sub(before);
        assert!(grown < 256 * MIB, "{what}: {} MiB", grown / MIB);
        assert_reads(&cluster, "people", 100, 1);
    };
    let _held: Vec<_> = (0..3).map(|_| claim(addr, 256 << 20, 250 << 20)).collect();
    check("claims of 256 MiB");
    let (mut legal, mut refused) = (Vec::new(), 0);
    for _ in 0..5 {
        let mut stream = claim(addr, 72 << 20, 60 << 20);
        if let Some(code) = refusal(&mut stream) {
            assert_eq!(code, "overloaded");
            refused += 1;
        }
        legal.push(stream);
    }
    check("legal claims");
    assert!(0 < refused, "more than the budget has was taken");
    // They are given up, and what they took is there for others.
    let first = &mut legal[0];
    first.set_read_timeout(Some(TIMEOUT)).expect("a socket");
    let end = last_frame(first).expect("a reason");
    assert_eq!(kith_wire::detail_of(&end.status()).code, "slow_request");
    let mut rest = Vec::new();
    http.read_to_end(&mut rest).expect("it is closed");
}

#[test]
fn large_frames_that_end_take_what_the_budget_has_and_no_more() {
    let cluster = started(&["--nodes", "1"]);
    let ready = cluster.ready();
    let router = &ready["routers"][0];
    let addr = router["addr"].as_str().expect("text");
    let pid = router["pid"].as_u64().expect("a pid") as u32;
    let before = resident(pid);
    // A read of so many ids of a byte each, all bytes of which come; and bytes that are no read.
    const BODY_BYTES: u32 = 79 << 20;
    let store = b"\x0a\x06people";
    let length: [u8; 4] = std::array::from_fn(|at| {
        let seven = ((BODY_BYTES - 13) >> (7 * at)) as u8 & 0x7f;
        if at < 3 { seven | 0x80 } else { seven }
    });
    let ids = [&store[..], &[0x12], &length].concat();
    for head in [&ids[..], &[0; 13]] {
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut stream = greeted(addr);
                    stream.write_all(&header(BODY_BYTES)).expect("it reads");
                    stream.write_all(head).expect("it reads");
                    stream.write_all(&[1; (1 << 20) - 13]).expect("it reads");
                    send(&mut stream, 78 << 20);
                    let code =
                        kith_wire::detail_of(&last_frame(&mut stream).expect("an answer").status()).code;
                    assert!(["overloaded", "out_of_range", "bad_request"].contains(&&*code), "{code}");
                });
            }
        });
    }
    // Of nodes and router in one process; the budget of requests is 192 MiB.
    let grown = most_resident(pid).saturating_sub(before);
    assert!(grown < 384 * MIB, "{} MiB", grown / MIB);
    assert_reads(&cluster, "people", 100, 1);
}

/// How callers ask who do not read their answers.
#[derive(Clone, Copy, Debug)]
enum Unread {
    Frames,
    Http2,
    Redis,
}

impl Unread {
    /// Asks for all of `large` so many times.
    fn asks(self, addr: &str, times: u32) -> TcpStream {
        let ids: Vec<u64> = (0..LARGE_KEYS).collect();
        let request =
            v1::MultiGetRequest { store: "large".to_owned(), ids, ..v1::MultiGetRequest::default() };
        let requests: Vec<u8> = match self {
            Unread::Frames => {
                let mut bytes = BytesMut::new();
                for id in 1..=times {
                    let header = Header::request(id.into(), Op::MultiGet);
                    header.encode(&request, &mut bytes).expect("it is short");
                }
                [&Preface::OWN.encode()[..], &bytes].concat()
            }
            Unread::Http2 => {
                let body = request.encode_to_vec();
                let message = [&[0][..], &(body.len() as u32).to_be_bytes(), &body].concat();
                let literal =
                    |name: &[u8], value: &str| [name, &[value.len() as u8], value.as_bytes()].concat();
                let headers = [
                    vec![0x83, 0x86],
                    literal(&[0x04], "/kith.v1.Store/MultiGet"),
                    literal(&[0x01], "x"),
                    literal(&[0x0f, 0x10], "application/grpc"),
                    literal(b"\x00\x02te", "trailers"),
                ]
                .concat();
                let requests = (0..times)
                    .flat_map(|at| [http2(1, 4, 2 * at + 1, &headers), http2(0, 1, 2 * at + 1, &message)]);
                let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), http2(4, 0, 0, &[])];
                begin.into_iter().chain(requests).collect::<Vec<_>>().concat()
            }
            Unread::Redis => {
                let keys: String = (0..LARGE_KEYS).map(|key| format!(" large:{key}")).collect();
                format!("MGET{keys}\r\n").repeat(times as usize).into_bytes()
            }
        };
        let mut stream = TcpStream::connect(addr).expect("it listens");
        stream.write_all(&requests).expect("it reads");
        stream
    }
}

/// The size of a value of `large`, and the number of values: 16 MiB together.
const LARGE_BYTES: usize = 256 << 10;
const LARGE_KEYS: u64 = 64;

#[test]
fn replies_that_nobody_reads_take_what_the_budget_has_and_no_more() {
    const CONNECTIONS: usize = 20;
    let mut cluster = started(&["--nodes", "1", "--processes", "--reply-memory", "96MiB"]);
    create(&cluster, "large", WORDS.0, WORDS.1);
    let rows = (0..LARGE_KEYS).map(|key| (key.to_le_bytes().to_vec(), vec![b'x'; LARGE_BYTES]));
    push(&cluster, "large", WORDS, 1, rows);
    let ready = cluster.ready();
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let (router, node) = (&ready["routers"][0], &ready["nodes"][0]);
    // What Redis clients ask in a row is one answer, and would be refused for its size.
    for (how, times, role, addr) in [
        (Unread::Frames, 3, router, "addr"),
        (Unread::Http2, 3, router, "addr"),
        (Unread::Redis, 1, router, "resp"),
        (Unread::Redis, 1, node, "resp"),
    ] {
        let addr = text(&role[addr]);
        let pid = role["pid"].as_u64().expect("a pid") as u32;
        let before = resident(pid);
        let mut held: Vec<_> = (0..CONNECTIONS).map(|_| how.asks(&addr, times)).collect();
        let mut most = 0;
        let request = mget("people", 0..100);
        cluster.wait_until("others are answered", |cluster| {
            most = most.max(resident(pid));
            judge(&request, &cluster.run(std::slice::from_ref(&request), 1).0[0]).is_ok()
        });
        cluster.wait_until("somebody who does not read is hung up on", |_| {
            most = most.max(resident(pid));
            // A write to a connection that is gone fails.
            held.iter_mut().any(|stream| stream.write_all(b"\n").is_err())
        });
        let grown = most.saturating_sub(before);
        eprintln!("{how:?}: {} MiB", grown / MIB);
        assert!(grown < 320 * MIB, "{how:?}: {} MiB", grown / MIB);
        // What they held is there for who reads.
        held.clear();
        cluster.wait_until("a large read is answered", |cluster| {
            let answer = &cluster.run(&[mget("large", 0..LARGE_KEYS)], 1).0[0];
            answer["footer"]["found"] == LARGE_KEYS
        });
    }
}
