//! Rows from a pipe, with a check that they are complete. A pipe ends in the same way whether its writer finished or was
//! killed.
//!
//! The last line must be a single full stop. Without it, the input was cut off.

use kith_build::rows::RowSource;
use std::io::{self, Read, Stdin};

/// The bytes that end the input. The first line break belongs to the last row.
const END: &[u8] = b"\n.\n";
/// Bytes requested from the pipe at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Standard input, which can be read only once.
pub struct Input;

impl RowSource for Input {
    fn name(&self) -> &str {
        "standard input"
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Ended::new(io::stdin())))
    }
}

/// A reader of the bytes before the final full stop.
struct Ended<R = Stdin> {
    inner: R,
    /// Bytes that were read; the first `taken` of them have been handed out. Until the input has ended, its last bytes may
    /// be `END`.
    held: Vec<u8>,
    taken: usize,
    is_at_end: bool,
    /// Whether nothing has been handed out yet, so that the full stop may be the only line.
    is_first: bool,
}

impl<R: Read> Ended<R> {
    fn new(inner: R) -> Self {
        Self { inner, held: Vec::new(), taken: 0, is_at_end: false, is_first: true }
    }

    /// The number of held bytes that are certainly rows.
    fn free(&self) -> usize {
        let held = self.held.len() - self.taken;
        if self.is_at_end { held } else { held.saturating_sub(END.len()) }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.held.drain(..self.taken);
        self.taken = 0;
        let before = self.held.len();
        self.held.resize(before + CHUNK_BYTES, 0);
        let count = self.inner.read(&mut self.held[before..]);
        self.held.truncate(before + *count.as_ref().unwrap_or(&0));
        if count? != 0 {
            return Ok(());
        }
        self.is_at_end = true;
        let is_empty = self.is_first && self.held == END[1..];
        if !is_empty && !self.held.ends_with(END) {
            let message = "it was cut off: its last line is not a single full stop";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let rows = if is_empty { 0 } else { self.held.len() - END.len() + 1 };
        self.held.truncate(rows);
        Ok(())
    }
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.free() == 0 && !self.is_at_end {
            self.fill()?;
        }
        let count = self.free().min(buffer.len());
        buffer[..count].copy_from_slice(&self.held[self.taken..self.taken + count]);
        self.taken += count;
        self.is_first &= count == 0;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns its bytes in pieces, as pipes do.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn read(text: &str, piece: usize) -> Option<String> {
        let mut out = String::new();
        Ended::new(Pieces(text.as_bytes(), piece)).read_to_string(&mut out).ok().map(|_| out)
    }

    #[test]
    fn rows_end_with_a_full_stop_and_only_so() {
        let whole = [("a\nb\n.\n", "a\nb\n"), (".\n", ""), ("a\n.\n.\n", "a\n.\n"), ("a\n\n.\n", "a\n\n")];
        for piece in 1..9 {
            for (text, rows) in whole {
                assert_eq!(read(text, piece).as_deref(), Some(rows), "{text:?} by {piece}");
            }
            for cut in ["", "a\nb\n", "a\nb.\n", "a\n.", ".", "x.\n", "\n", "a\n."] {
                assert_eq!(read(cut, piece), None, "{cut:?} by {piece}");
            }
        }
    }
}
