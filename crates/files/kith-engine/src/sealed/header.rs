//! The first 64 bytes of a file: its kind and identity.

use super::FORMAT_VERSION;
use crate::errors::Fault;
use crate::files::{FileId, FileKind};
use kith_types::Direction;

/// The size of a header: one cache line, so that the 64-byte lines of an index are aligned.
pub const HEADER_BYTES: usize = 64;

/// The offset of the format version.
const VERSION_AT: usize = 8;
/// The offset of the flag that all keys are ids.
const KEYS_AT: usize = 28;
/// The offset of the header's own checksum.
const CRC_AT: usize = 60;

/// The bytes that one checksum covers in files that are verified record by record: 64 KiB, which was measured to be best
/// for fetching.
const DATA_BLOCK_BYTES: u32 = 64 * 1024;

/// The bytes that one checksum covers in files that are verified block by block when they are read. A crc32c of 1 KiB costs
/// about 50 ns, and its table takes 0.4 % of the space.
const PROOF_BLOCK_BYTES: u32 = 1024;

/// The identity of a file, as its first bytes encode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    id: FileId,
    keys_are_ids: bool,
}

impl Header {
    /// The header of a file that is not a data file with ids as keys.
    pub fn new(id: FileId) -> Self {
        Self { id, keys_are_ids: false }
    }

    /// The header of a data file whose keys are ids.
    pub fn of_ids(id: FileId) -> Self {
        debug_assert_eq!(id.kind, FileKind::Data);
        Self { id, keys_are_ids: true }
    }

    /// The identity of the file.
    pub fn id(self) -> FileId {
        self.id
    }

    /// Whether records leave out the lengths of keys, because all keys are ids.
    pub fn keys_are_ids(self) -> bool {
        self.keys_are_ids
    }

    /// The headers that a file with this identity can have.
    fn possible(id: FileId) -> impl Iterator<Item = Self> {
        let of_ids = (id.kind == FileKind::Data).then(|| Self::of_ids(id));
        [Self::new(id)].into_iter().chain(of_ids)
    }

    /// The header with this checksum, if there is one.
    pub fn with_crc(id: FileId, crc: u32) -> Option<Self> {
        Self::possible(id).find(|header| header.crc() == crc)
    }

    /// The bytes that one checksum covers in a file of this kind.
    pub fn block_bytes(kind: FileKind) -> usize {
        match kind {
            FileKind::Data => DATA_BLOCK_BYTES as usize,
            FileKind::Index | FileKind::Postings | FileKind::Members | FileKind::Dictionary => {
                PROOF_BLOCK_BYTES as usize
            }
        }
    }

    /// The checksum in the header. A checksum over the header *and* its own checksum would be the same number for every
    /// file.
    pub fn crc(self) -> u32 {
        get_u32(&self.encode(), CRC_AT)
    }

    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(magic(self.id.kind));
        put_u32(&mut bytes, VERSION_AT, FORMAT_VERSION);
        put_u32(&mut bytes, 12, list_tag(self.id.list));
        put_u32(&mut bytes, 16, self.id.partition.0);
        put_u32(&mut bytes, 20, self.id.set);
        put_u32(&mut bytes, 24, Self::block_bytes(self.id.kind) as u32);
        put_u32(&mut bytes, KEYS_AT, self.keys_are_ids.into());
        let crc = kith_types::crc32c(&bytes[..CRC_AT]);
        put_u32(&mut bytes, CRC_AT, crc);
        bytes
    }

    /// Reads the header of file `id`. A header has one spelling, so it is compared as a whole.
    pub fn read(bytes: &[u8], id: FileId) -> Result<Self, Fault> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Fault::Content { what: "header", offset: 0 });
        };
        if let Some(header) = Self::possible(id).find(|header| *bytes == header.encode()) {
            return Ok(header);
        }
        if get_u32(bytes, CRC_AT) != kith_types::crc32c(&bytes[..CRC_AT]) {
            return Err(Fault::Checksum { what: "header", offset: 0 });
        }
        let version = get_u32(bytes, VERSION_AT);
        if bytes[..VERSION_AT] == *magic(id.kind) && version != FORMAT_VERSION {
            return Err(Fault::OtherFormat { got: version, supported: FORMAT_VERSION });
        }
        Err(Fault::Foreign { what: "header" })
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
        let members = FileId::members(PartitionId(12));
        let mut of_ids = Header::new(members).encode();
        put_u32(&mut of_ids, KEYS_AT, 1);
        let error = Header::read(&sealed_again(of_ids), members).unwrap_err();
        assert_eq!(error, Fault::Foreign { what: "header" });
    }

    #[test]
    fn another_format_and_a_file_of_elsewhere_are_distinguished_from_damage() {
        let id = FileId::postings(PartitionId(12), Direction::In);
        let bytes = Header::new(id).encode();
        assert_eq!(Header::read(&bytes, id).unwrap(), Header::new(id));
        for got in [0, 2, u32::MAX] {
            let mut other = bytes;
            put_u32(&mut other, VERSION_AT, got);
            assert_eq!(Header::read(&other, id), Err(Fault::Checksum { what: "header", offset: 0 }));
            let error = Header::read(&sealed_again(other), id).unwrap_err();
            assert_eq!(error, Fault::OtherFormat { got, supported: 1 });
        }
        for other in [FileId::postings(PartitionId(13), Direction::In), FileId::members(PartitionId(12))] {
            assert_eq!(Header::read(&bytes, other), Err(Fault::Foreign { what: "header" }));
        }
    }
}
