//! Received bytes of a connection that were not taken out yet. A frame gets room as its bytes arrive, and is charged for
//! it.

use crate::{
    Charge,
    server::connections::{OpenConnection, STRANGER_FRAME_BYTES_MAX, UNCHARGED_BYTES, room},
};
use bytes::{Buf, BufMut, BytesMut};
use kith_wire::{
    REQUEST_BYTES_MAX,
    frame::{self, Frame, FrameError, Header, ReceivedItem},
};
use std::{
    io,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most that one read takes, unless a longer frame has begun.
const READ_BYTES_MAX: usize = 64 << 10;
/// How much one read takes from a peer that sends little or is idle; such a connection holds no more memory than this.
const READ_BYTES_MIN: usize = 4 << 10;

/// The most that one read takes of a longer frame that has begun.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// After this many bytes a frame is believed to be as long as it claims, and gets all of its room.
const PLACED_BYTES: usize = 2 << 20;
/// How often a large request is in memory: as it arrived, and as it is processed.
const COPIES: usize = 2;

/// Received bytes of one connection that were not taken out yet.
pub(super) struct Inbox {
    connected: Arc<OpenConnection>,
    bytes: BytesMut,
    /// How much the next read takes. It grows when reads fill the buffer.
    read_bytes: usize,
    /// The charge for the frame that has begun, if it is a large one.
    charge: Option<Charge>,
    /// Missing bytes of a frame that was refused. They are discarded as they arrive.
    refused: usize,
    /// The number of bytes that have arrived so far.
    pub received: u64,
}

/// The bytes at the start of the inbox.
pub(super) enum NextFrame {
    /// A whole frame.
    Frame(Frame),
    /// The header of a frame for which there is no memory. None of the frame is kept.
    Refused(Header),
    /// The start of a frame, or nothing.
    More,
}

impl Inbox {
    pub fn new(connected: Arc<OpenConnection>) -> Self {
        let (bytes, read_bytes) = (BytesMut::new(), READ_BYTES_MIN);
        Self { connected, bytes, read_bytes, charge: None, refused: 0, received: 0 }
    }

    /// Whether a frame has begun.
    pub fn has_begun(&self) -> bool {
        !self.bytes.is_empty() || 0 < self.refused
    }

    /// Frees buffers that an idle connection does not need.
    pub fn rest(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
            self.read_bytes = READ_BYTES_MIN;
        }
    }

    /// Reads once. Returns how many bytes arrived.
    pub fn poll_read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        // A large frame that has begun has its room already. Reserving more would move it to a buffer twice as large.
        if self.charge.is_none() && self.bytes.capacity() - self.bytes.len() < self.read_bytes / 4 {
            self.bytes.reserve(self.read_bytes);
        }
        // A read takes little more than what is charged.
        let mut room = (&mut self.bytes).limit(PIECE_BYTES_MAX);
        let read = std::task::ready!(pin!(stream.read_buf(&mut room)).poll(cx))?;
        self.received += read as u64;
        if self.bytes.len() == self.bytes.capacity() && self.connected.is_known() {
            self.read_bytes = (2 * self.read_bytes).min(READ_BYTES_MAX);
        }
        Poll::Ready(Ok(read))
    }

    /// Takes the frame at the start of the inbox.
    ///
    /// # Errors
    /// [`FrameError`] if the peer violates the protocol; the connection cannot continue.
    pub fn next(&mut self) -> Result<NextFrame, FrameError> {
        if 0 < self.refused {
            let gone = self.refused.min(self.bytes.len());
            self.bytes.advance(gone);
            self.refused -= gone;
            if 0 < self.refused {
                return Ok(NextFrame::More);
            }
        }
        let body_max = if self.connected.is_known() { REQUEST_BYTES_MAX } else { STRANGER_FRAME_BYTES_MAX };
        match frame::take(&mut self.bytes, body_max)? {
            ReceivedItem::Frame(frame) => Ok(self.paid(frame)),
            ReceivedItem::Begun { header, bytes } => Ok(self.make_room(header, bytes)),
            ReceivedItem::Nothing => Ok(NextFrame::More),
        }
    }

    /// Returns a whole frame. Its body carries the charge, which is given back when the body is dropped. The body is
    /// charged twice, because answering the request makes a copy: it is decoded, or its keys are sent on.
    fn paid(&mut self, frame: Frame) -> NextFrame {
        let Some(mut charge) = self.charge.take() else { return NextFrame::Frame(frame) };
        if !charge.grow_to(COPIES * frame.body.len()) {
            return NextFrame::Refused(frame.header);
        }
        NextFrame::Frame(Frame { body: charge.pay_for(frame.body), ..frame })
    }

    /// Reserves room for the frame that has begun, whose length is `bytes`.
    fn make_room(&mut self, header: Header, bytes: usize) -> NextFrame {
        if bytes <= UNCHARGED_BYTES {
            return NextFrame::More;
        }
        let wanted = room(bytes, self.bytes.len());
        if self.charge.get_or_insert_with(|| self.connected.charge()).grow_to(wanted) {
            // A long frame gets all of its room at once, so that it is not moved again and again. Memory that was not
            // written to costs nothing yet.
            let capacity = if PLACED_BYTES <= self.bytes.len() { bytes } else { wanted };
            self.bytes.reserve(capacity - self.bytes.len());
            return NextFrame::More;
        }
        self.charge = None;
        self.refused = bytes - self.bytes.len();
        self.bytes = BytesMut::new();
        NextFrame::Refused(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::connections::testing::known;
    use kith_wire::frame::Op;

    /// The first `came` bytes of the body of a frame of `body_bytes` bytes, with the frame's header.
    fn begun(body_bytes: usize, came: usize) -> BytesMut {
        let mut bytes = BytesMut::new();
        Header::request(7, Op::MultiGet).encode_head(body_bytes, &mut bytes).expect("it is not too long");
        bytes.resize(bytes.len() + came, 0);
        bytes
    }

    fn inbox(connected: &Arc<OpenConnection>, bytes: BytesMut) -> Inbox {
        Inbox { bytes, ..Inbox::new(Arc::clone(connected)) }
    }

    #[test]
    fn a_frame_that_only_claims_to_be_long_gets_no_room() {
        let connected = known();
        let mut inbox = inbox(&connected, begun(64 << 20, 100));
        assert!(matches!(inbox.next(), Ok(NextFrame::More)));
        assert!(inbox.bytes.capacity() < 128 << 10, "{}", inbox.bytes.capacity());
        inbox.bytes.resize(1 << 20, 0);
        assert!(matches!(inbox.next(), Ok(NextFrame::More)));
        assert!(inbox.bytes.capacity() < 4 << 20, "{}", inbox.bytes.capacity());
        inbox.bytes.resize(PLACED_BYTES, 0);
        assert!(matches!(inbox.next(), Ok(NextFrame::More)));
        assert!(64 << 20 < inbox.bytes.capacity(), "it is not moved any more");
    }

    #[test]
    fn what_is_not_paid_for_is_refused_and_thrown_away_and_the_connection_goes_on() {
        let connected = known();
        let mut first = inbox(&connected, begun(64 << 20, 16 << 20));
        assert!(matches!(first.next(), Ok(NextFrame::More)));
        // The budget is that of the connection, so a second inbox stands for another frame of it.
        let mut other = inbox(&connected, begun(80 << 20, 20 << 20));
        assert!(matches!(other.next(), Ok(NextFrame::More)));
        let mut second = inbox(&connected, begun(48 << 20, 12 << 20));
        let Ok(NextFrame::Refused(header)) = second.next() else { panic!("there is no room for both") };
        assert_eq!((header.id, second.bytes.len(), second.refused), (7, 0, 36 << 20));
        second.bytes.resize(36 << 20, 0);
        second.bytes.extend_from_slice(&begun(3, 3));
        assert!(matches!(second.next(), Ok(NextFrame::Frame(frame)) if frame.body.len() == 3));
        drop((first, other));
        let mut third = inbox(&connected, begun(48 << 20, 48 << 20));
        third.bytes.truncate(13 << 20);
        assert!(matches!(third.next(), Ok(NextFrame::More)));
        third.bytes.resize((48 << 20) + frame::HEADER_BYTES, 0);
        let Ok(NextFrame::Frame(frame)) = third.next() else { panic!("it is whole") };
        let mut fourth = inbox(&connected, begun(80 << 20, 20 << 20));
        assert!(
            matches!(fourth.next(), Ok(NextFrame::Refused(_))),
            "a body is paid for twice while somebody has it"
        );
        drop(frame);
        let mut fifth = inbox(&connected, begun(80 << 20, 20 << 20));
        assert!(matches!(fifth.next(), Ok(NextFrame::More)));
    }

    #[test]
    fn a_frame_whose_copy_is_not_paid_for_is_refused_when_it_is_whole() {
        let connected = known();
        let mut first = inbox(&connected, begun(80 << 20, 20 << 20));
        let mut second = inbox(&connected, begun(80 << 20, 20 << 20));
        for inbox in [&mut first, &mut second] {
            assert!(matches!(inbox.next(), Ok(NextFrame::More)));
            inbox.bytes.resize((80 << 20) + frame::HEADER_BYTES, 0);
        }
        assert!(matches!(first.next(), Ok(NextFrame::Refused(header)) if header.id == 7));
        assert!(matches!(second.next(), Ok(NextFrame::Frame(_))));
    }

    #[tokio::test]
    async fn a_large_frame_is_not_moved_for_its_last_bytes() {
        let (mut peer, mut own) = tokio::io::duplex(1 << 20);
        let mut inbox = inbox(&known(), begun(8 << 20, (8 << 20) - 2_000));
        assert!(matches!(inbox.next(), Ok(NextFrame::More)));
        let capacity = inbox.bytes.capacity();
        for came in [1_000, 999] {
            tokio::io::AsyncWriteExt::write_all(&mut peer, &vec![0; came]).await.expect("it takes bytes");
            let read = std::future::poll_fn(|cx| inbox.poll_read(&mut own, cx)).await;
            assert_eq!(read.expect("it reads"), came);
            assert!(matches!(inbox.next(), Ok(NextFrame::More)));
            assert_eq!(inbox.bytes.capacity(), capacity);
        }
    }

    #[tokio::test]
    async fn a_connection_on_which_little_comes_holds_little() {
        let (mut peer, mut own) = tokio::io::duplex(1 << 20);
        let mut inbox = Inbox::new(known());
        let small = begun(100, 100);
        let large = begun(UNCHARGED_BYTES - frame::HEADER_BYTES, UNCHARGED_BYTES - frame::HEADER_BYTES);
        for (sent, least, most) in
            [(&small, 0, READ_BYTES_MIN), (&large, 2 * READ_BYTES_MIN, 4 * READ_BYTES_MAX)]
        {
            for _ in 0..50 {
                tokio::io::AsyncWriteExt::write_all(&mut peer, sent).await.expect("it takes bytes");
                let mut left = sent.len();
                while 0 < left {
                    left -= std::future::poll_fn(|cx| inbox.poll_read(&mut own, cx)).await.expect("it reads");
                }
                while let Ok(NextFrame::Frame(_)) = inbox.next() {}
            }
            let held = inbox.bytes.capacity().max(inbox.read_bytes);
            assert!(least <= held && held <= most, "{held}");
        }
        inbox.rest();
        assert_eq!((inbox.bytes.capacity(), inbox.read_bytes), (0, READ_BYTES_MIN));
    }
}
