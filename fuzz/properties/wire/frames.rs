//! Frames, and the fixed bodies of some of them.

use crate::properties::{Seed, take};
use bytes::BytesMut;
use kith_types::ErrorCode;
use kith_wire::frame::{
    self, Flags, Frame, FrameError, HEADER_BYTES, Header, Offer, Op, PREFACE_BYTES, Preface, ReceivedItem,
    SlotPlace, decode_slots, encode_slots,
};
use kith_wire::{MESSAGE_BYTES_MAX, detail_of, status, v1};

/// Input: the number of a limit for bodies, then what a connection receives.
pub fn check(mut input: &[u8]) {
    let bodies_max = [0, 16, 100, MESSAGE_BYTES_MAX];
    let body_bytes_max = bodies_max[usize::from(take(&mut input)) % bodies_max.len()];
    let (frames, rest, error) = received(&[input], body_bytes_max);
    let mut again = BytesMut::new();
    for frame in &frames {
        assert!(frame.body.len() <= body_bytes_max, "a body of {} bytes", frame.body.len());
        frame.header.encode_bytes(&frame.body, &mut again).expect("a frame that came can be sent");
        bodies(frame);
    }
    assert_eq!(again[..], input[..again.len()], "frames are encoded as they came");
    if error.is_none() {
        assert_eq!(again.len() + rest, input.len(), "no byte is lost");
    }
    let single: Vec<&[u8]> = input.chunks(1).collect();
    let (by_byte, _, by_byte_error) = received(&single, body_bytes_max);
    assert_eq!(by_byte, frames, "frames do not depend on how their bytes come");
    assert_eq!(by_byte_error, error);
    if let Some(bytes) = input.first_chunk::<PREFACE_BYTES>()
        && let Ok(preface) = Preface::decode(*bytes)
    {
        assert_eq!(preface.encode(), *bytes);
    }
}

/// The frames in `pieces`, the number of bytes that are left, and the error that ended the connection.
fn received(pieces: &[&[u8]], body_bytes_max: usize) -> (Vec<Frame>, usize, Option<FrameError>) {
    let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let announced = frame::begun(&buffer);
            match frame::take(&mut buffer, body_bytes_max) {
                Ok(ReceivedItem::Frame(frame)) => {
                    assert_eq!(announced, None, "a whole frame is not reported as one that has begun");
                    frames.push(frame);
                }
                Ok(ReceivedItem::Begun { header, bytes }) => {
                    assert!(buffer.len() < bytes);
                    if let Some(announced) = announced {
                        assert_eq!((announced.header, HEADER_BYTES + announced.body_bytes), (header, bytes));
                    }
                    break;
                }
                Ok(ReceivedItem::Nothing) => break,
                Err(error) => return (frames, buffer.len(), Some(error)),
            }
        }
    }
    (frames, buffer.len(), None)
}

fn bodies(frame: &Frame) {
    let body = &frame.body;
    if let Some(offer) = Offer::decode(body) {
        assert_eq!(offer.encode()[..], body[..]);
        assert!(offer.body_bytes() < offer.file_bytes());
    }
    if let Some(slot) = SlotPlace::decode(body) {
        assert_eq!(slot.encode()[..], body[..]);
    }
    if let Some(slots) = decode_slots(body) {
        assert_eq!(encode_slots(&slots.collect::<Vec<_>>()), *body);
    }
    assert_eq!(frame.credit().is_some(), body.len() == 4);
    let _ = detail_of(&frame.status());
    let _ = Op::from_number(frame.header.op).map(Op::name);
}

/// The frames that `write` writes, behind the byte that limits their length.
fn stream(limit: u8, write: impl Fn(&mut BytesMut)) -> Vec<u8> {
    let mut out = BytesMut::new();
    write(&mut out);
    [&[limit][..], &out].concat()
}

fn put(header: Header, body: &[u8], out: &mut BytesMut) {
    header.encode_bytes(body, out).expect("a short body");
}

pub fn seeds() -> Vec<Seed> {
    let request = Header::request(7, Op::Evaluate);
    let error = status(ErrorCode::MemberNotFound, "member 1 is not in the graph", "check the id");
    vec![
        ("preface", [&[3][..], &Preface::OWN.encode()].concat()),
        ("requests", stream(3, |out| requests(request, out))),
        ("trace", stream(3, |out| put(Header { trace: Some([9; 16]), ..request }, b"body", out))),
        ("error", stream(3, |out| request.encode_error(&error, out))),
        ("shared", stream(3, |out| shared(request, out))),
        ("longest", stream(1, |out| put(request, &[1; 16], out))),
        ("longer-by-a-trace-id", stream(1, |out| put(request, &[1; 32], out))),
        ("shorter-than-its-header", [&[3][..], &15u32.to_le_bytes(), &[0; 15]].concat()),
        ("trace-that-is-not-there", {
            let mut bytes = stream(3, |out| put(request, b"", out));
            bytes[1 + 13] |= Flags::TRACE.0;
            bytes
        }),
        ("endless", [&[3][..], &u32::MAX.to_le_bytes(), &[0; 16]].concat()),
    ]
}

/// Two requests, credit for the first, and the second cancelled.
fn requests(request: Header, out: &mut BytesMut) {
    let message = v1::PingRequest::default();
    request.encode(&message, out).expect("a short message");
    put(Header { deadline_us: 250_000, ..request }.credited(), b"0123456789", out);
    Header::encode_credit(7, 1 << 20, out);
    put(Header::request(8, Op::Cancel), b"", out);
}

/// Memory that is offered, a reply that lies in it, and slots that are given back.
fn shared(request: Header, out: &mut BytesMut) {
    let offer = Offer { descriptor: 5, slots: 16, slot_bytes: 1 << 20, token: [3; 16] };
    put(Header::request(1, Op::Share), &offer.encode(), out);
    let reply_slot = SlotPlace { slot: 3, bytes: 99 };
    put(request.reply(Flags::LAST.with(Flags::SHARED)), &reply_slot.encode(), out);
    put(Header::request(2, Op::GiveBack), &encode_slots(&[3, 4]), out);
}
