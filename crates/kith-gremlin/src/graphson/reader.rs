//! Reads values from JSON.

use super::{DEPTH_MAX, Fields};
use crate::{
    error::{GremlinError, Result},
    value::{Map, Set, Symbol, Value, numbers},
};
use kith_types::ErrorCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Reads the values of one text. Parts of it are parsed when they are reached, so that numbers keep all their digits.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, depth: 0 }
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
        let fields = self.fields(raw)?;
        let Some(type_name) = fields.get("@type") else {
            let entries = fields.0.into_iter().map(|(name, raw)| Ok((Value::text(name), self.value(raw)?)));
            return entries.collect::<Result<Map>>().map(|map| Value::Map(Arc::new(map)));
        };
        let type_name = self.string(type_name)?;
        let Some(value) = fields.get("@value") else {
            return Err(self.error_at(raw, format!("a {type_name} has no @value")));
        };
        self.typed(&type_name, value)
    }

    fn typed(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        match type_name {
            "g:List" => self.list(raw).map(|values| Value::List(Arc::new(values))),
            "g:Set" => {
                let values = self.list(raw)?;
                Ok(Value::Set(Arc::new(values.into_iter().collect::<Set>())))
            }
            "g:Map" => self.map(raw).map(|map| Value::Map(Arc::new(map))),
            "g:BulkSet" => self.bulk_set(raw),
            "g:Vertex" | "g:Edge" | "g:VertexProperty" | "g:Property" | "g:Path" => {
                self.element(type_name, raw)
            }
            "g:Metrics" | "g:TraversalMetrics" => self.profile(type_name, raw),
            "g:Bytecode" | "g:Binding" | "g:P" | "g:TextP" | "g:Lambda" | "g:Traverser" => {
                self.part_of_traversal(type_name, raw)
            }
            name if name.ends_with("Strategy") => self.strategy(name, raw),
            name => match name.strip_prefix("g:").and_then(symbol_type) {
                Some(enumeration) => self.symbol(enumeration, raw),
                None => self.scalar(name, raw),
            },
        }
    }

    fn symbol(&self, enumeration: &str, raw: &'a RawValue) -> Result<Value> {
        let name = self.string(raw)?;
        let symbol = Symbol::parse(enumeration, &name);
        symbol
            .map(Value::Symbol)
            .ok_or_else(|| self.error_at(raw, format!("{enumeration} has no value {name:?}")))
    }

    fn bulk_set(&mut self, raw: &'a RawValue) -> Result<Value> {
        let mut values = Vec::new();
        for (value, bulk) in self.pairs(raw)? {
            let value = self.value(value)?;
            values.push((value, self.long(bulk)?));
        }
        Ok(Value::BulkSet(Arc::new(values)))
    }

    /// A map, as an array in which a value follows each key.
    fn map(&mut self, raw: &'a RawValue) -> Result<Map> {
        let pairs = self.pairs(raw)?.into_iter();
        pairs.map(|(key, value)| Ok((self.value(key)?, self.value(value)?))).collect()
    }

    fn pairs(&self, raw: &'a RawValue) -> Result<Vec<(&'a RawValue, &'a RawValue)>> {
        let items = self.items(raw)?;
        let (pairs, rest) = items.as_chunks();
        if !rest.is_empty() {
            return Err(self.error_at(raw, "the last key has no value"));
        }
        Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
    }

    /// The values of an array.
    pub fn list(&mut self, raw: &'a RawValue) -> Result<Vec<Value>> {
        self.items(raw)?.into_iter().map(|item| self.value(item)).collect()
    }

    /// A number without a type.
    fn number(&self, raw: &'a RawValue) -> Result<Value> {
        let text = raw.get();
        let is_whole = !text.contains(['.', 'e', 'E']);
        if let Ok(number) = text.parse::<i64>() {
            return Ok(i32::try_from(number).map_or(Value::Long(number), Value::Int));
        }
        if is_whole {
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
    pub fn string(&self, raw: &'a RawValue) -> Result<Arc<str>> {
        self.parsed::<String>(raw, "a string").map(Arc::from)
    }

    /// The texts of the values of an array.
    pub fn items(&self, raw: &'a RawValue) -> Result<Vec<&'a RawValue>> {
        self.parsed(raw, "an array")
    }

    /// The fields of an object.
    pub fn fields(&self, raw: &'a RawValue) -> Result<Fields<'a>> {
        self.parsed(raw, "an object")
    }

    fn parsed<T: Deserialize<'a>>(&self, raw: &'a RawValue, what: &str) -> Result<T> {
        serde_json::from_str(raw.get()).map_err(|_| self.error_at(raw, format!("{what} is expected")))
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
