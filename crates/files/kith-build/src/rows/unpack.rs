//! The decompressed bytes of a source, and their format.

use crate::rows::codec::{Codec, LARGE_WINDOW, is_large_window};
use crate::rows::error::RowsError;
use crate::rows::foreign;
use crate::rows::format::Format;
use crate::rows::source::RowSource;
use kith_types::{Utf16, byte_order_mark};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of one read from a source. It is large enough that a call costs nothing per row.
const BUFFER_BYTES: usize = 256 << 10;

/// The size of the beginning that is examined.
const HEAD_BYTES: usize = 64 << 10;

/// The decompressed bytes of a source.
pub(crate) struct UnpackedSource {
    pub(crate) file: Arc<str>,
    codec: Codec,
    /// The first bytes, at most [`HEAD_BYTES`]. `bytes` returns them again.
    pub(crate) head: Vec<u8>,
    bytes: Box<dyn Read + Send>,
    /// How many bytes of the source were read so far, before they were decompressed.
    pub(crate) packed: Arc<AtomicU64>,
}

/// Counts the bytes of a source.
struct Counted<R> {
    inner: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl UnpackedSource {
    pub(crate) fn open(source: &dyn RowSource) -> Result<Self, RowsError> {
        let file: Arc<str> = source.name().into();
        let opened = source.open().map_err(|source| RowsError::Open { file: Arc::clone(&file), source })?;
        let failed = |source| RowsError::Read { file: Arc::clone(&file), source };
        let packed = Arc::new(AtomicU64::new(0));
        let opened = Counted { inner: opened, bytes: Arc::clone(&packed) };
        let (head, raw) = peek(opened, 4).map_err(failed)?;
        if let Some(why) = foreign::empty(&file).filter(|_| head.is_empty()) {
            return Err(RowsError::Damaged { file, detail: format!("it is empty, and {why}") });
        }
        let codec = Codec::of(&head);
        let bytes = codec.unpack(BufReader::with_capacity(BUFFER_BYTES, raw)).map_err(failed)?;
        let mut unpacked =
            UnpackedSource { file, codec, head: Vec::new(), bytes: Box::new(io::empty()), packed };
        let (head, bytes) = peek(bytes, HEAD_BYTES).map_err(|error| unpacked.failed(error))?;
        unpacked.head = head;
        unpacked.bytes = Box::new(bytes);
        Ok(unpacked)
    }

    /// Detects the format from the first bytes. Text is JSON if it begins with a brace.
    pub(crate) fn format(&self) -> Result<Format, RowsError> {
        let unknown = |found| RowsError::UnknownFormat { file: Arc::clone(&self.file), found };
        let head = match byte_order_mark(&self.head) {
            Ok(mark) => &self.head[mark..],
            Err(Utf16) => return Err(unknown(UTF_16)),
        };
        match head {
            [b'P', b'A', b'R', b'1', ..] => Ok(Format::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => Ok(Format::Arrow),
            _ => match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{') => Ok(Format::Json),
                _ => match foreign::named(head) {
                    Some(found) => Err(unknown(found)),
                    None if !begins_as_text(head) => {
                        Err(unknown("no text; raw vectors of f32 need --format f32le and --dims"))
                    }
                    None => Ok(Format::Csv),
                },
            },
        }
    }

    /// The bytes as text, without a byte order mark.
    pub(crate) fn into_text(self) -> (FileErrors, impl BufRead + Send + use<>) {
        let errors = FileErrors { file: self.file, codec: self.codec };
        let skip = self.head.len() - unmarked(&self.head).len();
        let mut bytes = self.bytes;
        // These bytes were read before and are in memory.
        let _ = bytes.read_exact(&mut vec![0; skip]);
        (errors, BufReader::with_capacity(BUFFER_BYTES, bytes))
    }

    /// The bytes, unchanged.
    pub(crate) fn into_raw(self) -> (FileErrors, impl BufRead) {
        let errors = FileErrors { file: self.file, codec: self.codec };
        (errors, BufReader::with_capacity(BUFFER_BYTES, self.bytes))
    }

    /// The bytes as a file with random access: the source's own file, or an unnamed copy.
    pub(crate) fn into_file(mut self, source: &dyn RowSource) -> Result<File, RowsError> {
        if self.codec == Codec::Plain {
            let opened = source.open_file();
            let opened = opened.map_err(|source| RowsError::Open { file: Arc::clone(&self.file), source })?;
            if let Some(file) = opened {
                return Ok(file);
            }
        }
        let mut copy = tempfile::tempfile().map_err(|error| self.failed(error))?;
        let copied = io::copy(&mut self.bytes, &mut copy).and_then(|_| copy.rewind());
        copied.map_err(|error| self.failed(error))?;
        Ok(copy)
    }

    fn failed(&self, error: io::Error) -> RowsError {
        FileErrors { file: Arc::clone(&self.file), codec: self.codec }.of(error)
    }
}

/// Whether the first line is UTF-8, as far as it was read. A later byte that is not UTF-8 is reported with its row.
fn begins_as_text(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    std::str::from_utf8(line).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// The format of a file that begins with a mark of UTF-16.
const UTF_16: &str = "UTF-16 text (write it as UTF-8)";

/// The beginning of a text without a byte order mark.
pub(crate) fn unmarked(head: &[u8]) -> &[u8] {
    &head[byte_order_mark(head).unwrap_or_default()..]
}

/// Interprets errors of reading a file.
pub(crate) struct FileErrors {
    pub(crate) file: Arc<str>,
    codec: Codec,
}

impl FileErrors {
    pub(crate) fn of(&self, error: io::Error) -> RowsError {
        let file = Arc::clone(&self.file);
        match (self.codec, error.kind()) {
            (Codec::Zstd, _) if is_large_window(&error) => {
                RowsError::Unsupported { file, detail: LARGE_WINDOW.to_owned() }
            }
            (Codec::Gzip | Codec::Zstd, io::ErrorKind::UnexpectedEof) => {
                RowsError::Truncated { file, codec: self.codec }
            }
            (
                Codec::Gzip | Codec::Zstd,
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other,
            ) => RowsError::Damaged { file, detail: format!("{} data: {error}", self.codec) },
            _ => RowsError::Read { file, source: error },
        }
    }
}

/// Returns the first `limit` bytes, and a reader of all bytes.
fn peek<R: Read + Send>(mut bytes: R, limit: usize) -> io::Result<(Vec<u8>, impl Read + Send)> {
    let mut head = Vec::new();
    bytes.by_ref().take(limit as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(bytes)))
}
