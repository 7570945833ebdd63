//! Bodies in shared memory, which both ends of a connection within one machine map. Such bodies do not follow their
//! headers.

use bytes::{Buf, BufMut, Bytes};

const TOKEN_BYTES: usize = 16;

/// The memory that a server offers: an unnamed file of `slots` times `slot_bytes` bytes, followed by the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The server's file descriptor of the file.
    pub descriptor: u32,
    /// The number of slots, each of which holds one body.
    pub slots: u32,
    /// The number of bytes per slot.
    pub slot_bytes: u32,
    /// The token after the last slot, by which the client checks that it has opened the right file.
    pub token: [u8; TOKEN_BYTES],
}

/// The place of a body in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPlace {
    /// The slot that the body begins.
    pub slot: u32,
    /// The length of the body in bytes.
    pub bytes: u32,
}

impl Offer {
    const BYTES: usize = 3 * size_of::<u32>() + TOKEN_BYTES;

    /// Encodes the offer as the body of the reply to [`Op::Share`](super::Op::Share).
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let mut out = &mut bytes[..];
        out.put_u32_le(self.descriptor);
        out.put_u32_le(self.slots);
        out.put_u32_le(self.slot_bytes);
        out.put_slice(&self.token);
        bytes
    }

    /// Decodes an offer; `None` if the body is malformed.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut body: &[u8] =
            body.first_chunk::<{ Self::BYTES }>().filter(|bytes| bytes.len() == body.len())?;
        let (descriptor, slots, slot_bytes) = (body.get_u32_le(), body.get_u32_le(), body.get_u32_le());
        Some(Self { descriptor, slots, slot_bytes, token: *body.first_chunk()? })
    }

    /// Returns the number of bytes in all slots, which is also the offset of the token.
    pub fn body_bytes(&self) -> u64 {
        u64::from(self.slots) * u64::from(self.slot_bytes)
    }

    /// Returns the number of bytes in the file.
    pub fn file_bytes(&self) -> u64 {
        self.body_bytes() + TOKEN_BYTES as u64
    }
}

impl SlotPlace {
    const BYTES: usize = 2 * size_of::<u32>();

    /// Encodes the place as the body of a frame with [`Flags::SHARED`](super::Flags::SHARED).
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let mut out = &mut bytes[..];
        out.put_u32_le(self.slot);
        out.put_u32_le(self.bytes);
        bytes
    }

    /// Decodes a place; `None` if the body is malformed.
    pub fn decode(mut body: &[u8]) -> Option<Self> {
        (body.len() == Self::BYTES).then(|| Self { slot: body.get_u32_le(), bytes: body.get_u32_le() })
    }
}

/// Encodes slots as the body of [`Op::GiveBack`](super::Op::GiveBack).
pub fn encode_slots(slots: &[u32]) -> Bytes {
    slots.iter().flat_map(|slot| slot.to_le_bytes()).collect()
}

/// Decodes slots; `None` if the body is malformed.
pub fn decode_slots(body: &[u8]) -> Option<impl Iterator<Item = u32>> {
    let (slots, rest) = body.as_chunks();
    rest.is_empty().then(|| slots.iter().map(|slot| u32::from_le_bytes(*slot)))
}
