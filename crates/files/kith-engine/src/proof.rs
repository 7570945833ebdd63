//! Verifies whole files, as their bytes pass by or where they lie. Fetches, the writer of packs and verification use
//! it.

use crate::errors::{Damage, Fault, OpenError};
use crate::files::FileId;
use crate::manifest::FileEntry;
use crate::sealed::{FileSeal, HEADER_BYTES};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The size of one read: large enough for BLAKE3 to use wide vectors, and small enough to stay in the cache.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// The number of bytes that are read, checked or hashed between two yields: about 50 us, which is short compared with a
/// read request.
pub const TURN_BYTES: usize = 64 * 1024;

/// Yields the processor to waiting threads between two turns of long work. A low priority alone does not achieve this: a
/// running thread keeps the processor for its time slice of some milliseconds, even if others wake up.
pub fn give_way() {
    std::thread::yield_now();
}

/// The callback that gets the number of bytes of each piece. It may wait, to throttle, or return `Break`, to end the
/// verification.
pub type OnVerify<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// Verifies a file as its bytes pass by, in order.
pub struct Proof<'a> {
    entry: &'a FileEntry,
    seal: FileSeal,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<'a> Proof<'a> {
    pub fn new(entry: &'a FileEntry) -> Result<Self, Damage> {
        let damage = |fault| Damage { file: entry.name.clone(), fault };
        let id = FileId::parse(&entry.name).ok_or_else(|| damage(Fault::Unlisted))?;
        let seal = FileSeal::new(id, entry.bytes)
            .ok_or_else(|| damage(Fault::Content { what: "file size", offset: 0 }))?;
        Ok(Self { entry, seal, hasher: blake3::Hasher::new(), bytes: 0 })
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        // Beyond the stated size the file is wrong anyway, and memory stays bounded.
        if self.bytes <= self.entry.bytes {
            // The second checksum reads bytes that the first one has brought into the cache.
            for piece in bytes.chunks(TURN_BYTES) {
                self.hasher.update(piece);
                self.seal.push(piece);
                give_way();
            }
        }
    }

    /// Checks the size, the checksums and the hash. Names the damaged block if it can.
    pub fn finish(self) -> Result<(), Damage> {
        let damage = |fault| Damage { file: self.entry.name.clone(), fault };
        if self.bytes != self.entry.bytes {
            return Err(damage(Fault::Size { expected: self.entry.bytes, got: self.bytes }));
        }
        self.seal.finish(self.entry).map_err(damage)?;
        if self.hasher.finalize().to_hex().as_str() != self.entry.blake3 {
            return Err(damage(Fault::Checksum { what: "file", offset: 0 }));
        }
        Ok(())
    }
}

/// The reason why a file could not be verified.
pub enum VerifyFault {
    Damaged(Damage),
    Io(io::Error),
}

impl From<Damage> for VerifyFault {
    fn from(damage: Damage) -> Self {
        VerifyFault::Damaged(damage)
    }
}

impl VerifyFault {
    /// Converts the fault into an error of opening.
    pub fn into_open_error(self, path: &Path) -> OpenError {
        match self {
            VerifyFault::Damaged(damage) => damage.into(),
            VerifyFault::Io(source) => OpenError::Io { path: path.to_owned(), source },
        }
    }

    /// Interprets an error: a missing file, or one that the disk cannot read, is damaged. Other errors say nothing about
    /// the file.
    pub(crate) fn of(error: io::Error, entry: &FileEntry) -> Self {
        let fault = match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) => Fault::Missing,
            (_, Some(libc::EIO)) => Fault::Lost,
            _ => return VerifyFault::Io(error),
        };
        VerifyFault::Damaged(Damage { file: entry.name.clone(), fault })
    }
}

/// Reads one logical file from start to end and verifies it. Returns its size in bytes.
pub fn prove_at(path: &Path, offset: u64, entry: &FileEntry) -> Result<u64, VerifyFault> {
    let proven = prove_slowly(path, offset, entry, &mut |_| ControlFlow::Continue(()));
    proven.map(|bytes| bytes.unwrap_or(0))
}

/// Verifies a file like [`prove_at`], and calls `on_verify` for each piece; `None` if `on_verify` ended it.
pub(crate) fn prove_slowly(
    path: &Path,
    offset: u64,
    entry: &FileEntry,
    on_verify: &mut OnVerify<'_>,
) -> Result<Option<u64>, VerifyFault> {
    let file = File::open(path).map_err(|error| VerifyFault::of(error, entry))?;
    let mut proof = Proof::new(entry)?;
    let mut buffer = vec![0; CHUNK_BYTES.min(entry.bytes as usize).max(1)];
    let mut at = 0;
    while at < entry.bytes {
        let want = buffer.len().min((entry.bytes - at) as usize);
        match file.read_at(&mut buffer[..want], offset + at) {
            Ok(0) => break,
            Ok(count) => {
                proof.push(&buffer[..count]);
                at += count as u64;
                if on_verify(count as u64).is_break() {
                    return Ok(None);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(VerifyFault::of(error, entry)),
        }
    }
    proof.finish()?;
    Ok(Some(entry.bytes))
}

const _: () = assert!(HEADER_BYTES < CHUNK_BYTES);
