//! Pulls files from the source into the staged packs, proving every block as it arrives.

use super::error::IoContext;
use super::plan::{Wanted, Work, works};
use super::space::Space;
use super::staging::Staging;
use super::{FetchError, FetchProgress, OnFetch, Source};
use crate::errors::{Damage, Fault};
use crate::manifest::FileEntry;
use crate::sealed::BlockTable;
use crate::verify::{Proof, TURN_BYTES, give_way};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// A fetch on its way.
pub(super) struct Pull<'a, 'p> {
    pub(super) source: &'a dyn Source,
    pub(super) progress: &'a mut OnFetch<'p>,
    pub(super) state: FetchProgress,
    pub(super) threads: usize,
    /// Whether an earlier attempt left anything.
    pub(super) resumes: bool,
}

/// What a worker tells of: bytes in place, bytes of them from the source, files finished.
#[derive(Clone, Copy)]
struct WorkerReport {
    bytes: u64,
    copied: u64,
    files: u64,
}

impl Pull<'_, '_> {
    pub(super) fn report(&mut self) -> Result<(), FetchError> {
        if (self.progress)(&self.state).is_break() { Err(FetchError::Cancelled) } else { Ok(()) }
    }

    /// A file is in place without the source.
    pub(super) fn done(&mut self, bytes: u64, reused: u64) -> Result<(), FetchError> {
        self.state.files_done += 1;
        self.state.bytes_done += bytes;
        self.state.bytes_reused += reused;
        self.report()
    }

    /// Pulls all files, a thread per request under way. Progress is told from the caller's thread, and no thread gets
    /// further ahead of it than one piece: throttling it throttles all.
    pub(super) fn run(
        &mut self,
        staging: &Staging<'_>,
        space: &Space,
        files: &[Wanted<'_>],
    ) -> Result<(), FetchError> {
        let queue = Mutex::new(VecDeque::from(works(files)));
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (send, receive) = sync_channel::<WorkerReport>(0);
            let workers: Vec<_> = (0..self.threads.max(1))
                .map(|_| {
                    let steps = send.clone();
                    let (queue, stop, source, resumes) = (&queue, &stop, self.source, self.resumes);
                    scope.spawn(move || {
                        let buffer = Vec::new();
                        let mut worker = Worker { source, staging, space, steps, stop, resumes, buffer };
                        let outcome = worker.work_off(queue);
                        stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                        outcome
                    })
                })
                .collect();
            drop(send);
            let mut told = Ok(());
            for step in receive {
                self.state.bytes_done += step.bytes;
                self.state.bytes_copied += step.copied;
                self.state.files_done += step.files;
                if told.is_ok() {
                    told = self.report();
                    stop.fetch_or(told.is_err(), Ordering::Relaxed);
                }
            }
            let ended = workers.into_iter().map(|worker| worker.join().expect("a fetch does not panic"));
            // What broke comes before those that only stopped because of it.
            let outcomes: Vec<_> = ended.filter_map(Result::err).collect();
            told?;
            let broke = |error: &FetchError| !matches!(error, FetchError::Cancelled);
            let index = outcomes.iter().position(broke);
            match index.and_then(|index| outcomes.into_iter().nth(index)) {
                Some(error) => Err(error),
                None => Ok(()),
            }
        })
    }
}

/// How the body of a large file is brought in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Nothing of it is here.
    First,
    /// Blocks that an earlier attempt left are used if they hold.
    Resumed,
    /// All over again, though blocks are here that hold.
    Anew,
}

struct Worker<'a> {
    source: &'a dyn Source,
    staging: &'a Staging<'a>,
    space: &'a Space,
    steps: SyncSender<WorkerReport>,
    stop: &'a AtomicBool,
    resumes: bool,
    /// Of whatever is read, so that its pages are made once.
    buffer: Vec<u8>,
}

impl Worker<'_> {
    fn work_off(&mut self, queue: &Mutex<VecDeque<Work<'_>>>) -> Result<(), FetchError> {
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

    /// Ends the work if the fetch was cancelled or broke elsewhere.
    fn go_on(&self) -> Result<(), FetchError> {
        if self.stop.load(Ordering::Relaxed) { Err(FetchError::Cancelled) } else { Ok(()) }
    }

    fn tell(&self, bytes: u64, copied: u64, files: u64) -> Result<(), FetchError> {
        self.go_on()?;
        // The receiver waits for the last sender.
        self.steps.send(WorkerReport { bytes, copied, files }).map_err(|_| FetchError::Cancelled)
    }

    /// Reads a part of a file; an object that ends before it is damaged.
    fn read(&self, file: &Wanted<'_>, at: u64, into: &mut [u8]) -> Result<(), FetchError> {
        let got = match self.source.read(&file.object(), file.entry.offset + at, into) {
            Err(super::ObjectError::Missing { .. }) => return Err(damage(file.entry, Fault::Missing)),
            got => got?,
        };
        if got < into.len() {
            let got = at + got as u64;
            return Err(damage(file.entry, Fault::Size { expected: file.entry.bytes, got }));
        }
        Ok(())
    }

    /// Writes a part of a file in its place.
    fn write(&self, file: &Wanted<'_>, pack: &File, at: u64, bytes: &[u8]) -> Result<(), FetchError> {
        pack.write_all_at(bytes, file.offset + at).at(&self.staging.path(&file.pack))?;
        self.space.written(bytes.len() as u64);
        Ok(())
    }

    /// Neighbours in one request, each proven whole.
    fn span(&self, files: &[Wanted<'_>], buffer: &mut [u8]) -> Result<(), FetchError> {
        let Some(first) = files.first() else { return Ok(()) };
        let start = first.entry.offset;
        let got = match self.source.read(&first.object(), start, buffer) {
            Err(super::ObjectError::Missing { .. }) => return Err(damage(first.entry, Fault::Missing)),
            got => got?,
        };
        for file in files {
            self.go_on()?;
            let from = (file.entry.offset - start) as usize;
            // What lies behind the end of the object fails as too short.
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

    /// A large file, tail first, then piece by piece. What is staged is used where its blocks hold; should the
    /// whole then not hold, which takes a collision of checksums, everything is pulled anew.
    fn large(&self, file: &Wanted<'_>, buffer: &mut Vec<u8>) -> Result<(), FetchError> {
        let pack = self.staging.open_pack(&file.pack)?;
        let table = self.tail(file, &pack)?;
        buffer.resize(self.source.piece_bytes().next_multiple_of(table.block_bytes()), 0);
        let tail = file.entry.bytes - table.body_bytes();
        // Of a new pack nothing is staged: it would read as zeros, up to the tail that was just written.
        let rounds: &[Round] = if self.resumes { &[Round::Resumed, Round::Anew] } else { &[Round::First] };
        for &round in rounds {
            let mut hasher = blake3::Hasher::new();
            let copied = self.body(file, &pack, &table, round, &mut hasher, buffer)?;
            hasher.update(table.tail());
            if hasher.finalize().to_hex().as_str() == file.entry.blake3 {
                return self.tell(tail, tail, 1);
            }
            if copied == table.body_bytes() {
                break;
            }
        }
        Err(damage(file.entry, Fault::Checksum { what: "file", offset: 0 }))
    }

    /// Pulls checksum table and trailer and proves them against the manifest.
    fn tail(&self, file: &Wanted<'_>, pack: &File) -> Result<BlockTable, FetchError> {
        let id = file.entry.id().ok_or_else(|| damage(file.entry, Fault::Unlisted))?;
        let impossible = || damage(file.entry, Fault::Content { what: "file size", offset: 0 });
        let body_bytes = BlockTable::body_bytes_of(id, file.entry.bytes).ok_or_else(impossible)?;
        let mut tail = vec![0; (file.entry.bytes - body_bytes) as usize];
        self.read(file, body_bytes, &mut tail)?;
        let table = BlockTable::read(id, file.entry, tail).map_err(|fault| damage(file.entry, fault))?;
        self.write(file, pack, body_bytes, table.tail())?;
        Ok(table)
    }

    /// Brings every block of the body in place and hashes it; gives the bytes pulled.
    fn body(
        &self,
        file: &Wanted<'_>,
        pack: &File,
        table: &BlockTable,
        round: Round,
        hasher: &mut blake3::Hasher,
        buffer: &mut [u8],
    ) -> Result<u64, FetchError> {
        let mut copied = 0;
        for start in (0..table.body_bytes()).step_by(buffer.len()) {
            let end = table.body_bytes().min(start + buffer.len() as u64);
            let piece = &mut buffer[..(end - start) as usize];
            let staged = round == Round::Resumed && pack.read_exact_at(piece, file.offset + start).is_ok();
            let wrong = if staged { table.wrong_blocks(start, piece) } else { Some(0..piece.len()) };
            let wrong = wrong.unwrap_or(0..0);
            hasher.update(&piece[..wrong.start]);
            let at = start + wrong.start as u64;
            self.blocks(file, pack, table, at, hasher, &mut piece[wrong.clone()])?;
            hasher.update(&piece[wrong.end..]);
            copied += wrong.len() as u64;
            // Of another round, only the source's bytes are told.
            let placed = if round == Round::Anew { 0 } else { piece.len() };
            self.tell(placed as u64, wrong.len() as u64, 0)?;
        }
        Ok(copied)
    }

    /// Pulls the blocks from `at` on, proves, writes and hashes them, each part while it is in the cache.
    fn blocks(
        &self,
        file: &Wanted<'_>,
        pack: &File,
        table: &BlockTable,
        at: u64,
        hasher: &mut blake3::Hasher,
        into: &mut [u8],
    ) -> Result<(), FetchError> {
        if into.is_empty() {
            return Ok(());
        }
        self.read(file, at, into)?;
        let part_bytes = TURN_BYTES.next_multiple_of(table.block_bytes());
        for (index, part) in into.chunks(part_bytes).enumerate() {
            let at = at + (index * part_bytes) as u64;
            if let Some(wrong) = table.wrong_blocks(at, part) {
                let offset = at + wrong.start as u64;
                return Err(damage(file.entry, Fault::Checksum { what: "block", offset }));
            }
            self.write(file, pack, at, part)?;
            give_way();
            hasher.update(part);
            give_way();
        }
        Ok(())
    }
}

fn damage(entry: &FileEntry, fault: Fault) -> FetchError {
    Damage { file: entry.name.clone(), fault }.into()
}
