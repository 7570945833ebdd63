//! Splits decompressed bytes into lines and fields, by RFC 4180 with any single-byte delimiter.
//!
//! A line without quotes is split in place; quoted fields are unescaped into another buffer. A quote is special only at the
//! beginning of a field. Both `\r\n` and `\n` end a line. After a fault inside quotes, reading goes on with the next line,
//! so that one stray quote cannot swallow a file.

use super::FileError;
use super::fault::LineFault;
use super::quoted::{SplitFault, split_quoted, trim_end};
use super::source::Source;
use crate::rows::id::take_plain_id;
use memchr::{memchr, memchr_iter};
use std::ops::Range;

/// The result of [`RecordReader::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextRecord {
    /// A record; its fields are in [`RecordReader::field`].
    Record,
    /// A line that is not a record.
    Fault(LineFault),
    /// The buffered bytes contain no whole record: call [`RecordReader::fill`].
    More,
}

/// Splits a [`Source`] into records.
pub(super) struct RecordReader {
    pub(super) source: Source,
    pub(super) delimiter: u8,
    /// Whether lines that begin with `#` or `%` are skipped.
    pub(super) has_comments: bool,
    /// The longest line or quoted record that is accepted.
    line_bytes_max: usize,
    /// Decompressed bytes; those before `at` are done.
    buffer: Vec<u8>,
    at: usize,
    /// Whether the source is at its end. The buffer's last line may then lack its `\n`.
    at_end: bool,
    /// The number of the line at `at`, from 1.
    line: u64,
    /// The bytes of the current record, and its line.
    record: Range<usize>,
    record_line: u64,
    /// The fields of the current record: ranges of `unquoted` if `is_quoted`, else of `buffer`.
    fields: Vec<Range<usize>>,
    unquoted: Vec<u8>,
    is_quoted: bool,
}

impl RecordReader {
    pub(super) fn new(source: Source, delimiter: u8, line_bytes_max: usize) -> Self {
        RecordReader {
            source,
            delimiter,
            has_comments: false,
            line_bytes_max,
            buffer: Vec::new(),
            at: 0,
            at_end: false,
            line: 1,
            record: 0..0,
            record_line: 1,
            fields: Vec::new(),
            unquoted: Vec::new(),
            is_quoted: false,
        }
    }

    /// Drops the bytes that are done and reads more. Returns `false` at the end, after every record was taken.
    pub(super) fn fill(&mut self) -> Result<bool, FileError> {
        if self.buffer.len() - self.at > self.line_bytes_max {
            let path = self.source.path.clone();
            return Err(FileError::LineTooLong { path, line: self.line, limit: self.line_bytes_max });
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        if !self.at_end {
            self.at_end = !self.source.append_to(&mut self.buffer, self.line)?;
        }
        Ok(!self.at_end || !self.buffer.is_empty())
    }

    /// The next record among the buffered bytes. Blank lines are skipped.
    pub(super) fn next(&mut self) -> NextRecord {
        loop {
            let rest = &self.buffer[self.at..];
            let Some(length) = self.line_length(rest) else { return NextRecord::More };
            let line = trim_end(&rest[..length]);
            if self.has_comments && matches!(line.first(), Some(b'#' | b'%')) {
                self.begin_record(length, 1);
                continue;
            }
            if memchr(b'"', line).is_some() {
                return self.next_quoted(length);
            }
            let width = line.len();
            self.begin_record(length, 1);
            if 0 < width {
                self.split_plain(width);
                return NextRecord::Record;
            }
        }
    }

    /// The length of the line at the front of `rest`, with its `\n`.
    fn line_length(&self, rest: &[u8]) -> Option<usize> {
        match memchr(b'\n', rest) {
            Some(end) => Some(end + 1),
            None => (self.at_end && !rest.is_empty()).then_some(rest.len()),
        }
    }

    fn begin_record(&mut self, length: usize, lines: u64) {
        self.record = self.at..self.at + length;
        self.record_line = self.line;
        self.at += length;
        self.line += lines;
        self.is_quoted = false;
        self.fields.clear();
    }

    fn split_plain(&mut self, width: usize) {
        let from = self.record.start;
        let line = &self.buffer[from..from + width];
        let mut start = from;
        if self.delimiter == b' ' {
            let words = line.split(|byte| matches!(byte, b' ' | b'\t'));
            for word in words {
                if !word.is_empty() {
                    self.fields.push(start..start + word.len());
                }
                start += word.len() + 1;
            }
            return;
        }
        for end in memchr_iter(self.delimiter, line) {
            self.fields.push(start..from + end);
            start = from + end + 1;
        }
        self.fields.push(start..from + width);
    }

    /// Takes a record whose first line, of `length` bytes, contains a quote.
    fn next_quoted(&mut self, length: usize) -> NextRecord {
        let (mut fields, mut text) = (std::mem::take(&mut self.fields), std::mem::take(&mut self.unquoted));
        fields.clear();
        text.clear();
        let rest = &self.buffer[self.at..];
        let split = split_quoted(rest, self.delimiter, self.at_end, &mut fields, &mut text);
        let outcome = match split {
            Ok(consumed) => {
                let lines = memchr_iter(b'\n', &rest[..consumed - 1]).count() as u64 + 1;
                self.begin_record(consumed, lines);
                NextRecord::Record
            }
            Err(SplitFault::More) if rest.len() <= self.line_bytes_max && !self.at_end => NextRecord::More,
            Err(reason) => {
                self.begin_record(length, 1);
                let after = matches!(reason, SplitFault::TextAfterQuote);
                NextRecord::Fault(if after { LineFault::TextAfterQuote } else { LineFault::UnclosedQuote })
            }
        };
        (self.fields, self.unquoted, self.is_quoted) = (fields, text, true);
        outcome
    }

    /// Takes a line `id delimiter id` without special characters, which is the common case of an edge list. `None` leaves
    /// the line to [`RecordReader::next`].
    #[inline]
    pub(super) fn next_plain_pair(&mut self) -> Option<(u64, u64)> {
        let rest = &self.buffer[self.at..];
        let (src, used) = take_plain_id(rest, self.delimiter)?;
        let (dst, more) = take_plain_id(&rest[used..], b'\n')?;
        self.at += used + more;
        self.line += 1;
        Some((src, dst))
    }

    /// The number of fields of the current record.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.fields.len()
    }

    /// A field of the current record, unescaped.
    #[inline]
    pub(super) fn field(&self, index: usize) -> &[u8] {
        let bytes = if self.is_quoted { &self.unquoted } else { &self.buffer };
        &bytes[self.fields[index].clone()]
    }

    /// The current record's bytes as they are in the file, without the line end.
    pub(super) fn record_bytes(&self) -> &[u8] {
        trim_end(&self.buffer[self.record.clone()])
    }

    /// The line on which the current record began.
    pub(super) fn record_line(&self) -> u64 {
        self.record_line
    }

    /// The line after the current record.
    pub(super) fn next_line(&self) -> u64 {
        self.line
    }

    /// Makes the current record the next one again. Call it only before [`RecordReader::fill`].
    pub(super) fn put_back(&mut self) {
        self.at = self.record.start;
        self.line = self.record_line;
    }

    /// The unread bytes of the buffer.
    pub(super) fn peek(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Skips `bytes` of [`RecordReader::peek`] that do not belong to a line.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Skips the line at the front of [`RecordReader::peek`], whatever it contains.
    pub(super) fn skip_line(&mut self) {
        let length = self.line_length(self.peek()).unwrap_or(0);
        self.at += length;
        self.line += 1;
    }

    /// Whether the source is at its end.
    pub(super) fn at_end(&self) -> bool {
        self.at_end
    }
}
