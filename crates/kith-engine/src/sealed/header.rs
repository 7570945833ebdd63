//! The first 64 bytes of a file: what it is and where it belongs.

use super::FORMAT_VERSION;
use crate::errors::{Damage, Fault, OpenError};
use crate::files::{FileId, FileKind};
use kith_types::Direction;

/// One cache line, so that the 64-byte lines of an index are aligned.
pub(crate) const HEADER_BYTES: usize = 64;

/// Where the header's own checksum stands.
const CRC_AT: usize = 60;

/// Bytes covered by one checksum in files that are proven record by record: 64 KiB, as measured best for fetching.
const DATA_BLOCK_BYTES: u32 = 64 * 1024;

/// Bytes covered by one checksum in files that are proven block by block at read. A crc32c of 1 KiB costs about
/// 50 ns and its table 0.4 % of space; architecture D6 allows up to 4 KiB.
const PROOF_BLOCK_BYTES: u32 = 1024;

/// The identity of a file, as its first bytes state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: FileId,
}

impl Header {
    /// Bytes covered by one checksum.
    pub(crate) fn block_bytes(self) -> usize {
        match self.id.kind {
            FileKind::Data => DATA_BLOCK_BYTES as usize,
            FileKind::Index | FileKind::Postings | FileKind::Members | FileKind::Dictionary => {
                PROOF_BLOCK_BYTES as usize
            }
        }
    }

    /// The checksum in the header. (That of header *and* checksum would be the same number for every file.)
    pub(crate) fn crc(self) -> u32 {
        get_u32(&self.encode(), CRC_AT)
    }

    pub(crate) fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(magic(self.id.kind));
        put_u32(&mut bytes, 8, FORMAT_VERSION);
        put_u32(&mut bytes, 12, list_tag(self.id.list));
        put_u32(&mut bytes, 16, self.id.partition.0);
        put_u32(&mut bytes, 20, self.id.set);
        put_u32(&mut bytes, 24, self.block_bytes() as u32);
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        put_u32(&mut bytes, CRC_AT, crc);
        bytes
    }

    /// Checks that `bytes` is the header of file `id`. A header has one spelling, so it is compared whole.
    pub(crate) fn check(bytes: &[u8], id: FileId) -> Result<(), OpenError> {
        let file = || id.to_string();
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Damage { file: file(), fault: Fault::Content { what: "header", offset: 0 } }.into());
        };
        let expected = Header { id }.encode();
        if *bytes == expected {
            return Ok(());
        }
        if get_u32(bytes, CRC_AT) != crc32c::crc32c(&bytes[..CRC_AT]) {
            return Err(Damage { file: file(), fault: Fault::Checksum { what: "header", offset: 0 } }.into());
        }
        let version = get_u32(bytes, 8);
        if bytes[..8] == expected[..8] && version > FORMAT_VERSION {
            return Err(OpenError::FormatTooNew { file: file(), got: version, supported: FORMAT_VERSION });
        }
        Err(Damage { file: file(), fault: Fault::Foreign { what: "header" } }.into())
    }
}

fn magic(kind: FileKind) -> &'static [u8; 8] {
    match kind {
        FileKind::Data => b"kithdata",
        FileKind::Index => b"kithindx",
        FileKind::Postings => b"kithpost",
        FileKind::Members => b"kithmemb",
        FileKind::Dictionary => b"kithdict",
    }
}

fn list_tag(list: Option<Direction>) -> u32 {
    match list {
        None => 0,
        Some(Direction::Both) => 1,
        Some(Direction::Out) => 2,
        Some(Direction::In) => 3,
    }
}

fn put_u32(bytes: &mut [u8; HEADER_BYTES], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn get_u32(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::PartitionId;

    fn sealed_again(mut bytes: [u8; HEADER_BYTES]) -> [u8; HEADER_BYTES] {
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        put_u32(&mut bytes, CRC_AT, crc);
        bytes
    }

    #[test]
    fn a_later_format_and_a_file_of_elsewhere_are_told_from_damage() {
        let id = FileId::postings(PartitionId(12), Direction::In);
        let bytes = Header { id }.encode();
        assert!(Header::check(&bytes, id).is_ok());
        let mut newer = bytes;
        put_u32(&mut newer, 8, 2);
        assert!(matches!(
            Header::check(&newer, id),
            Err(OpenError::Damaged(Damage { fault: Fault::Checksum { .. }, .. }))
        ));
        assert!(matches!(
            Header::check(&sealed_again(newer), id),
            Err(OpenError::FormatTooNew { got: 2, supported: 1, .. })
        ));
        for other in [FileId::postings(PartitionId(13), Direction::In), FileId::members(PartitionId(12))] {
            assert!(matches!(
                Header::check(&bytes, other),
                Err(OpenError::Damaged(Damage { fault: Fault::Foreign { .. }, .. }))
            ));
        }
    }
}
