//! Rows from a pipe, proven whole: whoever writes them may be killed, and a pipe ends in the same way then.
//!
//! The last line is a full stop alone. Without it the input was cut off, whatever it looks like.

use kith_rows::RowSource;
use std::io::{self, Read, Stdin};

/// What ends the input. The line break before it is the last row's.
const END: &[u8] = b"\n.\n";
/// Bytes asked of the pipe at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Standard input, which can be read once.
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

/// Bytes without the full stop that ends them.
struct Ended<R = Stdin> {
    inner: R,
    /// Read and not handed out; its first `taken` bytes are. Unless the input has ended, its last bytes may be the end.
    held: Vec<u8>,
    taken: usize,
    is_at_end: bool,
    /// Nothing has been handed out: the full stop may be all there is.
    is_first: bool,
}

impl<R: Read> Ended<R> {
    fn new(inner: R) -> Self {
        Self { inner, held: Vec::new(), taken: 0, is_at_end: false, is_first: true }
    }

    /// How many of the bytes held are surely rows.
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

    /// Gives its bytes in pieces, as pipes do.
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
