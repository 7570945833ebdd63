//! Reads JSON: strings, and the parts of arrays and objects, within a room and with positions for errors.

use super::{
    DEPTH_MAX, Fields,
    fields::{FieldsSeed, ItemsSeed},
};
use crate::{
    error::{GremlinError, Result},
    room::{HEAD, Room},
};
use kith_types::ErrorCode;
use serde::de::DeserializeSeed;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Each level of nesting is parsed again. These constants bound the bytes that are parsed in all: a text may be parsed 40 times,
/// which deeply nested traversals need, and a short text more often.
const PASSES_MAX: usize = 40;
const PASSED_BYTES_MAX: usize = 64 << 20;

/// Reads the values of one text. Parts of it are parsed when they are reached, so that numbers keep all their digits.
#[derive(Debug)]
pub(crate) struct JsonReader<'a> {
    text: &'a str,
    depth: usize,
    /// The number of bytes that have been parsed.
    passed: usize,
    /// `None` if memory is not bounded.
    room: Option<&'a mut Room>,
}

impl<'a> JsonReader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, depth: 0, passed: 0, room: None }
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

    /// Takes room for one more item of a list.
    pub(super) fn grow<T>(&mut self, list: &mut Vec<T>) -> Result<()> {
        self.room.as_mut().map_or(Ok(()), |room| room.grow(list))
    }

    pub(super) fn take_instruction(&mut self) -> Result<()> {
        self.room.as_mut().map_or(Ok(()), |room| room.take_instructions(1))
    }

    /// Notes that a part of the text is gone through again.
    fn pass(&mut self, raw: &RawValue) -> Result<()> {
        self.passed = self.passed.saturating_add(raw.get().len());
        if self.passed <= PASSED_BYTES_MAX.max(self.text.len().saturating_mul(PASSES_MAX)) {
            return Ok(());
        }
        let message =
            "GraphSON: the text nests too deeply for its length; send less at once, or use GraphBinary";
        Err(GremlinError::new(ErrorCode::TooLarge, message))
    }

    /// The whole text, which is checked to be JSON.
    pub fn document(&self) -> Result<&'a RawValue> {
        serde_json::from_str(self.text)
            .map_err(|error| GremlinError::bad(format!("GraphSON: not JSON: {error}")))
    }

    /// The result of `read`, which reads the parts of a part of the text.
    pub(super) fn deeper<T>(
        &mut self,
        raw: &RawValue,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.error_at(raw, format!("values nest deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// A string.
    pub fn string(&mut self, raw: &'a RawValue) -> Result<Arc<str>> {
        self.take_room(HEAD + raw.get().len())?;
        self.plain_string(raw).map(Arc::from)
    }

    /// A string that is not kept.
    pub(super) fn plain_string(&self, raw: &'a RawValue) -> Result<String> {
        serde_json::from_str(raw.get()).map_err(|_| self.error_at(raw, "a string is expected"))
    }

    /// Hands over the texts of the values of an array, one after another.
    pub(super) fn each_item(
        &mut self,
        raw: &'a RawValue,
        mut each: impl FnMut(&mut Self, &'a RawValue) -> Result<()>,
    ) -> Result<()> {
        self.pass(raw)?;
        let mut items = serde_json::Deserializer::from_str(raw.get());
        let read = ItemsSeed(|item| each(self, item)).deserialize(&mut items);
        read.map_err(|_| self.error_at(raw, "an array is expected"))?
    }

    /// Hands over the items of an array two by two.
    pub(super) fn each_pair(
        &mut self,
        raw: &'a RawValue,
        mut each: impl FnMut(&mut Self, &'a RawValue, &'a RawValue) -> Result<()>,
    ) -> Result<()> {
        let mut first = None;
        self.each_item(raw, |reader, item| match first.take() {
            None => {
                first = Some(item);
                Ok(())
            }
            Some(first) => each(reader, first, item),
        })?;
        if first.is_some() { Err(self.error_at(raw, "the last key has no value")) } else { Ok(()) }
    }

    /// The fields of an object. What they take is given back by [`JsonReader::with_fields`].
    pub fn fields(&mut self, raw: &'a RawValue) -> Result<Fields<'a>> {
        self.pass(raw)?;
        let mut error = None;
        let seed = FieldsSeed { room: self.room.as_deref_mut(), error: &mut error };
        let read = seed.deserialize(&mut serde_json::Deserializer::from_str(raw.get()));
        read.map_err(|_| error.unwrap_or_else(|| self.error_at(raw, "an object is expected")))
    }

    /// The result of `read` for the fields of an object.
    pub(super) fn with_fields<T>(
        &mut self,
        raw: &'a RawValue,
        read: impl FnOnce(&mut Self, &Fields<'a>) -> Result<T>,
    ) -> Result<T> {
        let fields = self.fields(raw)?;
        let value = read(self, &fields)?;
        if let Some(room) = &mut self.room {
            room.give_back(fields.bytes);
        }
        Ok(value)
    }

    /// A field that an object of this type must have.
    pub fn required(&self, fields: &Fields<'a>, name: &str, of: &'a RawValue) -> Result<&'a RawValue> {
        fields.get(name).ok_or_else(|| self.error_at(of, format!("the field {name:?} is missing")))
    }

    /// An error about a part of the text.
    pub fn error_at(&self, raw: &RawValue, message: impl AsRef<str>) -> GremlinError {
        GremlinError::bad(format!("GraphSON, byte {}: {}", self.offset(raw), message.as_ref()))
    }

    pub fn unsupported_at(&self, raw: &RawValue, what: &str) -> GremlinError {
        let message = format!("GraphSON, byte {}: {what} is not supported", self.offset(raw));
        GremlinError::new(ErrorCode::UnsupportedOperation, message)
    }

    /// The same error, with the position.
    pub fn located(&self, raw: &RawValue, error: GremlinError) -> GremlinError {
        self.error_at(raw, error.message)
    }

    /// Where a part of the text begins.
    fn offset(&self, raw: &RawValue) -> usize {
        raw.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }
}
