//! The first 64 bytes of a file: what it is and where it belongs.

use super::{FORMAT_VERSION, FORMAT_VERSION_IDS};
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
    id: FileId,
    version: u32,
}

impl Header {
    /// Of a file in the format that every kind has.
    pub(crate) fn new(id: FileId) -> Self {
        Self { id, version: FORMAT_VERSION }
    }

    /// Of a data file whose keys are ids.
    pub(crate) fn of_ids(id: FileId) -> Self {
        debug_assert_eq!(id.kind, FileKind::Data);
        Self { id, version: FORMAT_VERSION_IDS }
    }

    /// Which file it is.
    pub(crate) fn id(self) -> FileId {
        self.id
    }

    /// Whether records say no lengths of keys, since all are ids.
    pub(crate) fn keys_are_ids(self) -> bool {
        self.version == FORMAT_VERSION_IDS
    }

    /// Those that a file with this identity can have.
    fn possible(id: FileId) -> impl Iterator<Item = Self> {
        let of_ids = (id.kind == FileKind::Data).then(|| Self::of_ids(id));
        [Self::new(id)].into_iter().chain(of_ids)
    }

    /// The one with this checksum.
    pub(crate) fn with_crc(id: FileId, crc: u32) -> Option<Self> {
        Self::possible(id).find(|header| header.crc() == crc)
    }

    /// Bytes covered by one checksum of a file of this kind.
    pub(crate) fn block_bytes(kind: FileKind) -> usize {
        match kind {
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
        put_u32(&mut bytes, 8, self.version);
        put_u32(&mut bytes, 12, list_tag(self.id.list));
        put_u32(&mut bytes, 16, self.id.partition.0);
        put_u32(&mut bytes, 20, self.id.set);
        put_u32(&mut bytes, 24, Self::block_bytes(self.id.kind) as u32);
        let crc = kith_types::crc32c(&bytes[..CRC_AT]);
        put_u32(&mut bytes, CRC_AT, crc);
        bytes
    }

    /// Reads the header of file `id`. A header has one spelling, so it is compared whole.
    pub(crate) fn read(bytes: &[u8], id: FileId) -> Result<Self, OpenError> {
        let file = || id.to_string();
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Damage { file: file(), fault: Fault::Content { what: "header", offset: 0 } }.into());
        };
        if let Some(header) = Self::possible(id).find(|header| *bytes == header.encode()) {
            return Ok(header);
        }
        if get_u32(bytes, CRC_AT) != kith_types::crc32c(&bytes[..CRC_AT]) {
            return Err(Damage { file: file(), fault: Fault::Checksum { what: "header", offset: 0 } }.into());
        }
        let version = get_u32(bytes, 8);
        let supported = Self::possible(id).map(|header| header.version).max().unwrap_or(FORMAT_VERSION);
        if bytes[..8] == *magic(id.kind) && version > supported {
            return Err(OpenError::FormatTooNew { file: file(), got: version, supported });
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
        let crc = kith_types::crc32c(&bytes[..CRC_AT]);
        put_u32(&mut bytes, CRC_AT, crc);
        bytes
    }

    #[test]
    fn only_data_files_can_be_of_ids() {
        let data = FileId { partition: PartitionId(12), list: None, kind: FileKind::Data, set: 0 };
        for header in [Header::new(data), Header::of_ids(data)] {
            assert_eq!(Header::read(&header.encode(), data).unwrap(), header);
            assert_eq!(Header::with_crc(data, header.crc()), Some(header));
        }
        assert_ne!(Header::new(data).crc(), Header::of_ids(data).crc());
        let mut third = Header::new(data).encode();
        put_u32(&mut third, 8, 3);
        assert!(matches!(
            Header::read(&sealed_again(third), data),
            Err(OpenError::FormatTooNew { got: 3, supported: 2, .. })
        ));
    }

    #[test]
    fn a_later_format_and_a_file_of_elsewhere_are_told_from_damage() {
        let id = FileId::postings(PartitionId(12), Direction::In);
        let bytes = Header::new(id).encode();
        assert_eq!(Header::read(&bytes, id).unwrap(), Header::new(id));
        let mut newer = bytes;
        put_u32(&mut newer, 8, 2);
        assert!(matches!(
            Header::read(&newer, id),
            Err(OpenError::Damaged(Damage { fault: Fault::Checksum { .. }, .. }))
        ));
        assert!(matches!(
            Header::read(&sealed_again(newer), id),
            Err(OpenError::FormatTooNew { got: 2, supported: 1, .. })
        ));
        for other in [FileId::postings(PartitionId(13), Direction::In), FileId::members(PartitionId(12))] {
            assert!(matches!(
                Header::read(&bytes, other),
                Err(OpenError::Damaged(Damage { fault: Fault::Foreign { .. }, .. }))
            ));
        }
    }
}
