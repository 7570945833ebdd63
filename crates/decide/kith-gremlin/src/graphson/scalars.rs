//! Reads numbers, times and other values without parts.

use super::JsonReader;
use crate::{
    error::{GremlinError, Result},
    room::HEAD,
    value::{Value, duration, numbers, time},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::value::RawValue;
use std::{borrow::Cow, str::FromStr, sync::Arc};

/// Reads numbers, times and other values without parts from the text of a reader.
pub(super) struct ScalarReader<'r, 'a>(pub(super) &'r mut JsonReader<'a>);

impl<'a> ScalarReader<'_, 'a> {
    pub(super) fn scalar(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        let text = self.text_of(raw)?;
        self.0.take_room(text.len())?;
        let value = match type_name {
            "g:Int32" => whole(&text).map(Value::Int),
            "g:Int64" => whole(&text).map(Value::Long),
            "gx:Int16" => whole(&text).map(Value::Short),
            "gx:Byte" => whole(&text).map(Value::Byte),
            "g:Double" => real(&text).map(Value::Double),
            "g:Float" => real(&text).map(Value::Float),
            "gx:BigInteger" => {
                numbers::integer_of_text(&text).map(|number| Value::BigInteger(Arc::new(number)))
            }
            "gx:BigDecimal" => numbers::decimal_of_text(&text),
            "g:Date" | "g:Timestamp" => whole(&text).and_then(time::instant_of_millis),
            "gx:OffsetDateTime" | "gx:ZonedDateTime" | "gx:Instant" => {
                wanted(time::parse_date_time(&text).map(Value::DateTime), "a point in time")
            }
            "gx:Duration" => wanted(duration::parse(&text), "a duration"),
            "g:UUID" => wanted(text.parse().ok().map(Value::Uuid), "a UUID"),
            "g:Class" => Ok(Value::Class(text.as_ref().into())),
            "gx:Char" => {
                let mut chars = text.chars();
                let only = chars.next().filter(|_| chars.next().is_none());
                wanted(only.map(Value::Char), "one character")
            }
            "gx:ByteBuffer" => {
                let bytes = STANDARD.decode(&*text).ok();
                wanted(bytes.map(|bytes| Value::Binary(bytes.into())), "bytes in base64")
            }
            _ => return Err(self.0.unsupported_at(raw, &format!("the type {type_name:?}"))),
        };
        value.map_err(|error| {
            self.0.located(raw, GremlinError::bad(format!("{type_name}: {}", error.message)))
        })
    }

    /// A number without a type.
    pub(super) fn number(&mut self, raw: &'a RawValue) -> Result<Value> {
        let text = raw.get();
        let is_whole = !text.contains(['.', 'e', 'E']);
        if let Ok(number) = text.parse::<i64>() {
            return Ok(i32::try_from(number).map_or(Value::Long(number), Value::Int));
        }
        if is_whole {
            self.0.take_room(HEAD + text.len())?;
            let number = numbers::integer_of_text(text).map_err(|error| self.0.located(raw, error))?;
            return Ok(Value::BigInteger(Arc::new(number)));
        }
        text.parse().map(Value::Double).map_err(|_| self.0.error_at(raw, "this is no number"))
    }

    /// The text of a string, or a number as it is written.
    fn text_of(&self, raw: &'a RawValue) -> Result<Cow<'a, str>> {
        match raw.get().as_bytes().first() {
            Some(b'"') => self.0.plain_string(raw).map(Cow::Owned),
            _ => Ok(Cow::Borrowed(raw.get())),
        }
    }
}

fn whole<T: FromStr>(text: &str) -> Result<T> {
    wanted(text.parse().ok(), "a whole number in its range")
}

fn real<T: FromStr>(text: &str) -> Result<T> {
    // Rust reads `inf` and `nan` in any case.
    let is_named = matches!(text, "NaN" | "Infinity" | "-Infinity");
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    wanted(text.parse().ok().filter(|_| is_named || is_number), "a number")
}

fn wanted<T>(value: Option<T>, what: &str) -> Result<T> {
    value.ok_or_else(|| GremlinError::bad(format!("{what} is expected")))
}
