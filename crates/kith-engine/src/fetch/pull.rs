//! Pulls files from the source into the staged packs, proving every block as it arrives.

use super::error::IoContext;
use super::plan::{PIECE_BYTES, Wanted, Work, works};
use super::space::Space;
use super::staging::Staging;
use super::{FetchError, FetchProgress, OnFetch, Source};
use crate::errors::{Damage, Fault};
use crate::manifest::FileEntry;
use crate::sealed::BlockTable;
use crate::verify::Proof;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// A fetch on its way.
pub(super) struct Pull<'a, 'p> {
    pub(super) source: &'a dyn Source,
    pub(super) progress: &'a mut OnFetch<'p>,
    pub(super) state: FetchProgress,
    pub(super) threads: usize,
}

/// What a worker tells of: bytes in place, bytes of them from the source, files finished.
#[derive(Clone, Copy)]
struct Step {
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
            let (send, receive) = sync_channel::<Step>(0);
            let workers: Vec<_> = (0..self.threads.max(1))
                .map(|_| {
                    let steps = send.clone();
                    let (queue, stop, source) = (&queue, &stop, self.source);
                    scope.spawn(move || {
                        let worker = Worker { source, staging, space, steps, stop };
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

struct Worker<'a> {
    source: &'a dyn Source,
    staging: &'a Staging<'a>,
    space: &'a Space,
    steps: SyncSender<Step>,
    stop: &'a AtomicBool,
}

impl Worker<'_> {
    fn work_off(&self, queue: &Mutex<VecDeque<Work<'_>>>) -> Result<(), FetchError> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match next {
                Some(Work::Large(file)) => self.large(&file)?,
                Some(Work::Span(files)) => self.span(&files)?,
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
        self.steps.send(Step { bytes, copied, files }).map_err(|_| FetchError::Cancelled)
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
    fn span(&self, files: &[Wanted<'_>]) -> Result<(), FetchError> {
        let (Some(first), Some(last)) = (files.first(), files.last()) else { return Ok(()) };
        let start = first.entry.offset;
        let mut buffer = vec![0; (last.entry.offset + last.entry.bytes - start) as usize];
        let got = match self.source.read(&first.object(), start, &mut buffer) {
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
    fn large(&self, file: &Wanted<'_>) -> Result<(), FetchError> {
        let pack = self.staging.open_pack(&file.pack)?;
        let table = self.tail(file, &pack)?;
        let tail = file.entry.bytes - table.body_bytes();
        for use_staged in [true, false] {
            let mut hasher = blake3::Hasher::new();
            let copied = self.body(file, &pack, &table, use_staged, &mut hasher)?;
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
        use_staged: bool,
        hasher: &mut blake3::Hasher,
    ) -> Result<u64, FetchError> {
        let mut buffer = vec![0; PIECE_BYTES as usize];
        let mut copied = 0;
        for start in (0..table.body_bytes()).step_by(buffer.len()) {
            let end = table.body_bytes().min(start + PIECE_BYTES);
            let piece = &mut buffer[..(end - start) as usize];
            let staged = use_staged && pack.read_exact_at(piece, file.offset + start).is_ok();
            let wrong = if staged { table.wrong_blocks(start, piece) } else { Some(0..piece.len()) };
            if let Some(wrong) = wrong {
                self.blocks(file, pack, table, start, &mut piece[wrong.clone()], &wrong)?;
                copied += wrong.len() as u64;
                let bytes = wrong.len() as u64;
                hasher.update(piece);
                // Of a second round, only the source's bytes are told.
                let staged = if use_staged { piece.len() as u64 - bytes } else { 0 };
                self.tell(if use_staged { bytes + staged } else { 0 }, bytes, 0)?;
            } else {
                hasher.update(piece);
                self.tell(piece.len() as u64, 0, 0)?;
            }
        }
        Ok(copied)
    }

    /// Pulls some blocks of a piece that begins at `start`, proves them and writes them.
    fn blocks(
        &self,
        file: &Wanted<'_>,
        pack: &File,
        table: &BlockTable,
        start: u64,
        into: &mut [u8],
        range: &Range<usize>,
    ) -> Result<(), FetchError> {
        let at = start + range.start as u64;
        self.read(file, at, into)?;
        if let Some(wrong) = table.wrong_blocks(at, into) {
            let offset = at + wrong.start as u64;
            return Err(damage(file.entry, Fault::Checksum { what: "block", offset }));
        }
        self.write(file, pack, at, into)
    }
}

fn damage(entry: &FileEntry, fault: Fault) -> FetchError {
    Damage { file: entry.name.clone(), fault }.into()
}
