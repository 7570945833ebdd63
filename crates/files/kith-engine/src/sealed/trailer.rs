//! The last 64 bytes of a file: the places of its parts, and the seal over them.

use super::HEADER_BYTES;

/// The size of a trailer, which is that of a header.
pub const TRAILER_BYTES: usize = HEADER_BYTES;

const MAGIC: &[u8; 4] = b"seal";

/// The content of a trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    /// The size of header and body, which the block checksums cover.
    pub body_bytes: u64,
    /// The number of records, ids or pairs, depending on the kind of file.
    pub records: u64,
    /// Further numbers, whose meaning depends on the kind of file.
    pub fields: [u64; 4],
    /// crc32c of the checksum table.
    pub table_crc: u32,
    /// A copy of the header's checksum: a trailer belongs to one header.
    pub header_crc: u32,
}

impl Trailer {
    pub fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        let words = [self.body_bytes, self.records].into_iter().chain(self.fields);
        for (slot, word) in bytes.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes[48..52].copy_from_slice(&self.table_crc.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.header_crc.to_le_bytes());
        bytes[56..60].copy_from_slice(MAGIC);
        let crc = kith_types::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a trailer; `None` if its checksum or magic is wrong.
    pub fn decode(bytes: &[u8; TRAILER_BYTES]) -> Option<Self> {
        if trailer_crc(bytes) != kith_types::crc32c(&bytes[..60]) || &bytes[56..60] != MAGIC {
            return None;
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        Some(Self {
            body_bytes: word(0),
            records: word(8),
            fields: [word(16), word(24), word(32), word(40)],
            table_crc: half(48),
            header_crc: half(52),
        })
    }
}

/// The trailer's own checksum. The manifest lists it, and it covers the whole file.
pub fn trailer_crc(bytes: &[u8; TRAILER_BYTES]) -> u32 {
    u32::from_le_bytes(bytes[60..].try_into().expect("4 bytes"))
}

/// The size of header and body of a file of `file_bytes` with one checksum per `block_bytes`; `None` if no file has this
/// size.
pub fn body_bytes(file_bytes: u64, block_bytes: u64) -> Option<u64> {
    let checked = file_bytes.checked_sub(TRAILER_BYTES as u64)?;
    let blocks = checked.div_ceil(block_bytes + 4);
    let body = checked.checked_sub(4 * blocks)?;
    (body >= HEADER_BYTES as u64 && body.div_ceil(block_bytes) == blocks).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_file_tells_the_size_of_its_body() {
        for block in [1_024u64, 65_536] {
            for body in (64..4_000u64).chain([65_535, 65_536, 65_537, 1 << 40]) {
                let file = body + 4 * body.div_ceil(block) + 64;
                assert_eq!(body_bytes(file, block), Some(body));
            }
            for no_file in [0, 63, 64, 127, 131] {
                assert_eq!(body_bytes(no_file, block), None);
            }
            // At this size another byte of body would need another checksum, so no file has it.
            assert_eq!(body_bytes(block + 4 + 64 + 1, block), None);
        }
    }
}
