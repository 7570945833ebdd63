//! Makes sealed files of any bytes (`docs/formats/sealed-file.md`), and versions of sealed files.

use super::{folder, one_partition};
use kith_engine::{
    ChunkSetWriter, Compression, Content, Counts, FileEntry, FileId, GraphContent, KeyType, Manifest,
    MemberTableWriter, PostingsKeys, PostingsWriter, ValueCounts, ValueType, ValuesContent, WriteError,
};
use kith_schema::KindRole;
use kith_types::{Direction, PartitionId, StoreVersion, crc32c};
use std::fs;
use std::path::Path;

pub const HEADER_BYTES: usize = 64;
const TRAILER_BYTES: usize = 64;

/// A logical file.
#[derive(Clone)]
pub struct Sealed {
    pub entry: FileEntry,
    pub bytes: Vec<u8>,
}

impl Sealed {
    /// Reads a file that a writer has finished.
    fn read(dir: &Path, entry: FileEntry) -> Self {
        let bytes = fs::read(dir.join(&entry.name)).expect("a writer's file can be read");
        Self { entry, bytes }
    }

    /// The bytes between header and checksum table.
    pub fn body(&self) -> &[u8] {
        let bytes = u64::from_le_bytes(self.bytes[self.trailer()..][..8].try_into().expect("eight bytes"));
        &self.bytes[HEADER_BYTES..bytes as usize]
    }

    /// The four fields of the trailer that depend on the kind of file.
    pub fn fields(&self) -> [u64; 4] {
        let word =
            |at: usize| self.bytes[self.trailer() + 16 + 8 * at..][..8].try_into().expect("eight bytes");
        [0, 1, 2, 3].map(|at| u64::from_le_bytes(word(at)))
    }

    /// The same file with another body, and valid checksums.
    pub fn with(&self, body: &[u8], records: u64, fields: [u64; 4]) -> Self {
        let mut bytes = self.bytes[..HEADER_BYTES].to_vec();
        let word = |at: usize| u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"));
        let (block_bytes, header_crc) = (word(24) as usize, word(60));
        bytes.extend_from_slice(body);
        let table: Vec<u8> =
            bytes.chunks(block_bytes).flat_map(|block| crc32c(block).to_le_bytes()).collect();
        let words = [bytes.len() as u64, records].into_iter().chain(fields);
        let mut trailer: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        trailer.extend_from_slice(&crc32c(&table).to_le_bytes());
        trailer.extend_from_slice(&header_crc.to_le_bytes());
        trailer.extend_from_slice(b"seal");
        let crc = crc32c(&trailer);
        trailer.extend_from_slice(&crc.to_le_bytes());
        bytes.extend(table.into_iter().chain(trailer));
        let blake3 = blake3::hash(&bytes).to_hex().to_string();
        let entry =
            FileEntry { bytes: bytes.len() as u64, records, crc32c: crc, blake3, ..self.entry.clone() };
        Self { entry, bytes }
    }

    fn trailer(&self) -> usize {
        self.bytes.len() - TRAILER_BYTES
    }
}

/// Writes a version of these files and returns its manifest.
pub fn version(dir: &Path, content: Content, files: &[&Sealed]) -> Manifest {
    let entries = files.iter().map(|file| file.entry.clone()).collect();
    let manifest = Manifest::new("people".to_owned(), StoreVersion(1), one_partition(), content, entries);
    for (number, pack) in (0..).zip(manifest.packs()) {
        let mut bytes = Vec::new();
        for entry in manifest.files.iter().filter(|entry| entry.pack == number) {
            let file = files.iter().find(|file| file.entry.name == entry.name).expect("one of the files");
            bytes.resize(entry.offset as usize, 0);
            bytes.extend_from_slice(&file.bytes);
        }
        assert_eq!(bytes.len() as u64, pack.bytes);
        fs::write(dir.join(&pack.name), bytes).expect("a pack can be written");
    }
    manifest.write(dir).expect("a manifest can be written");
    manifest
}

/// The content of a store of values.
pub fn values(key: KeyType, compression: Option<Compression>) -> Content {
    let (value, counts) = (ValueType::Bytes, ValueCounts::default());
    Content::Values(ValuesContent { key, value, schema: None, compression, counts })
}

/// The content of a graph component.
pub fn graph(role: KindRole) -> Content {
    let graph = "people".to_owned();
    Content::Graph(GraphContent { graph, role, columns: Vec::new(), counts: Counts::default() })
}

/// The data and index of records, which must be in the order of files.
pub fn chunk_set(
    partition: PartitionId,
    list: Option<Direction>,
    key: KeyType,
    records: &[(Vec<u8>, Vec<u8>)],
) -> [Sealed; 2] {
    let dir = folder();
    let write = || -> Result<Vec<FileEntry>, WriteError> {
        let mut writer = ChunkSetWriter::create(dir.path(), partition, list, key)?;
        for (key, value) in records {
            writer.append(key, value)?;
        }
        Ok(writer.finish()?.files)
    };
    let files = write().expect("a chunk set can be written");
    let files: Vec<Sealed> = files.into_iter().map(|entry| Sealed::read(dir.path(), entry)).collect();
    files.try_into().unwrap_or_else(|_| panic!("a small chunk set has two files"))
}

/// A member table of `ids`.
pub fn members(ids: &[u64]) -> Sealed {
    let dir = folder();
    let write = || {
        let mut writer = MemberTableWriter::create(dir.path(), super::PARTITION)?;
        ids.iter().try_for_each(|id| writer.append(*id))?;
        writer.finish()
    };
    Sealed::read(dir.path(), write().expect("a member table can be written"))
}

/// Postings of `pairs` of neighbour and ordinal.
pub fn postings(list: Direction, keys: PostingsKeys, pairs: &[(u64, u32)]) -> Sealed {
    let dir = folder();
    let write = || {
        let mut writer = PostingsWriter::create(dir.path(), super::PARTITION, list, keys)?;
        pairs.iter().try_for_each(|(neighbour, ordinal)| writer.append(*neighbour, *ordinal))?;
        writer.finish()
    };
    Sealed::read(dir.path(), write().expect("postings can be written"))
}

/// An empty dictionary. The engine has no public writer for dictionaries.
pub fn dictionary() -> Sealed {
    let name = FileId::dictionary().to_string();
    let mut header = b"kithdict".to_vec();
    for word in [1, 0, u32::MAX, 0, 1_024] {
        header.extend_from_slice(&u32::to_le_bytes(word));
    }
    header.resize(60, 0);
    header.extend_from_slice(&crc32c(&header).to_le_bytes());
    let entry = FileEntry {
        name,
        pack: 0,
        offset: 0,
        bytes: 0,
        records: 0,
        blake3: String::new(),
        crc32c: 0,
        first_position: None,
    };
    Sealed { entry, bytes: header }.with(&[], 0, [0; 4])
}
