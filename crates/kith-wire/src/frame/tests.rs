//! Frames against their drawing, against themselves and against hostile bytes.

use super::*;
use crate::v1;
use kith_types::ErrorCode;
use proptest::prelude::*;
use std::{fs, path::Path};

#[path = "../../../../testdata/formats/golden.rs"]
mod golden;

fn encoded(header: Header, body: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    header.encode_bytes(body, &mut out).unwrap();
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Of positions 0 and 2, and of the records beside them in the drawing.
const CRC32C_OF_FIRST: u32 = 0x45a7_76c8;

const OFFER: Offer = Offer { descriptor: 11, slots: 128, slot_bytes: 131_072, token: [0xcd; 16] };
const PLACE: SlotPlace = SlotPlace { slot: 3, bytes: 70_000 };

fn evaluate_drawn() -> v1::EvaluateRequest {
    v1::EvaluateRequest {
        header: Some(v1::RequestHeader { deadline_us: 5_000, ..Default::default() }),
        name: "g".to_owned(),
        version: 7,
        keys: vec![5, 133],
        ..Default::default()
    }
}

/// Each kind of frame, as `docs/formats/framed-protocol.md` draws it.
fn drawn() -> Vec<(&'static str, String)> {
    let with = |header: Header, body: &dyn Fn(Header, &mut BytesMut)| {
        let mut out = BytesMut::new();
        body(header, &mut out);
        hex(&out)
    };
    let evaluate = evaluate_drawn();
    let request = Header { deadline_us: 5_000, ..Header::request(1, Op::Evaluate) };
    let value = v1::Value { value: Some(v1::value::Value::Count(2)) };
    let reply = v1::EvaluateReply { value: Some(value), service_us: 9, ..Default::default() };
    let traced = Header { trace: Some([0xab; 16]), ..Header::request(2, Op::Query) };
    let query = v1::QueryRequest { graph: "g".to_owned(), ..Default::default() };
    let piece = v1::QueryReply { complete: true, ..Default::default() };
    let batch = v1::MultiGetRequest {
        store: "s".to_owned(),
        byte_keys: crate::body::encode_keys(&["ab", "c"].iter().collect()),
        ..Default::default()
    };
    let entries = [crate::body::RecordBody::Found(1), crate::body::RecordBody::Absent];
    let records = v1::MultiGetReply {
        records: crate::body::encode_records(&entries, [&b"v"[..]].into_iter(), 1),
        complete: true,
        ..Default::default()
    };
    let status = crate::status(ErrorCode::Overloaded, "busy", "wait");
    let mut drawn = vec![
        ("preface", hex(&Preface::OWN.encode())),
        ("evaluate", with(request, &|header, out| header.encode(&evaluate, out).unwrap())),
        (
            "evaluate, credited",
            with(request.credited(), &|header, out| header.encode(&evaluate, out).unwrap()),
        ),
        (
            "evaluate, reply",
            with(request.reply(Flags::LAST), &|header, out| header.encode(&reply, out).unwrap()),
        ),
        ("query, traced", with(traced, &|header, out| header.encode(&query, out).unwrap())),
        (
            "query, a piece of the reply",
            with(traced.reply(Flags(0)), &|header, out| header.encode(&piece, out).unwrap()),
        ),
        (
            "evaluate, the first part of a long reply",
            hex(&encoded(request.reply(Flags::PART), &[0x0a, 0x03, 0x0a])),
        ),
        ("ping", hex(&encoded(Header::request(3, Op::Ping), &[]))),
        ("cancel", hex(&encoded(Header::request(1, Op::Cancel), &[]))),
        ("alive", hex(&encoded(Header::request(4, Op::Alive), &[]))),
        (
            "multi_get",
            with(Header::request(5, Op::MultiGet), &|header, out| header.encode(&batch, out).unwrap()),
        ),
        (
            "multi_get, reply",
            with(Header::request(5, Op::MultiGet).reply(Flags::LAST), &|header, out| {
                header.encode(&records, out).unwrap()
            }),
        ),
        ("error", with(request.reply(Flags::LAST), &|header, out| header.encode_error(&status, out))),
        (
            "error of the connection",
            with(Header::of_connection(), &|header, out| header.encode_error(&status, out)),
        ),
    ];
    drawn.extend(drawn_shared(request));
    drawn.extend(drawn_stream(&batch, records.records));
    drawn
}

/// As [`drawn`], of memory that both ends see.
fn drawn_shared(evaluate: Header) -> Vec<(&'static str, String)> {
    let share = Header::request(1, Op::Share);
    let last = Flags::LAST.with(Flags::SHARED);
    vec![
        ("share", hex(&encoded(share, &[]))),
        ("share, reply", hex(&encoded(share.reply(Flags::LAST), &OFFER.encode()))),
        (
            "evaluate, the last part of a long reply, in shared memory",
            hex(&encoded(evaluate.reply(last), &PLACE.encode())),
        ),
        ("give_back", hex(&encoded(Header::request(0, Op::GiveBack), &encode_slots(&[3, 127])))),
    ]
}

/// As [`drawn`], of a reply in several messages.
fn drawn_stream(batch: &v1::MultiGetRequest, records: Bytes) -> Vec<(&'static str, String)> {
    let message = |header: Header, body: &dyn Fn(Header, &mut BytesMut)| {
        let mut out = BytesMut::new();
        body(header, &mut out);
        hex(&out)
    };
    let streamed = Header::request(6, Op::MultiGetStream).credited();
    let first = v1::MultiGetPiece {
        positions: crate::body::encode_set(&[0, 2]),
        records,
        served: Some(v1::Served { name: "s".to_owned(), version: 7 }),
        ..Default::default()
    };
    let footer = v1::StreamFooter {
        status: v1::StreamStatus::Partial.into(),
        found: 1,
        absent: 1,
        unanswered: 1,
        failures: vec![v1::StreamFailure {
            partitions: crate::body::encode_set(&[9]),
            code: "deadline_exceeded".to_owned(),
            nodes: vec![4],
            keys: 1,
        }],
        crc32c: CRC32C_OF_FIRST,
        total_us: 9,
        ..Default::default()
    };
    let last = v1::MultiGetPiece { footer: Some(footer), ..Default::default() };
    vec![
        ("multi_get_stream", message(streamed, &|header, out| header.encode(batch, out).unwrap())),
        (
            "multi_get_stream, a piece of the reply",
            message(streamed.reply(Flags(0)), &|header, out| header.encode(&first, out).unwrap()),
        ),
        (
            "multi_get_stream, its footer",
            message(streamed.reply(Flags::LAST), &|header, out| header.encode(&last, out).unwrap()),
        ),
        ("credit", message(streamed, &|header, out| Header::encode_credit(header.id, 524_288, out))),
    ]
}

#[test]
fn the_drawing_shows_each_kind_of_frame_byte_by_byte() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/framed-protocol.md");
    let text = fs::read_to_string(file).unwrap();
    let shown: Vec<String> = text.lines().map(|line| line.replace("| ", "")).collect();
    let missing: Vec<String> = drawn()
        .into_iter()
        .map(|(name, bytes)| format!("{name}: {bytes}"))
        .filter(|line| !shown.contains(line))
        .collect();
    assert!(missing.is_empty(), "the drawing lacks\n{}", missing.join("\n"));
}

#[test]
fn golden_bytes_of_frames() {
    let byte = |byte: &str| u8::from_str_radix(byte, 16).unwrap();
    let bytes = |hex: String| hex.split(' ').map(byte).collect();
    let made: Vec<_> = drawn().into_iter().map(|(name, hex)| (name.to_owned(), bytes(hex))).collect();
    let comment = "The preface and each kind of frame: docs/formats/framed-protocol.md. The test is \
                   crates/kith-wire/src/frame/tests.rs.";
    let golden = golden::hex("frames.txt", comment, &made);
    assert_eq!(Preface::decode(golden[0].1[..].try_into().unwrap()), Ok(Preface::OWN));
    for (name, bytes) in &golden[1..] {
        let mut buffer = BytesMut::from(&bytes[..]);
        let frame = decode(&mut buffer).unwrap().expect("a whole frame");
        assert!(buffer.is_empty(), "{name}");
        assert_eq!(encoded(frame.header, &frame.body), bytes[..], "{name}");
    }
}

#[test]
fn an_error_comes_back_with_its_code_message_and_details() {
    let status = crate::status(ErrorCode::Damaged, "a block is bad", "load again");
    let mut out = BytesMut::new();
    Header::request(9, Op::Evaluate).reply(Flags::LAST).encode_error(&status, &mut out);
    let frame = decode(&mut out).unwrap().unwrap();
    assert!(frame.header.flags.has(Flags::ERROR) && frame.header.id == 9);
    let back = frame.status();
    assert_eq!((back.code(), back.message()), (tonic::Code::DataLoss, "a block is bad"));
    assert_eq!(crate::code_of(&back), ErrorCode::Damaged);
    let plain = Status::internal("no details");
    Header::of_connection().encode_error(&plain, &mut out);
    let back = decode(&mut out).unwrap().unwrap().status();
    assert_eq!((back.code(), back.message()), (tonic::Code::Internal, "no details"));
}

#[test]
fn credit_is_four_bytes_and_nothing_else() {
    let mut out = BytesMut::new();
    Header::encode_credit(7, u32::MAX, &mut out);
    let frame = decode(&mut out).unwrap().unwrap();
    assert_eq!((frame.header.id, frame.header.op, frame.credit()), (7, Op::Credit as u8, Some(u32::MAX)));
    for body in [&[][..], &[1, 2, 3], &[0; 5]] {
        let mut odd = encoded(Header::request(7, Op::Credit), body);
        assert_eq!(decode(&mut odd).unwrap().unwrap().credit(), None);
    }
}

#[test]
fn bodies_of_shared_memory_have_one_length_each() {
    let (offer, place) = (OFFER.encode(), PLACE.encode());
    assert_eq!((Offer::decode(&offer), SlotPlace::decode(&place)), (Some(OFFER), Some(PLACE)));
    for bytes in 0..40 {
        let body = vec![1; bytes];
        assert_eq!(Offer::decode(&body).is_some(), bytes == offer.len(), "{bytes}");
        assert_eq!(SlotPlace::decode(&body).is_some(), bytes == place.len(), "{bytes}");
        assert_eq!(decode_slots(&body).map(Iterator::count), (bytes % 4 == 0).then_some(bytes / 4));
    }
    let slots = [0, 7, u32::MAX];
    assert!(decode_slots(&encode_slots(&slots)).unwrap().eq(slots));
    assert_eq!((OFFER.body_bytes(), OFFER.file_bytes()), (16 << 20, (16 << 20) + 16));
}

#[test]
fn impossible_lengths_are_refused_before_anything_is_allocated() {
    let mut short = BytesMut::from(&15_u32.to_le_bytes()[..]);
    assert_eq!(decode(&mut short), Err(FrameError::TooShort { bytes: 15 }));
    let mut long = BytesMut::from(&u32::MAX.to_le_bytes()[..]);
    assert_eq!(
        decode(&mut long),
        Err(FrameError::TooLong { bytes: u64::from(u32::MAX), bytes_max: MESSAGE_BYTES_MAX as u64 + 32 })
    );
    let mut traced = encoded(Header { flags: Flags::TRACE, ..Header::request(1, Op::Ping) }, &[7; 15]);
    assert_eq!(decode(&mut traced), Err(FrameError::TooShort { bytes: 31 }));
}

#[test]
fn a_body_is_never_longer_than_allowed() {
    let request = Header::request(1, Op::Ping);
    let traced = Header { trace: Some([7; 16]), ..request };
    for (header, body_bytes, is_taken) in
        [(request, 10, true), (request, 11, false), (traced, 10, true), (traced, 11, false)]
    {
        let mut buffer = encoded(header, &vec![1; body_bytes]);
        let taken = take(&mut buffer, 10);
        assert_eq!(taken.is_ok(), is_taken, "{taken:?}");
    }
    // A frame whose header promises no trace id has no room for one in its body.
    let mut longer = encoded(request, &[1; 26]);
    assert_eq!(take(&mut longer, 10), Err(FrameError::TooLong { bytes: 42, bytes_max: 26 }));
}

#[test]
fn prefaces_of_others_are_told_apart() {
    assert_eq!(Preface::decode(Preface::OWN.encode()), Ok(Preface::OWN));
    assert_eq!(Preface::decode(*b"PRI * HT"), Err(PrefaceError::Foreign));
    assert_eq!(Preface::decode(*b"KITHFR\0\0"), Err(PrefaceError::Version));
    assert_eq!(Preface::decode(*b"KITHFR\x02\0"), Ok(Preface { version: 2 }), "a later release");
    assert!(Preface::may_begin(b"") && Preface::may_begin(b"KI") && !Preface::may_begin(b"P"));
}

prop_compose! {
    fn any_header()(
        id: u64, op: u8, flags in 0..16_u8, tenant: u16, deadline_us: u32, trace: Option<[u8; 16]>,
    ) -> Header {
        let flags = Flags(flags & !Flags::TRACE.0);
        Header { id, op, flags, tenant, deadline_us, trace }
    }
}

proptest! {
    #[test]
    fn frames_come_back_however_the_bytes_arrive(
        frames in prop::collection::vec((any_header(), prop::collection::vec(any::<u8>(), 0..200)), 0..6),
        step in 1..97_usize,
    ) {
        let mut sent = BytesMut::new();
        for (header, body) in &frames {
            header.encode_bytes(body, &mut sent).unwrap();
        }
        let (mut buffer, mut came) = (BytesMut::new(), Vec::new());
        for bytes in sent.chunks(step) {
            buffer.extend_from_slice(bytes);
            loop {
                let begun = begun(&buffer);
                let Some(frame) = decode(&mut buffer).unwrap() else {
                    // Told of what is coming as soon as its header is there.
                    let (header, body) = frames.get(came.len()).cloned().unwrap_or((Header::of_connection(), vec![]));
                    let is_told = HEADER_BYTES <= buffer.len() && header.trace.is_none();
                    let told = is_told.then_some(Begun { header, body_bytes: body.len() });
                    prop_assert_eq!(begun, told);
                    break;
                };
                prop_assert_eq!(begun, None, "whole");
                let traced = if frame.header.trace.is_some() { Flags::TRACE.0 } else { 0 };
                let flags = Flags(frame.header.flags.0 & !traced);
                came.push((Header { flags, ..frame.header }, frame.body.to_vec()));
            }
        }
        prop_assert_eq!(came, frames);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn hostile_bytes_never_panic(bytes: Vec<u8>, length in 0..64_u32) {
        for start in [bytes.clone(), [&length.to_le_bytes()[..], &bytes].concat()] {
            let mut buffer = BytesMut::from(&start[..]);
            let _ = begun(&buffer);
            while let Ok(Some(frame)) = decode(&mut buffer) {
                let _ = frame.status();
                let _ = v1::EvaluateRequest::decode(frame.body.clone());
                let _ = v1::QueryReply::decode(frame.body);
            }
        }
    }
}
