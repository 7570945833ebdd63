//! A thread of a fetch: pulls files into the staged packs, and checks every block when it arrives.

use super::FetchError;
use super::error::IoContext;
use super::plan::{WantedFile, Work};
use super::space::Space;
use super::staging::Staging;
use crate::errors::{Damage, Fault};
use crate::manifest::FileEntry;
use crate::proof::{Proof, TURN_BYTES, give_way};
use crate::sealed::BlockTable;
use crate::source::{ObjectError, Source};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

/// A worker's report: bytes in place, bytes of them from the source, finished files.
#[derive(Clone, Copy)]
pub(super) struct WorkerReport {
    pub(super) bytes: u64,
    pub(super) copied: u64,
    pub(super) files: u64,
}

/// The way in which the body of a large file is pulled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Nothing of it is here.
    First,
    /// Blocks of an earlier attempt are used if their checksums match.
    Resumed,
    /// All blocks are pulled again, even those whose checksums match.
    Anew,
}

/// One of the threads of a fetch.
pub(super) struct Worker<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) staging: &'a Staging<'a>,
    pub(super) space: &'a Space,
    pub(super) steps: SyncSender<WorkerReport>,
    pub(super) stop: &'a AtomicBool,
    pub(super) resumes: bool,
    /// The buffer of all reads, reused so that its pages are allocated once.
    pub(super) buffer: Vec<u8>,
}

impl Worker<'_> {
    /// Takes work from the queue until it is empty.
    pub(super) fn work_off(&mut self, queue: &Mutex<VecDeque<Work<'_>>>) -> Result<(), FetchError> {
        loop {
            let next = queue.lock().pop_front();
            match next {
                Some(Work::Large(file)) => {
                    let mut buffer = std::mem::take(&mut self.buffer);
                    self.large(&file, &mut buffer)?;
                    self.buffer = buffer;
                }
                Some(Work::Span(files)) => {
                    let (Some(first), Some(last)) = (files.first(), files.last()) else { continue };
                    let bytes = last.entry.offset + last.entry.bytes - first.entry.offset;
                    let mut buffer = std::mem::take(&mut self.buffer);
                    buffer.resize(bytes as usize, 0);
                    self.span(&files, &mut buffer)?;
                    self.buffer = buffer;
                }
                None => return Ok(()),
            }
        }
    }

    /// Ends the work if the fetch was cancelled or failed elsewhere.
    fn go_on(&self) -> Result<(), FetchError> {
        if self.stop.load(Ordering::Relaxed) { Err(FetchError::Cancelled) } else { Ok(()) }
    }

    fn tell(&self, bytes: u64, copied: u64, files: u64) -> Result<(), FetchError> {
        self.go_on()?;
        // The receiver waits for the last sender.
        self.steps.send(WorkerReport { bytes, copied, files }).map_err(|_| FetchError::Cancelled)
    }

    /// Reads a part of a file. An object that ends too early is damaged.
    fn read(&self, file: &WantedFile<'_>, at: u64, into: &mut [u8]) -> Result<(), FetchError> {
        let got = match self.source.read(&file.object(), file.entry.offset + at, into) {
            Err(ObjectError::Missing { .. }) => return Err(damage(file.entry, Fault::Missing)),
            got => got?,
        };
        if got < into.len() {
            let got = at + got as u64;
            return Err(damage(file.entry, Fault::Size { expected: file.entry.bytes, got }));
        }
        Ok(())
    }

    /// Writes a part of a file to its place.
    fn write(&self, file: &WantedFile<'_>, pack: &File, at: u64, bytes: &[u8]) -> Result<(), FetchError> {
        pack.write_all_at(bytes, file.offset + at).at(&self.staging.path(&file.pack))?;
        self.space.written(bytes.len() as u64);
        Ok(())
    }

    /// Pulls adjacent files in one request, and verifies each as a whole.
    fn span(&self, files: &[WantedFile<'_>], buffer: &mut [u8]) -> Result<(), FetchError> {
        let Some(first) = files.first() else { return Ok(()) };
        let start = first.entry.offset;
        let got = match self.source.read(&first.object(), start, buffer) {
            Err(ObjectError::Missing { .. }) => return Err(damage(first.entry, Fault::Missing)),
            got => got?,
        };
        for file in files {
            self.go_on()?;
            let from = (file.entry.offset - start) as usize;
            // A file that lies beyond the end of the object fails as too short.
            let bytes = buffer[..got].get(from..).unwrap_or_default();
            let bytes = &bytes[..bytes.len().min(file.entry.bytes as usize)];
            let mut proof = Proof::new(file.entry)?;
            proof.push(bytes);
            proof.finish()?;
            let pack = self.staging.open_pack(&file.pack)?;
            self.write(file, &pack, 0, bytes)?;
            self.tell(file.entry.bytes, file.entry.bytes, 1)?;
        }
        Ok(())
    }

    /// Pulls a large file, the tail first, then piece by piece. Staged blocks are used if their checksums match. If the
    /// whole file does not match in the end, which takes a collision of checksums, everything is pulled again.
    fn large(&self, file: &WantedFile<'_>, buffer: &mut Vec<u8>) -> Result<(), FetchError> {
        let pack = self.staging.open_pack(&file.pack)?;
        let table = self.tail(file, &pack)?;
        buffer.resize(self.source.piece_bytes().next_multiple_of(table.block_bytes()), 0);
        let tail = file.entry.bytes - table.body_bytes();
        // A new pack has nothing staged: it would read as zeros, up to the tail that was just written.
        let rounds: &[Round] = if self.resumes { &[Round::Resumed, Round::Anew] } else { &[Round::First] };
        for &round in rounds {
            let mut body = Body { file, pack: &pack, table: &table, hasher: blake3::Hasher::new() };
            let copied = self.body(&mut body, round, buffer)?;
            if body.hash_of_file() == file.entry.blake3 {
                return self.tell(tail, tail, 1);
            }
            if copied == table.body_bytes() {
                break;
            }
        }
        Err(damage(file.entry, Fault::Checksum { what: "file", offset: 0 }))
    }

    /// Pulls the checksum table and trailer, and checks them against the manifest.
    fn tail(&self, file: &WantedFile<'_>, pack: &File) -> Result<BlockTable, FetchError> {
        let id = file.entry.id().ok_or_else(|| damage(file.entry, Fault::Unlisted))?;
        let impossible = || damage(file.entry, Fault::Content { what: "file size", offset: 0 });
        let body_bytes = BlockTable::body_bytes_of(id, file.entry.bytes).ok_or_else(impossible)?;
        let mut tail = vec![0; (file.entry.bytes - body_bytes) as usize];
        self.read(file, body_bytes, &mut tail)?;
        let table = BlockTable::read(id, file.entry, tail).map_err(|fault| damage(file.entry, fault))?;
        self.write(file, pack, body_bytes, table.tail())?;
        Ok(table)
    }

    /// Puts every block of the body in place and hashes it. Returns the number of pulled bytes.
    fn body(&self, body: &mut Body<'_>, round: Round, buffer: &mut [u8]) -> Result<u64, FetchError> {
        let mut copied = 0;
        let body_bytes = body.table.body_bytes();
        for start in (0..body_bytes).step_by(buffer.len()) {
            let end = body_bytes.min(start + buffer.len() as u64);
            let piece = &mut buffer[..(end - start) as usize];
            let wrong =
                if round == Round::Resumed { body.wrong_when_staged(start, piece) } else { 0..piece.len() };
            body.hasher.update(&piece[..wrong.start]);
            self.blocks(body, start + wrong.start as u64, &mut piece[wrong.clone()])?;
            body.hasher.update(&piece[wrong.end..]);
            copied += wrong.len() as u64;
            // In a repeated round, only the bytes from the source are reported.
            let placed = if round == Round::Anew { 0 } else { piece.len() };
            self.tell(placed as u64, wrong.len() as u64, 0)?;
        }
        Ok(copied)
    }

    /// Pulls the blocks from `at` on, and checks, writes and hashes each part while it is in the cache.
    fn blocks(&self, body: &mut Body<'_>, at: u64, into: &mut [u8]) -> Result<(), FetchError> {
        if into.is_empty() {
            return Ok(());
        }
        self.read(body.file, at, into)?;
        let part_bytes = TURN_BYTES.next_multiple_of(body.table.block_bytes());
        for (index, part) in into.chunks(part_bytes).enumerate() {
            let at = at + (index * part_bytes) as u64;
            if let Some(wrong) = body.table.wrong_blocks(at, part) {
                let offset = at + wrong.start as u64;
                return Err(damage(body.file.entry, Fault::Checksum { what: "block", offset }));
            }
            self.write(body.file, body.pack, at, part)?;
            give_way();
            body.hasher.update(part);
            give_way();
        }
        Ok(())
    }
}

/// The body of a large file on its way into its pack.
struct Body<'a> {
    file: &'a WantedFile<'a>,
    pack: &'a File,
    /// The checksums of the blocks.
    table: &'a BlockTable,
    /// The hasher of the bytes so far, in their order.
    hasher: blake3::Hasher,
}

impl Body<'_> {
    /// Reads a piece as it is staged, and returns the bytes that must be pulled: all of them if nothing is there.
    fn wrong_when_staged(&self, start: u64, piece: &mut [u8]) -> Range<usize> {
        match self.pack.read_exact_at(piece, self.file.offset + start) {
            Ok(()) => self.table.wrong_blocks(start, piece).unwrap_or(0..0),
            Err(_) => 0..piece.len(),
        }
    }

    /// The hash of the whole file, once all of its body has been hashed.
    fn hash_of_file(mut self) -> String {
        self.hasher.update(self.table.tail());
        self.hasher.finalize().to_hex().to_string()
    }
}

fn damage(entry: &FileEntry, fault: Fault) -> FetchError {
    Damage { file: entry.name.clone(), fault }.into()
}
