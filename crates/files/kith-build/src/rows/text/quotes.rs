//! Finds text that follows a closing quote. The `csv` crate adds such text to the field, so that quotes that are escaped by
//! a backslash, as some programs write them, would become other values in silence.

use memchr::memchr;
use std::collections::VecDeque;

/// The state between two blocks of a file.
pub(super) struct Quotes {
    delimiter: u8,
    /// Whether the next byte is inside quotes.
    inside: bool,
    /// Whether the last byte was a quote inside quotes. The next byte decides whether it closes them.
    open: bool,
    /// The last byte.
    last: u8,
    /// The position of the next block in the file.
    position: u64,
    /// The positions of texts that follow a closing quote, as far as no record has been asked for that contains them.
    faults: VecDeque<u64>,
}

impl Quotes {
    pub(super) fn new(delimiter: u8) -> Self {
        Quotes { delimiter, inside: false, open: false, last: b'\n', position: 0, faults: VecDeque::new() }
    }

    /// Looks at the next bytes of the file.
    pub(super) fn look(&mut self, block: &[u8]) {
        if block.is_empty() {
            return;
        }
        let mut from = 0;
        if std::mem::take(&mut self.open) {
            from = self.close(block, 0);
        }
        while let Some(found) = memchr(b'"', &block[from..]) {
            let at = from + found;
            from = at + 1;
            if self.inside && from == block.len() {
                self.open = true;
            } else if self.inside {
                from = self.close(block, from);
            } else {
                let before = if at == 0 { self.last } else { block[at - 1] };
                self.inside = self.ends_field(before);
            }
        }
        self.last = block.last().copied().unwrap_or(self.last);
        self.position += block.len() as u64;
    }

    /// Whether text follows a closing quote in the record that ends before this position of the file. Records are asked for in
    /// their order.
    pub(super) fn has_fault_before(&mut self, end: u64) -> bool {
        let mut found = false;
        while self.faults.front().is_some_and(|fault| *fault < end) {
            self.faults.pop_front();
            found = true;
        }
        found
    }

    /// Ends the quotes, or goes on inside them behind a doubled quote. `at` is the position of the byte after the quote. Returns
    /// where to look on.
    fn close(&mut self, block: &[u8], at: usize) -> usize {
        if block[at] == b'"' {
            return at + 1;
        }
        // As for the `csv` crate, text that follows goes on until the field ends, and quotes in it are part of it.
        self.inside = false;
        if !self.ends_field(block[at]) {
            self.faults.push_back(self.position + at as u64);
        }
        at
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || matches!(byte, b'\n' | b'\r')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions of texts after a closing quote, in blocks of this size.
    fn faults(text: &str, size: usize) -> Vec<u64> {
        let mut quotes = Quotes::new(b',');
        text.as_bytes().chunks(size).for_each(|block| quotes.look(block));
        quotes.faults.into()
    }

    #[test]
    fn text_after_a_closing_quote_is_found_wherever_blocks_end() {
        for (text, places) in [
            ("a,\"b\",c\n\"d\"\"e\",\"\"\n\"\",f", &[][..]),
            ("a,b\"c\"d\n", &[]),
            ("\"a\r\nb\",c\r\n\"d\"\r\n", &[]),
            ("a,\"b\n\n\"\n\"c\" ,d\n", &[11]),
            ("1,\"say \\\"hi\\\", ok\"\n2,\"b\"\n3,\"c\"d\n", &[9, 30]),
            ("a\n\"b\"c\n", &[5]),
            ("\"\"\"a\"\"\",b\n\"\"\"\"c", &[14]),
            ("\"unclosed\n", &[]),
        ] {
            for size in 1..=text.len() {
                assert_eq!(faults(text, size), places, "{text:?} in blocks of {size}");
            }
        }
    }

    #[test]
    fn a_fault_belongs_to_the_record_that_contains_it() {
        let mut quotes = Quotes::new(b',');
        quotes.look(b"\"a\"b,c\n1,2\n\"d\"e\"f\"g,3\n");
        assert_eq!([8, 12, 26].map(|end| quotes.has_fault_before(end)), [true, false, true]);
    }
}
