//! Reads values from JSON.

use super::{
    DEPTH_MAX, Fields,
    elements::ElementReader,
    fields::{FieldsSeed, ItemsSeed},
    scalars::ScalarReader,
    traversals::TraversalReader,
};
use crate::{
    error::{GremlinError, Result},
    room::{ELEMENT, ENTRY, GROWING_ENTRY, HEAD, Room},
    value::{Map, Set, Symbol, Value, numbers},
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

    /// The value of a part of the text.
    pub fn value(&mut self, raw: &'a RawValue) -> Result<Value> {
        if self.depth == DEPTH_MAX {
            return Err(self.error_at(raw, format!("values nest deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let value = match raw.get().as_bytes().first() {
            Some(b'{') => self.object(raw),
            Some(b'[') => self.list(raw).map(|values| Value::List(Arc::new(values))),
            Some(b'"') => self.string(raw).map(Value::String),
            Some(b't') => Ok(Value::Bool(true)),
            Some(b'f') => Ok(Value::Bool(false)),
            Some(b'n') => Ok(Value::Null),
            _ => self.number(raw),
        };
        self.depth -= 1;
        value
    }

    /// A value with a type, or a map.
    fn object(&mut self, raw: &'a RawValue) -> Result<Value> {
        self.with_fields(raw, |reader, fields| {
            let Some(type_name) = fields.get("@type") else {
                return reader.map_of_fields(&fields.list).map(|map| Value::Map(Arc::new(map)));
            };
            let type_name = reader.plain_string(type_name)?;
            let Some(value) = fields.get("@value") else {
                return Err(reader.error_at(raw, format!("a {type_name} has no @value")));
            };
            reader.typed(&type_name, value)
        })
    }

    /// A map whose keys are the names of fields.
    pub(super) fn map_of_fields(&mut self, fields: &[(String, &'a RawValue)]) -> Result<Map> {
        let bytes = fields.len() * (ENTRY + HEAD) + fields.iter().map(|(name, _)| name.len()).sum::<usize>();
        self.take_room(HEAD + bytes)?;
        let mut map = Map::with_capacity(fields.len());
        for (name, raw) in fields {
            map.insert(Value::text(&**name), self.value(raw)?);
        }
        Ok(map)
    }

    fn typed(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        self.take_room(HEAD)?;
        match type_name {
            "g:List" => self.list(raw).map(|values| Value::List(Arc::new(values))),
            "g:Set" => {
                let values = self.list(raw)?;
                self.take_room(values.len() * ENTRY)?;
                Ok(Value::Set(Arc::new(values.into_iter().collect::<Set>())))
            }
            "g:Map" => self.map(raw).map(|map| Value::Map(Arc::new(map))),
            "g:BulkSet" => self.bulk_set(raw),
            "g:Vertex" | "g:Edge" | "g:VertexProperty" | "g:Property" | "g:Path" => {
                self.take_room(ELEMENT)?;
                ElementReader(self).element(type_name, raw)
            }
            "g:Metrics" | "g:TraversalMetrics" => ElementReader(self).profile(type_name, raw),
            "g:Bytecode" | "g:Binding" | "g:P" | "g:TextP" | "g:Lambda" | "g:Traverser" => {
                TraversalReader(self).part_of_traversal(type_name, raw)
            }
            name if name.ends_with("Strategy") => TraversalReader(self).strategy(name, raw),
            name => match name.strip_prefix("g:").and_then(symbol_type) {
                Some(enumeration) => self.symbol(enumeration, raw),
                None => ScalarReader(self).scalar(name, raw),
            },
        }
    }

    fn symbol(&mut self, enumeration: &str, raw: &'a RawValue) -> Result<Value> {
        let name = self.plain_string(raw)?;
        let symbol = Symbol::parse(enumeration, &name);
        symbol
            .map(Value::Symbol)
            .ok_or_else(|| self.error_at(raw, format!("{enumeration} has no value {name:?}")))
    }

    fn bulk_set(&mut self, raw: &'a RawValue) -> Result<Value> {
        let mut values = Vec::new();
        self.each_pair(raw, |reader, value, bulk| {
            reader.grow(&mut values)?;
            let value = reader.value(value)?;
            values.push((value, reader.long(bulk)?));
            Ok(())
        })?;
        Ok(Value::BulkSet(Arc::new(values)))
    }

    /// A map, as an array in which a value follows each key.
    fn map(&mut self, raw: &'a RawValue) -> Result<Map> {
        let mut map = Map::new();
        self.each_pair(raw, |reader, key, value| {
            reader.take_room(GROWING_ENTRY)?;
            let key = reader.value(key)?;
            map.insert(key, reader.value(value)?);
            Ok(())
        })?;
        Ok(map)
    }

    /// Hands over the items of an array two by two.
    fn each_pair(
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

    /// The values of an array.
    pub fn list(&mut self, raw: &'a RawValue) -> Result<Vec<Value>> {
        self.take_room(HEAD)?;
        let mut values = Vec::new();
        self.each_item(raw, |reader, item| {
            reader.grow(&mut values)?;
            values.push(reader.value(item)?);
            Ok(())
        })?;
        Ok(values)
    }

    /// A number without a type.
    fn number(&mut self, raw: &'a RawValue) -> Result<Value> {
        let text = raw.get();
        let is_whole = !text.contains(['.', 'e', 'E']);
        if let Ok(number) = text.parse::<i64>() {
            return Ok(i32::try_from(number).map_or(Value::Long(number), Value::Int));
        }
        if is_whole {
            self.take_room(HEAD + text.len())?;
            let number = numbers::integer_of_text(text).map_err(|error| self.located(raw, error))?;
            return Ok(Value::BigInteger(Arc::new(number)));
        }
        text.parse().map(Value::Double).map_err(|_| self.error_at(raw, "this is no number"))
    }

    /// A whole number, with or without a type.
    pub fn long(&mut self, raw: &'a RawValue) -> Result<i64> {
        match self.value(raw)? {
            Value::Int(number) => Ok(number.into()),
            Value::Long(number) => Ok(number),
            other => Err(self.error_at(raw, format!("a whole number is expected, not {other}"))),
        }
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

/// The name of an enumeration, if it is one.
fn symbol_type(name: &str) -> Option<&str> {
    Symbol::TYPE_NAMES.contains(&name).then_some(name)
}
