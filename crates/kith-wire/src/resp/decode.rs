//! Commands, out of the bytes of a connection as they come.

use super::{Limits, Malformed};
use std::ops::Range;

/// Bytes of a line that says how many arguments follow, or how long one is.
const COUNT_BYTES_MAX: usize = 32;
/// Bytes of a command that is a line of words.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// Finds commands. It is given the same bytes again, with more behind them, until a command is whole, and goes on where it was.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// Where it goes on.
    at: usize,
    /// Arguments that have still to come; `None` before their number is known.
    left: Option<usize>,
    /// Where those that have come lie.
    arguments: Vec<Range<u32>>,
    is_whole: bool,
}

/// A whole command. It may have no arguments, and means nothing then.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    bytes: &'a [u8],
    arguments: &'a [Range<u32>],
}

impl<'a> Command<'a> {
    /// How many arguments there are, the command's name among them.
    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// The argument at an index; nothing beyond the last.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let place = self.arguments.get(index)?;
        Some(&self.bytes[place.start as usize..place.end as usize])
    }

    /// The command's name; nothing if there are no arguments.
    pub fn name(&self) -> &'a [u8] {
        self.get(0).unwrap_or_default()
    }

    /// The arguments behind the name.
    pub fn rest(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        let Self { bytes, arguments } = *self;
        let rest = arguments.get(1..).unwrap_or_default();
        rest.iter().map(|place| &bytes[place.start as usize..place.end as usize])
    }

    /// Bytes of the command, as it came.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl Decoder {
    /// At the beginning of a command.
    pub fn new(limits: Limits) -> Self {
        Self { limits, at: 0, left: None, arguments: Vec::new(), is_whole: false }
    }

    /// What may come from now on.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The next command, if all of it is in `bytes`, which begin where the last command that was taken ended. It is found again
    /// until it is taken. Cost: each byte that is not of an argument is looked at once, however the bytes come.
    ///
    /// # Errors
    /// [`Malformed`]: the connection is to be closed.
    pub fn decode<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<Command<'a>>, Malformed> {
        if !self.is_whole {
            self.is_whole = match bytes.first() {
                None => return Ok(None),
                Some(b'*') => self.array(bytes)?,
                Some(_) => self.inline(bytes)?,
            };
        }
        Ok(self.is_whole.then(|| Command { bytes: &bytes[..self.at], arguments: &self.arguments }))
    }

    /// Goes on behind the command that was found: how many bytes it was.
    pub fn take(&mut self) -> usize {
        debug_assert!(self.is_whole, "a command was found");
        let taken = std::mem::take(&mut self.at);
        self.left = None;
        self.is_whole = false;
        if ARGUMENTS_KEPT < self.arguments.capacity() {
            self.arguments = Vec::new();
        }
        self.arguments.clear();
        taken
    }

    fn array(&mut self, bytes: &[u8]) -> Result<bool, Malformed> {
        let mut left = match self.left {
            Some(left) => left,
            None => {
                let Some((count, next)) = number(bytes, 1, Malformed::CountLine)? else { return Ok(false) };
                let count = count.ok_or(Malformed::Count)?;
                // As Redis: none, and fewer than none, are an empty command.
                let count = usize::try_from(count).unwrap_or(0);
                match count {
                    count if count <= self.limits.arguments => {}
                    _ if self.limits.is_unauthenticated => return Err(Malformed::CountUnauthenticated),
                    _ => return Err(Malformed::Count),
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

    /// One argument at where it goes on; `false` if not all of it is here.
    fn argument(&mut self, bytes: &[u8]) -> Result<bool, Malformed> {
        match bytes.get(self.at) {
            None => return Ok(false),
            Some(b'$') => {}
            Some(&got) => return Err(Malformed::Kind { got }),
        }
        let Some((length, start)) = number(bytes, self.at + 1, Malformed::LengthLine)? else {
            return Ok(false);
        };
        let length = length.and_then(|length| usize::try_from(length).ok()).ok_or(Malformed::Length)?;
        match length {
            length if length <= self.limits.argument_bytes => {}
            _ if self.limits.is_unauthenticated => return Err(Malformed::LengthUnauthenticated),
            _ => return Err(Malformed::Length),
        }
        let end = start + length;
        if self.limits.command_bytes < end {
            return Err(Malformed::Command);
        }
        match bytes.get(end..end + 2) {
            None => return Ok(false),
            Some(b"\r\n") => {}
            Some(_) => return Err(Malformed::ArgumentEnd),
        }
        // Below 4 GiB: `command_bytes` is far below.
        self.arguments.push(start as u32..end as u32);
        self.at = end + 2;
        Ok(true)
    }

    /// A line of words, as people type them.
    fn inline(&mut self, bytes: &[u8]) -> Result<bool, Malformed> {
        let Some(length) = bytes[self.at..].iter().position(|byte| *byte == b'\n') else {
            // Not looked at again; there is no line end in it.
            self.at = bytes.len();
            return if INLINE_BYTES_MAX < self.at { Err(Malformed::Inline) } else { Ok(false) };
        };
        let end = self.at + length;
        if INLINE_BYTES_MAX < end {
            return Err(Malformed::Inline);
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

/// Places of arguments that are kept from one command for the next.
const ARGUMENTS_KEPT: usize = 4_096;

/// A number, if it is one, and where the next line begins.
type NumberLine = (Option<i64>, usize);

/// The line at `start`; `None` if it has not ended yet.
fn number(bytes: &[u8], start: usize, too_long: Malformed) -> Result<Option<NumberLine>, Malformed> {
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

/// A number as Redis reads one: no plus, no space, no digits too many.
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
