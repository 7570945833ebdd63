//! Bodies that do not follow their headers: they lie in memory that both ends of a connection within one machine map.

use bytes::{Buf, BufMut, Bytes};

const TOKEN_BYTES: usize = 16;

/// What a server says of the memory it offers. It is a file without a name, of `slots` times `slot_bytes` bytes and the token behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The server's descriptor of the file.
    pub descriptor: u32,
    /// How many bodies may lie there at a time.
    pub slots: u32,
    /// The most bytes of each.
    pub slot_bytes: u32,
    /// What stands behind the last slot, so that no other file is taken for it.
    pub token: [u8; TOKEN_BYTES],
}

/// Where a body lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPlace {
    /// The slot that it begins.
    pub slot: u32,
    /// Its length.
    pub bytes: u32,
}

impl Offer {
    const BYTES: usize = 3 * size_of::<u32>() + TOKEN_BYTES;

    /// As the body of the reply to [`Op::Share`](super::Op::Share).
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let mut out = &mut bytes[..];
        out.put_u32_le(self.descriptor);
        out.put_u32_le(self.slots);
        out.put_u32_le(self.slot_bytes);
        out.put_slice(&self.token);
        bytes
    }

    /// From such a body; `None` if it is none.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut body: &[u8] =
            body.first_chunk::<{ Self::BYTES }>().filter(|bytes| bytes.len() == body.len())?;
        let (descriptor, slots, slot_bytes) = (body.get_u32_le(), body.get_u32_le(), body.get_u32_le());
        Some(Self { descriptor, slots, slot_bytes, token: *body.first_chunk()? })
    }

    /// Bytes of all slots, behind which the token stands.
    pub fn body_bytes(&self) -> u64 {
        u64::from(self.slots) * u64::from(self.slot_bytes)
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.body_bytes() + TOKEN_BYTES as u64
    }
}

impl SlotPlace {
    const BYTES: usize = 2 * size_of::<u32>();

    /// As the body of a frame with [`Flags::SHARED`](super::Flags::SHARED).
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let mut out = &mut bytes[..];
        out.put_u32_le(self.slot);
        out.put_u32_le(self.bytes);
        bytes
    }

    /// From such a body; `None` if it is none.
    pub fn decode(mut body: &[u8]) -> Option<Self> {
        (body.len() == Self::BYTES).then(|| Self { slot: body.get_u32_le(), bytes: body.get_u32_le() })
    }
}

/// Slots as the body of [`Op::GiveBack`](super::Op::GiveBack).
pub fn encode_slots(slots: &[u32]) -> Bytes {
    slots.iter().flat_map(|slot| slot.to_le_bytes()).collect()
}

/// Slots from such a body; `None` if it is none.
pub fn decode_slots(body: &[u8]) -> Option<impl Iterator<Item = u32>> {
    let (slots, rest) = body.as_chunks();
    rest.is_empty().then(|| slots.iter().map(|slot| u32::from_le_bytes(*slot)))
}
