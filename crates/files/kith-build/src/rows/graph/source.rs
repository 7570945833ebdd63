//! The bytes of one text file, decompressed by a separate thread.
//!
//! The first bytes of a file determine its format, and not its name. It is an error if the name indicates a compression
//! that the first bytes do not show, because a damaged beginning must not be read as text. At most [`BLOCKS_IN_FLIGHT`]
//! blocks of [`BLOCK_BYTES`] wait between the threads.

use super::FileError;
use crate::rows::codec::{Codec, LARGE_WINDOW, is_large_window};
use crate::rows::error::RowsError;
use crate::rows::foreign;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// The size of a block of decompressed bytes. It is large enough that handing a block over costs nothing per line.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

/// The number of blocks that may wait for the parser. It covers short stalls and bounds memory to a few MiB.
const BLOCKS_IN_FLIGHT: usize = 4;

/// An input file being read.
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) codec: Codec,
    /// The size of the file in bytes; 0 if it has no size (a pipe).
    pub(super) bytes_total: u64,
    /// The number of bytes of the file read so far. Only the reading thread writes it.
    bytes_read: Arc<AtomicU64>,
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Returns emptied blocks to the reading thread, to be filled again.
    emptied: Sender<Vec<u8>>,
}

impl Source {
    /// Opens `path`, detects its compression, and starts to decompress it.
    pub(super) fn open(path: &Path) -> Result<Self, FileError> {
        let open_error = |source| FileError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(open_error)?;
        let metadata = file.metadata().map_err(open_error)?;
        if metadata.is_dir() {
            return Err(open_error(io::ErrorKind::IsADirectory.into()));
        }
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counted = CountedFile { file, bytes_read: Arc::clone(&bytes_read) };
        let mut reader = BufReader::with_capacity(BLOCK_BYTES, counted);
        let head = reader.fill_buf().map_err(|source| FileError::Read {
            path: path.to_owned(),
            bytes: 0,
            line: 1,
            source,
        })?;
        let codec = detect(path, head)?;
        let (filled, blocks) = sync_channel(BLOCKS_IN_FLIGHT);
        let (emptied, empty) = channel();
        thread::Builder::new()
            .name("kith-rows-read".to_owned())
            .spawn(move || unpack(codec, reader, &filled, &empty))
            .map_err(open_error)?;
        Ok(Source { path: path.to_owned(), codec, bytes_total: metadata.len(), bytes_read, blocks, emptied })
    }

    /// Appends the next decompressed bytes to `buffer`; `false` at the end of the file. `line` is the current line, for
    /// errors.
    pub(super) fn append_to(&mut self, buffer: &mut Vec<u8>, line: u64) -> Result<bool, FileError> {
        // A closed channel is the end, because the thread sends every error before it ends.
        let Ok(block) = self.blocks.recv() else { return Ok(false) };
        let mut block = block.map_err(|source| self.fault(source, line))?;
        buffer.extend_from_slice(&block);
        block.clear();
        // The thread may have ended, and then does not need the block any more.
        let _ = self.emptied.send(block);
        Ok(true)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn fault(&self, source: io::Error, line: u64) -> FileError {
        let (path, bytes, codec) = (self.path.clone(), self.bytes_read(), self.codec);
        if is_large_window(&source) {
            let file = path.display().to_string().into();
            return FileError::Rows(RowsError::Unsupported { file, detail: LARGE_WINDOW.to_owned() });
        }
        if codec == Codec::Plain || source.raw_os_error().is_some() {
            FileError::Read { path, bytes, line, source }
        } else if source.kind() == io::ErrorKind::UnexpectedEof {
            FileError::Truncated { path, codec, bytes, line }
        } else {
            FileError::Damaged { path, codec, bytes, line, source }
        }
    }
}

struct CountedFile {
    file: File,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

fn detect(path: &Path, head: &[u8]) -> Result<Codec, FileError> {
    let named = match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Codec::Gzip,
        Some("zst") => Codec::Zstd,
        _ => Codec::Plain,
    };
    let found = Codec::of(head);
    if let Some(found) = other_than_text(head).filter(|_| found == Codec::Plain) {
        return Err(FileError::NotText { path: path.to_owned(), found });
    }
    if let Some(why) = foreign::empty(&path.to_string_lossy()).filter(|_| head.is_empty()) {
        return Err(FileError::Empty { path: path.to_owned(), why });
    }
    if found == Codec::Plain && named != Codec::Plain {
        return Err(FileError::NotCompressed { path: path.to_owned(), codec: named });
    }
    Ok(found)
}

/// Whether a file with this beginning has one line for those who look for line feeds, and several for who wrote it.
fn has_old_line_ends(head: &[u8]) -> bool {
    let inner = head.strip_suffix(b"\r").unwrap_or(head);
    inner.contains(&b'\r') && !head.contains(&b'\n')
}

/// The format of a file with this beginning, if it is no delimited text.
pub(super) fn other_than_text(head: &[u8]) -> Option<&'static str> {
    match head {
        // A file of these formats is read elsewhere. Here it is a pipe, or they are not built in.
        [b'P', b'A', b'R', b'1', ..] => Some("a Parquet file"),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => Some("an Arrow file"),
        _ if has_old_line_ends(head) => Some("text whose lines end in carriage returns (write line feeds)"),
        _ => foreign::named(head),
    }
}

/// Runs on the reading thread. Fills blocks until the end, an error, or the end of the parser.
fn unpack(
    codec: Codec,
    reader: BufReader<CountedFile>,
    filled: &SyncSender<io::Result<Vec<u8>>>,
    empty: &Receiver<Vec<u8>>,
) {
    let mut reader = match codec.unpack(reader) {
        Ok(reader) => reader,
        Err(error) => return drop(filled.send(Err(error))),
    };
    loop {
        let mut block = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK_BYTES));
        let got = reader.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block);
        // Text before the fault is still sent, so that the error names the right line.
        let at_end = block.is_empty();
        if !at_end && filled.send(Ok(block)).is_err() {
            return;
        }
        match got {
            Err(error) => return drop(filled.send(Err(error))),
            Ok(_) if at_end => return,
            Ok(_) => {}
        }
    }
}
