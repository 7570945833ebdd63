//! Decodes commands from the bytes of a connection.

use super::{Limits, MalformedCommand};
use std::ops::Range;

/// The longest line that announces the number of arguments or the length of one, in bytes.
const COUNT_BYTES_MAX: usize = 32;
/// The longest inline command, in bytes.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// Finds commands. The caller passes the same bytes again, with more at the end, until a command is complete; the
/// decoder resumes where it stopped.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// The offset at which decoding resumes.
    at: usize,
    /// The number of arguments that have not arrived yet; `None` while it is unknown.
    left: Option<usize>,
    /// The places of the arguments that have arrived.
    arguments: Vec<Range<u32>>,
    is_whole: bool,
}

/// A complete command. A command without arguments has no effect.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    bytes: &'a [u8],
    arguments: &'a [Range<u32>],
}

impl<'a> Command<'a> {
    /// Returns the number of arguments, including the command's name.
    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Whether the command has no arguments.
    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// Returns the argument at an index, if there is one.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let range = self.arguments.get(index)?;
        Some(&self.bytes[range.start as usize..range.end as usize])
    }

    /// Returns the command's name; empty if there are no arguments.
    pub fn name(&self) -> &'a [u8] {
        self.get(0).unwrap_or_default()
    }

    /// Iterates over the arguments after the name.
    pub fn rest(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        let Self { bytes, arguments } = *self;
        let rest = arguments.get(1..).unwrap_or_default();
        rest.iter().map(|range| &bytes[range.start as usize..range.end as usize])
    }

    /// Returns the length of the encoded command in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl Decoder {
    /// Returns a decoder at the beginning of a command.
    pub fn new(limits: Limits) -> Self {
        Self { limits, at: 0, left: None, arguments: Vec::new(), is_whole: false }
    }

    /// Sets the limits that apply from now on.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Returns the next command if it is complete in `bytes`, which must begin where the last command taken ended.
    /// Until the command is taken, further calls return it again. Cost: each byte outside of arguments is examined
    /// once, however the bytes arrive.
    ///
    /// # Errors
    /// [`MalformedCommand`]; the caller must close the connection.
    pub fn decode<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<Command<'a>>, MalformedCommand> {
        if !self.is_whole {
            self.is_whole = match bytes.first() {
                None => return Ok(None),
                Some(b'*') => self.array(bytes)?,
                Some(_) => self.inline(bytes)?,
            };
        }
        Ok(self.is_whole.then(|| Command { bytes: &bytes[..self.at], arguments: &self.arguments }))
    }

    /// Takes the command that was found, and returns its length in bytes.
    pub fn take(&mut self) -> usize {
        debug_assert!(self.is_whole, "the caller has found a command");
        let taken = std::mem::take(&mut self.at);
        self.left = None;
        self.is_whole = false;
        if ARGUMENTS_KEPT < self.arguments.capacity() {
            self.arguments = Vec::new();
        }
        self.arguments.clear();
        taken
    }

    fn array(&mut self, bytes: &[u8]) -> Result<bool, MalformedCommand> {
        let mut left = match self.left {
            Some(left) => left,
            None => {
                let Some((count, next)) = number(bytes, 1, MalformedCommand::CountLine)? else {
                    return Ok(false);
                };
                let count = count.ok_or(MalformedCommand::Count)?;
                // As in Redis, a count of zero or below means an empty command.
                let count = usize::try_from(count).unwrap_or(0);
                match count {
                    count if count <= self.limits.arguments => {}
                    _ if self.limits.is_unauthenticated => {
                        return Err(MalformedCommand::CountUnauthenticated);
                    }
                    _ => return Err(MalformedCommand::Count),
                }
                self.at = next;
                count
            }
        };
        while 0 < left {
            if !self.argument(bytes)? {
                self.left = Some(left);
                return Ok(false);
            }
            left -= 1;
        }
        Ok(true)
    }

    /// Decodes the argument at the current offset; returns `false` if it is incomplete.
    fn argument(&mut self, bytes: &[u8]) -> Result<bool, MalformedCommand> {
        match bytes.get(self.at) {
            None => return Ok(false),
            Some(b'$') => {}
            Some(&got) => return Err(MalformedCommand::Kind { got }),
        }
        let Some((length, start)) = number(bytes, self.at + 1, MalformedCommand::LengthLine)? else {
            return Ok(false);
        };
        let length =
            length.and_then(|length| usize::try_from(length).ok()).ok_or(MalformedCommand::Length)?;
        match length {
            length if length <= self.limits.argument_bytes => {}
            _ if self.limits.is_unauthenticated => return Err(MalformedCommand::LengthUnauthenticated),
            _ => return Err(MalformedCommand::Length),
        }
        let end = start + length;
        if self.limits.command_bytes < end {
            return Err(MalformedCommand::Command);
        }
        match bytes.get(end..end + 2) {
            None => return Ok(false),
            Some(b"\r\n") => {}
            Some(_) => return Err(MalformedCommand::ArgumentEnd),
        }
        // The offsets fit into 32 bits, because `command_bytes` is far below 4 GiB.
        self.arguments.push(start as u32..end as u32);
        self.at = end + 2;
        Ok(true)
    }

    /// Decodes an inline command: a line of words, as people type them.
    fn inline(&mut self, bytes: &[u8]) -> Result<bool, MalformedCommand> {
        let Some(length) = bytes[self.at..].iter().position(|byte| *byte == b'\n') else {
            // These bytes contain no line end, so do not search them again.
            self.at = bytes.len();
            return if INLINE_BYTES_MAX < self.at { Err(MalformedCommand::Inline) } else { Ok(false) };
        };
        let end = self.at + length;
        if INLINE_BYTES_MAX < end {
            return Err(MalformedCommand::Inline);
        }
        self.at = end + 1;
        let mut start = 0;
        for word in bytes[..end].split(u8::is_ascii_whitespace) {
            if !word.is_empty() {
                self.arguments.push(start as u32..(start + word.len()) as u32);
            }
            start += word.len() + 1;
        }
        Ok(true)
    }
}

/// The most argument places whose memory is kept for the next command.
const ARGUMENTS_KEPT: usize = 4_096;

/// The number in a line (`None` if malformed), and the offset of the next line.
type NumberLine = (Option<i64>, usize);

/// Decodes the line at `start`; `None` if its end has not arrived.
fn number(
    bytes: &[u8],
    start: usize,
    too_long: MalformedCommand,
) -> Result<Option<NumberLine>, MalformedCommand> {
    let line = &bytes[start.min(bytes.len())..];
    let Some(length) = line.iter().take(COUNT_BYTES_MAX).position(|byte| *byte == b'\r') else {
        return if line.len() < COUNT_BYTES_MAX { Ok(None) } else { Err(too_long) };
    };
    match line.get(length + 1) {
        None => Ok(None),
        Some(b'\n') => Ok(Some((integer(&line[..length]), start + length + 2))),
        Some(_) => Ok(Some((None, start))),
    }
}

/// Parses a number as strictly as Redis: no plus sign, no spaces, at most 18 digits.
fn integer(digits: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match digits {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || 18 < digits.len() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(if is_negative { -value } else { value })
}
