//! What stands before the body of a frame.

use super::{Flags, FrameError, Op};
use crate::MESSAGE_BYTES_MAX;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use tonic::Status;

/// Bytes before a frame's optional trace id and its body: the length and what has a fixed width.
pub const HEADER_BYTES: usize = LENGTH_BYTES + FIXED_BYTES;
pub(super) const LENGTH_BYTES: usize = 4;
/// Id, operation, flags, tenant, deadline.
pub(super) const FIXED_BYTES: usize = 8 + 1 + 1 + 2 + 4;
pub(super) const TRACE_BYTES: usize = 16;
/// Where the flags stand: behind length, id and operation.
pub(super) const FLAGS_AT: usize = LENGTH_BYTES + 8 + 1;

/// What stands before a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Chosen by the client, distinct among its requests under way; a reply has its request's. 0 is the connection's own.
    pub id: u64,
    /// The number of an [`Op`], of this release or a later one.
    pub op: u8,
    /// What it is.
    pub flags: Flags,
    /// Reserved; 0.
    pub tenant: u16,
    /// Microseconds that the request may take from now; 0 says nothing.
    pub deadline_us: u32,
    /// Of the trace that it belongs to.
    pub trace: Option<[u8; TRACE_BYTES]>,
}

impl Header {
    /// A whole request, without a deadline or trace.
    pub fn request(id: u64, op: Op) -> Self {
        Self { id, op: op as u8, flags: Flags::LAST, tenant: 0, deadline_us: 0, trace: None }
    }

    /// The same request, its reply as credit is given for it.
    pub fn credited(self) -> Self {
        Self { flags: self.flags.with(Flags::CREDITED), ..self }
    }

    /// Appends the frame that gives the reply of `id` credit for so many bytes more.
    pub fn encode_credit(id: u64, bytes: u32, out: &mut BytesMut) {
        let header = Self::request(id, Op::Credit);
        header.encode_bytes(&bytes.to_le_bytes(), out).expect("four bytes are no long message");
    }

    /// The header of a reply to this; `flags` say whether it is the last piece.
    pub fn reply(&self, flags: Flags) -> Self {
        Self { flags, deadline_us: 0, trace: None, ..*self }
    }

    /// An error that concerns the whole connection, which is closed after it.
    pub fn of_connection() -> Self {
        let flags = Flags::LAST.with(Flags::ERROR);
        Self { id: 0, op: 0, flags, tenant: 0, deadline_us: 0, trace: None }
    }

    /// Appends the frame with `body` to `out`.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is as before then.
    pub fn encode(&self, body: &impl Message, out: &mut BytesMut) -> Result<(), FrameError> {
        self.start(body.encoded_len(), out)?;
        body.encode(out).expect("a growing buffer has room");
        Ok(())
    }

    /// Appends the frame with a body that is encoded already.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is as before then.
    pub fn encode_bytes(&self, body: &[u8], out: &mut BytesMut) -> Result<(), FrameError> {
        self.start(body.len(), out)?;
        out.put_slice(body);
        Ok(())
    }

    /// The same with a body that lies in slices.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is as before then.
    pub fn encode_slices(&self, body: &[Bytes], out: &mut BytesMut) -> Result<(), FrameError> {
        self.start(body.iter().map(Bytes::len).sum(), out)?;
        body.iter().for_each(|slice| out.put_slice(slice));
        Ok(())
    }

    /// Appends an error frame: `status` in the envelope that gRPC errors carry.
    pub fn encode_error(&self, status: &Status, out: &mut BytesMut) {
        let header = Self { flags: Flags::LAST.with(Flags::ERROR), ..*self };
        let body = crate::error::envelope_of(status);
        if header.encode_bytes(&body, out).is_err() {
            // Nobody can read so long a text.
            let short = Status::new(status.code(), "an error too long to be told");
            header.encode_error(&short, out);
        }
    }

    /// Appends all of the frame but its body, which goes out behind it.
    ///
    /// # Errors
    /// [`FrameError::TooLong`]; `out` is as before then.
    pub fn encode_head(&self, body_bytes: usize, out: &mut BytesMut) -> Result<(), FrameError> {
        self.put_head(body_bytes, 0, out)
    }

    /// Takes what has a fixed width, but for the length; its bytes are there.
    pub(super) fn take(bytes: &mut impl Buf) -> Self {
        Self {
            id: bytes.get_u64_le(),
            op: bytes.get_u8(),
            flags: Flags(bytes.get_u8()),
            tenant: bytes.get_u16_le(),
            deadline_us: bytes.get_u32_le(),
            trace: None,
        }
    }

    /// Reserves room for the whole frame, so that a large body is written once and never moved.
    fn start(&self, body_bytes: usize, out: &mut BytesMut) -> Result<(), FrameError> {
        self.put_head(body_bytes, body_bytes, out)
    }

    fn put_head(&self, body_bytes: usize, room: usize, out: &mut BytesMut) -> Result<(), FrameError> {
        if MESSAGE_BYTES_MAX < body_bytes {
            return Err(FrameError::TooLong {
                bytes: body_bytes as u64,
                bytes_max: MESSAGE_BYTES_MAX as u64,
            });
        }
        let trace_bytes = self.trace.map_or(0, |_| TRACE_BYTES);
        let length = FIXED_BYTES + trace_bytes + body_bytes;
        out.reserve(HEADER_BYTES + trace_bytes + room);
        out.put_u32_le(u32::try_from(length).expect("the longest frame is far below 4 GiB"));
        out.put_u64_le(self.id);
        out.put_u8(self.op);
        let traced = if self.trace.is_some() { Flags::TRACE } else { Flags(0) };
        out.put_u8(self.flags.with(traced).0);
        out.put_u16_le(self.tenant);
        out.put_u32_le(self.deadline_us);
        if let Some(trace) = &self.trace {
            out.put_slice(trace);
        }
        Ok(())
    }
}
