//! One frame of each kind, as `docs/formats/framed-protocol.md` draws them.

use super::{encoded, hex};
use crate::frame::*;
use crate::v1;
use kith_types::ErrorCode;

/// The checksum of positions 0 and 2, followed by the records of the drawing.
const CRC32C_OF_FIRST: u32 = 0x45a7_76c8;

pub(super) const OFFER: Offer = Offer { descriptor: 11, slots: 128, slot_bytes: 131_072, token: [0xcd; 16] };
pub(super) const PLACE: SlotPlace = SlotPlace { slot: 3, bytes: 70_000 };

fn evaluate_drawn() -> v1::EvaluateRequest {
    v1::EvaluateRequest {
        header: Some(v1::RequestHeader { deadline_us: 5_000, ..Default::default() }),
        name: "g".to_owned(),
        version: 7,
        keys: vec![5, 133],
        ..Default::default()
    }
}

/// Encodes each kind of frame as `docs/formats/framed-protocol.md` draws it.
pub(super) fn drawn() -> Vec<(&'static str, String)> {
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

/// As [`drawn`], for frames that concern shared memory.
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

/// As [`drawn`], for a reply of several messages.
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
        served: Some(v1::Served::of_version("s".to_owned(), 7)),
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
