//! Tests frames against their documentation, round trips and hostile bytes.

mod drawing;

use super::*;
use crate::v1;
use drawing::{OFFER, PLACE, drawn};
use kith_sim::golden;
use kith_types::ErrorCode;
use proptest::prelude::*;
use prost::Message;
use std::{fs, path::Path};

fn encoded(header: Header, body: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    header.encode_bytes(body, &mut out).unwrap();
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_drawing_shows_each_kind_of_frame_byte_by_byte() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/formats/framed-protocol.md");
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
                   crates/words/kith-wire/src/frame/tests.rs.";
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
    let (offer, slot) = (OFFER.encode(), PLACE.encode());
    assert_eq!((Offer::decode(&offer), SlotPlace::decode(&slot)), (Some(OFFER), Some(PLACE)));
    for bytes in 0..40 {
        let body = vec![1; bytes];
        assert_eq!(Offer::decode(&body).is_some(), bytes == offer.len(), "{bytes}");
        assert_eq!(SlotPlace::decode(&body).is_some(), bytes == slot.len(), "{bytes}");
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
fn prefaces_of_others_are_distinguished() {
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
                    // `begun` reports the frame as soon as its header has arrived.
                    let (header, body) = frames.get(came.len()).cloned().unwrap_or((Header::of_connection(), vec![]));
                    let is_incomplete = HEADER_BYTES <= buffer.len() && header.trace.is_none();
                    let expected = is_incomplete.then_some(FrameStart { header, body_bytes: body.len() });
                    prop_assert_eq!(begun, expected);
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
