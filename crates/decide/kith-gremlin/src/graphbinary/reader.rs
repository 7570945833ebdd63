//! Reads bytes: numbers, strings and lengths, within a room and with positions for errors.

use super::DEPTH_MAX;
use crate::{
    error::{GremlinError, Result},
    room::{HEAD, Room},
};
use kith_types::ErrorCode;
use std::sync::Arc;
use uuid::Uuid;

/// Without a bound of memory, room for this many items is made before they are read. More is made as they arrive, so that nested
/// lists which claim a huge length do not take memory.
const CAPACITY_FIRST_MAX: usize = 32;

/// Reads one value after another.
///
/// Each method fails if the bytes end early or are not what it reads; the message names the position within the whole input.
#[derive(Debug)]
pub struct Reader<'a> {
    input: &'a [u8],
    offset: usize,
    depth: usize,
    /// `None` if memory is not bounded.
    room: Option<&'a mut Room>,
}

impl<'a> Reader<'a> {
    /// A reader of all of `input`.
    pub fn new(input: &'a [u8]) -> Self {
        Self::starting_at(input, 0)
    }

    /// A reader that begins `offset` bytes after the start of `input`; errors count from the start.
    pub fn starting_at(input: &'a [u8], offset: usize) -> Self {
        Self { input, offset: offset.min(input.len()), depth: 0, room: None }
    }

    /// The same reader, whose values take no more memory than there is room.
    pub fn within(self, room: &'a mut Room) -> Self {
        let room = Some(room).filter(|room| !room.is_unbounded());
        Self { room, ..self }
    }

    /// Takes room for what is allocated next.
    pub(super) fn take_room(&mut self, bytes: usize) -> Result<()> {
        self.room.as_mut().map_or(Ok(()), |room| room.take(bytes))
    }

    /// The room that was taken so far.
    pub(super) fn taken(&self) -> usize {
        self.room.as_ref().map_or(0, |room| room.taken())
    }

    /// Takes room for `count` items of this size, and returns for how many the list is to be made.
    pub(super) fn capacity(&mut self, count: usize, item_bytes: usize) -> Result<usize> {
        match &mut self.room {
            Some(room) => room.take(count.saturating_mul(item_bytes).saturating_add(HEAD)).map(|()| count),
            None => Ok(count.min(CAPACITY_FIRST_MAX)),
        }
    }

    /// Takes room for `count` instructions, and returns for how many the list is to be made.
    pub(super) fn instruction_capacity(&mut self, count: usize) -> Result<usize> {
        match &mut self.room {
            Some(room) => room.take_instructions(count).map(|()| count),
            None => Ok(count.min(CAPACITY_FIRST_MAX)),
        }
    }

    /// The number of bytes read so far, and of those before the start.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.offset == self.input.len()
    }

    /// Checks that nothing is left.
    pub fn finish(&self) -> Result<()> {
        let left = self.remaining();
        if left == 0 {
            Ok(())
        } else {
            Err(self.error_at(self.offset, format!("{left} bytes follow the end")))
        }
    }

    /// The result of `read`, which reads the parts of the value at `start`.
    pub(super) fn deeper<T>(&mut self, start: usize, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.error_at(start, format!("values nest deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// A UUID without its type and flag.
    pub fn uuid(&mut self) -> Result<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    /// A string without its type and flag.
    pub fn string(&mut self) -> Result<Arc<str>> {
        let start = self.offset;
        let bytes = self.sized()?;
        self.take_room(HEAD + bytes.len())?;
        std::str::from_utf8(bytes).map(Arc::from).map_err(|_| self.error_at(start, "a string is not UTF-8"))
    }

    /// A flag: whether a value is null, or a Boolean.
    pub(super) fn flag(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            flag => Err(self.error_at(self.offset - 1, format!("a flag is 0x{flag:02x}, neither 0 nor 1"))),
        }
    }

    /// An `Int` without its type and flag.
    pub fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// A `Long` without its type and flag.
    pub fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// As many bytes as the length before them says.
    pub(super) fn sized(&mut self) -> Result<&'a [u8]> {
        let length = self.count(1)?;
        self.take(length)
    }

    /// A number of items, each of at least `item_bytes` bytes, which fit into what is left.
    pub fn count(&mut self, item_bytes: usize) -> Result<usize> {
        let start = self.offset;
        let count = self.i32()?;
        let left = self.remaining();
        let fitting = usize::try_from(count).ok().filter(|count| *count <= left / item_bytes);
        fitting.ok_or_else(|| self.error_at(start, format!("a length is {count}, but {left} bytes are left")))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let rest = &self.input[self.offset..];
        let Some((taken, _)) = rest.split_at_checked(length) else {
            let message = format!("the input ends: {length} bytes are needed, {} are left", rest.len());
            return Err(self.error_at(self.offset, message));
        };
        self.offset += length;
        Ok(taken)
    }

    /// The next byte, which stays to be read.
    pub(super) fn peek(&self) -> Option<u8> {
        self.input.get(self.offset).copied()
    }

    fn remaining(&self) -> usize {
        self.input.len() - self.offset
    }

    /// An error about the byte at `offset`.
    pub fn error_at(&self, offset: usize, message: impl AsRef<str>) -> GremlinError {
        GremlinError::bad(format!("GraphBinary, byte {offset}: {}", message.as_ref()))
    }

    pub(super) fn unsupported_at(&self, offset: usize, what: &str) -> GremlinError {
        GremlinError::new(
            ErrorCode::UnsupportedOperation,
            format!("GraphBinary, byte {offset}: {what} is not supported"),
        )
    }

    /// The same error, with the position.
    pub(super) fn located(&self, offset: usize, error: GremlinError) -> GremlinError {
        self.error_at(offset, error.message)
    }
}
