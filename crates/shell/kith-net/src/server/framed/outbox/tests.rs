//! Tests that replies arrive unchanged, in whatever way they are sent.

use super::*;
use crate::server::connections::testing::known;
use kith_wire::frame::{self, Op};
use std::collections::BTreeMap;
use tokio::io::AsyncReadExt;

/// Everything that the outbox sends through a socket that accepts little at a time.
async fn sent(mut outbox: Outbox) -> BytesMut {
    let (mut ours, mut theirs) = tokio::io::duplex(5_000);
    let send = async move {
        while !outbox.is_empty() {
            std::future::poll_fn(|cx| outbox.poll_send(&mut ours, cx)).await.unwrap();
        }
    };
    let mut bytes = BytesMut::new();
    let read = async { while theirs.read_buf(&mut bytes).await.unwrap() > 0 {} };
    tokio::join!(send, read);
    bytes
}

#[tokio::test]
async fn a_reply_in_slices_comes_as_if_it_lay_in_one_place() {
    for bytes in
        [0, 10, COPIED_BYTES_MAX - 1, COPIED_BYTES_MAX, PART_BYTES - 1, PART_BYTES, 2 * PART_BYTES, 1_000_000]
    {
        let message: Bytes = (0..bytes).map(|at| (at * 7 / 3) as u8).collect();
        let (head, tail) = (message.len().min(7), message.len().saturating_sub(3));
        let slices =
            [message.slice(..head), message.slice(head..tail.max(head)), message.slice(tail.max(head)..)];
        let mut outbox = Outbox::default();
        outbox.acknowledge(&Header::request(1, Op::Alive));
        let connected = known();
        let charge = connected.charge_reply(bytes).unwrap();
        outbox.answer(&Header::request(2, Op::Evaluate), Ok((FrameReply::Encoded(slices), charge)));
        assert!(connected.reply_bytes() == if COPIED_BYTES_MAX <= bytes { bytes } else { 0 }, "{bytes}");
        outbox.acknowledge(&Header::request(3, Op::Alive));
        let mut sent = sent(outbox).await;
        let mut replies: BTreeMap<u64, (Vec<u8>, Flags)> = BTreeMap::new();
        while let Some(frame) = frame::decode(&mut sent).unwrap() {
            let (body, flags) = replies.entry(frame.header.id).or_default();
            assert!(frame.body.len() <= PART_BYTES && !flags.has(Flags::LAST));
            body.extend_from_slice(&frame.body);
            *flags = frame.header.flags;
        }
        assert!(sent.is_empty() && replies.values().all(|(_, flags)| *flags == Flags::LAST));
        assert!(replies[&2].0 == message && replies.len() == 3, "{bytes}");
        assert_eq!(connected.reply_bytes(), 0, "{bytes}");
    }
}
