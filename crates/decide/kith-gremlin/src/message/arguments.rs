//! The arguments of a request, which are named. Those that no operation of Kith reads are ignored, as in Gremlin Server.

use crate::{
    assemble,
    error::{GremlinError, Result},
    value::{Map, Value},
};
use std::sync::Arc;

/// The arguments that were not taken yet.
pub(super) struct Arguments(Map);

impl Arguments {
    pub fn new(arguments: Map) -> Self {
        Self(arguments)
    }

    /// The argument, unless it is absent or null.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.swap_remove(&Value::text(name)).filter(|value| *value != Value::Null)
    }

    /// The argument, which the operation needs.
    pub fn required(&mut self, name: &str) -> Result<Value> {
        self.take(name).ok_or_else(|| GremlinError::bad(format!("the argument {name:?} is missing")))
    }

    pub fn text(&mut self, name: &str) -> Result<Option<Arc<str>>> {
        self.take(name).map(|value| text(name, value)).transpose()
    }

    /// A map whose keys are strings.
    pub fn map(&mut self, name: &str) -> Result<Map> {
        let map = match self.take(name) {
            None => return Ok(Map::new()),
            Some(Value::Map(map)) => Arc::unwrap_or_clone(map),
            Some(other) => return Err(wanted(name, "a Map", &other)),
        };
        match map.keys().find(|key| key.as_text().is_none()) {
            Some(key) => {
                Err(assemble::wanted(&format!("the key {key} of the argument {name:?}"), "a String", key))
            }
            None => Ok(map),
        }
    }

    /// A whole number of any type that is not negative.
    pub fn count(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = match value {
            Value::Byte(number) => number.into(),
            Value::Short(number) => number.into(),
            Value::Int(number) => number.into(),
            Value::Long(number) => number,
            other => return Err(wanted(name, "a Long", &other)),
        };
        let negative = || GremlinError::bad(format!("the argument {name:?} is negative: {number}"));
        u64::try_from(number).map(Some).map_err(|_| negative())
    }
}

/// The text of an argument.
pub(super) fn text(name: &str, value: Value) -> Result<Arc<str>> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wanted(name, "a String", &other)),
    }
}

/// An error about an argument of the wrong type.
pub(super) fn wanted(name: &str, type_name: &str, got: &Value) -> GremlinError {
    assemble::wanted(&format!("the argument \"{name}\""), type_name, got)
}
