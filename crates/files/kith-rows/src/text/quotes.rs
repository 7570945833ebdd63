//! Finds text that follows a closing quote. The `csv` crate adds such text to the field, so that quotes that are escaped by
//! a backslash, as some programs write them, would become other values in silence.

use memchr::{memchr, memchr_iter};

/// The state between two blocks of a file.
pub(super) struct Quotes {
    delimiter: u8,
    /// Whether the next byte is inside quotes.
    inside: bool,
    /// Whether the last byte was a quote inside quotes. The next byte decides whether it closes them.
    open: bool,
    /// The last byte.
    last: u8,
    /// The line of the next byte, from 1.
    line: u64,
}

impl Quotes {
    pub(super) fn new(delimiter: u8) -> Self {
        Quotes { delimiter, inside: false, open: false, last: b'\n', line: 1 }
    }

    /// Looks at the next bytes of the file. The error is the line of text that follows a closing quote.
    pub(super) fn look(&mut self, block: &[u8]) -> Result<(), u64> {
        let mut from = 0;
        if std::mem::take(&mut self.open) && !block.is_empty() {
            from = self.close(block, 0)?;
        }
        while let Some(found) = memchr(b'"', &block[from..]) {
            let at = from + found;
            from = at + 1;
            if self.inside && from == block.len() {
                self.open = true;
            } else if self.inside {
                from = self.close(block, from)?;
            } else {
                let before = if at == 0 { self.last } else { block[at - 1] };
                self.inside = self.ends_field(before);
            }
        }
        self.last = block.last().copied().unwrap_or(self.last);
        self.line += memchr_iter(b'\n', block).count() as u64;
        Ok(())
    }

    /// Ends the quotes, or goes on inside them behind a doubled quote. `at` is the place of the byte after the quote. Returns
    /// where to look on.
    fn close(&mut self, block: &[u8], at: usize) -> Result<usize, u64> {
        match block[at] {
            b'"' => Ok(at + 1),
            next if self.ends_field(next) => {
                self.inside = false;
                Ok(at)
            }
            _ => Err(self.line + memchr_iter(b'\n', &block[..at]).count() as u64),
        }
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || matches!(byte, b'\n' | b'\r')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_after_a_closing_quote_is_found_wherever_blocks_end() {
        for (text, line) in [
            ("a,\"b\",c\n\"d\"\"e\",\"\"\n\"\",f", None),
            ("a,b\"c\"d\n", None),
            ("\"a\r\nb\",c\r\n\"d\"\r\n", None),
            ("a,\"b\n\n\"\n\"c\" ,d\n", Some(4)),
            ("1,\"say \\\"hi\\\", ok\"\n", Some(1)),
            ("a\n\"b\"c\n", Some(2)),
            ("\"\"\"a\"\"\",b\n\"\"\"\"c", Some(2)),
            ("\"unclosed\n", None),
        ] {
            for size in 1..=text.len() {
                let mut quotes = Quotes::new(b',');
                let found = text.as_bytes().chunks(size).find_map(|block| quotes.look(block).err());
                assert_eq!(found, line, "{text:?} in blocks of {size}");
            }
        }
    }
}
