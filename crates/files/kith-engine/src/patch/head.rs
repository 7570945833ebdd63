//! The head of a patch: the versions that it leads from and to, and the place of each partition's changes.

use super::UnusablePatch;
use kith_types::PartitionId;

const MAGIC: &[u8; 8] = b"kithptch";
const FORMAT_VERSION: u32 = 1;
const HASH_BYTES: usize = 32;
const SECTIONS_AT: usize = 80;
const SECTION_BYTES: usize = 4 + 8 + HASH_BYTES;
const CRC_BYTES: usize = 4;

/// The place of one partition's changes, and their hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    pub partition: PartitionId,
    pub bytes: u64,
    pub blake3: [u8; HASH_BYTES],
}

/// Everything before the first change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The hash of the manifest of the earlier version, in hexadecimal.
    pub base: String,
    /// The hash of the manifest of the version that the patch leads to.
    pub manifest: String,
    /// The sections, ascending by partition. Their changes follow the head in this order, end to end.
    pub sections: Vec<Section>,
}

impl Head {
    /// The length of a head with this number of sections, in bytes.
    fn bytes_for(sections: usize) -> usize {
        SECTIONS_AT + sections * SECTION_BYTES + CRC_BYTES
    }

    /// The length of this head in bytes.
    pub fn bytes(&self) -> u64 {
        Self::bytes_for(self.sections.len()) as u64
    }

    /// The length of the head that begins with these bytes. A head has at most one section per partition.
    pub fn bytes_of(start: &[u8], partitions: u32) -> Result<usize, UnusablePatch> {
        let sections = start.get(12..16).and_then(|bytes| bytes.try_into().ok()).ok_or(UnusablePatch)?;
        let sections = u32::from_le_bytes(sections);
        if !start.starts_with(MAGIC) || partitions < sections {
            return Err(UnusablePatch);
        }
        Ok(Self::bytes_for(sections as usize))
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::bytes_for(self.sections.len()));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        for hash in [&self.base, &self.manifest] {
            let hash = blake3::Hash::from_hex(hash).expect("manifests are named by hashes");
            bytes.extend_from_slice(hash.as_bytes());
        }
        for section in &self.sections {
            bytes.extend_from_slice(&section.partition.0.to_le_bytes());
            bytes.extend_from_slice(&section.bytes.to_le_bytes());
            bytes.extend_from_slice(&section.blake3);
        }
        let crc = kith_types::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a head from exactly its bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, UnusablePatch> {
        let (covered, crc) = bytes.split_last_chunk::<CRC_BYTES>().ok_or(UnusablePatch)?;
        if kith_types::crc32c(covered) != u32::from_le_bytes(*crc) || covered.len() < SECTIONS_AT {
            return Err(UnusablePatch);
        }
        let hash = |at: usize| {
            let bytes: [u8; HASH_BYTES] =
                covered[at..at + HASH_BYTES].try_into().map_err(|_| UnusablePatch)?;
            Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
        };
        let mut sections = Vec::new();
        for bytes in covered[SECTIONS_AT..].chunks(SECTION_BYTES) {
            let (partition, rest) = bytes.split_first_chunk::<4>().ok_or(UnusablePatch)?;
            let (size, blake3) = rest.split_first_chunk::<8>().ok_or(UnusablePatch)?;
            sections.push(Section {
                partition: PartitionId(u32::from_le_bytes(*partition)),
                bytes: u64::from_le_bytes(*size),
                blake3: blake3.try_into().map_err(|_| UnusablePatch)?,
            });
        }
        let head = Self { base: hash(16)?, manifest: hash(16 + HASH_BYTES)?, sections };
        let is_sorted = head.sections.is_sorted_by(|a, b| a.partition < b.partition);
        // A head has one spelling: another format version, or another number of sections, gives other bytes.
        if is_sorted && head.encode() == bytes { Ok(head) } else { Err(UnusablePatch) }
    }
}
