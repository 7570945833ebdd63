//! JSON lines: one object a line.

use super::ROW_BYTES_MAX;
use crate::error::RowsError;
use crate::fault::{RowFault, RowLocation};
use crate::fields::{EachRow, Field};
use crate::infer::enough;
use crate::key::{RawKey, put_key};
use crate::options::{KEY_FIELD, RowOptions, VALUE_BASE64_FIELD, VALUE_FIELD, ValueShape};
use crate::read::{Halt, Row, RowSink};
use crate::unpack::{BOM, FileErrors, Unpacked};
use crate::value::{check_depth, json_fault, put_base64, put_compact};
use kith_schema::{InferError, Inference, JsonFault, nearest};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, Read};
use std::sync::Arc;

/// Reads the rows of one file.
pub(crate) fn read(unpacked: Unpacked, options: &RowOptions, sink: &mut RowSink<'_>) -> Result<(), Halt> {
    let (errors, bytes) = unpacked.into_text();
    let mut lines = Lines { bytes, errors, line: Vec::new(), number: 0 };
    while lines.advance()? {
        sink.row(|| lines.place(), |out| fill(lines.text()?, options, out))?;
    }
    Ok(())
}

/// Takes in the rows of one file.
pub(crate) fn infer(
    unpacked: Unpacked,
    options: &RowOptions,
    limit: Option<u64>,
    seen: &mut Inference<RowLocation>,
) -> Result<(), RowsError> {
    let (errors, bytes) = unpacked.into_text();
    let mut lines = Lines { bytes, errors, line: Vec::new(), number: 0 };
    while enough(limit, seen).is_continue() && lines.advance()? {
        let place = lines.place();
        let wrong = |fault: RowFault| InferError::Json {
            place: place.clone(),
            fault: JsonFault { detail: fault.to_string(), column: 0 },
        };
        let text = lines.text().map_err(wrong)?;
        if is_whole(options) {
            seen.observe_json(&place, text, Some(options.key_name()))?;
            continue;
        }
        let value = members(text, options).map_err(wrong)?.value;
        let value =
            value.ok_or_else(|| wrong(RowFault::NoValue { name: options.value_name().to_owned() }))?;
        seen.observe_json(&place, value.get(), None)?;
    }
    Ok(())
}

/// Whether the value is the object itself, not one of its members.
fn is_whole(options: &RowOptions) -> bool {
    let can_be = matches!(options.value, ValueShape::Json | ValueShape::Record(_));
    options.key_field.is_some() && options.value_field.is_none() && can_be
}

/// The lines of a file as rows of fields.
pub(crate) struct FieldLines {
    names: Vec<String>,
    lines: Lines<Box<dyn BufRead + Send>>,
}

impl FieldLines {
    /// The names are those of the members of the lines that lie in the first bytes of the file.
    pub(crate) fn new(unpacked: Unpacked) -> Self {
        let mut names: Vec<String> = Vec::new();
        let head = unpacked.head.strip_prefix(BOM).unwrap_or(&unpacked.head);
        // The last line of a long file is cut off there: what it lacks, others have.
        for line in head.split(|byte| *byte == b'\n') {
            let Some(object) = std::str::from_utf8(line).ok().and_then(object) else { continue };
            for (name, _) in object.0 {
                if !names.iter().any(|known| *known == name) {
                    names.push(name.into_owned());
                }
            }
        }
        let (errors, bytes) = unpacked.into_text();
        FieldLines { names, lines: Lines { bytes: Box::new(bytes), errors, line: Vec::new(), number: 0 } }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// See [`crate::FieldTable::rows`].
    pub(crate) fn rows(mut self, names: &[&str], each: &mut EachRow<'_>) -> Result<(), RowsError> {
        while self.lines.advance()? {
            let number = self.lines.number;
            let fields = self.lines.text().and_then(|line| fields(line, names));
            if !each(number, fields.as_deref().map_err(Clone::clone)) {
                break;
            }
        }
        Ok(())
    }
}

/// The members of these names, in their order.
fn fields<'a>(line: &'a str, names: &[&str]) -> Result<Vec<Field<'a>>, RowFault> {
    let object: Object<'a> = serde_json::from_str(line).map_err(|error| json_fault(&error))?;
    let field = |name: &&str| {
        let mut members = object.0.iter().filter(|(known, _)| known == name);
        let member = members.next();
        match members.next() {
            Some(_) => Err(RowFault::Repeated { name: (*name).to_owned() }),
            None => member.map_or(Ok(Field::Null), |(_, value)| field_of(value.get())),
        }
    };
    names.iter().map(field).collect()
}

fn field_of(raw: &str) -> Result<Field<'_>, RowFault> {
    Ok(match raw.as_bytes().first() {
        Some(b'n') => Field::Null,
        Some(b'"') => Field::Text(string(raw)?),
        Some(b'0'..=b'9') => raw.parse().map_or(Field::Text(raw.into()), Field::Unsigned),
        _ => Field::Text(raw.into()),
    })
}

/// All members of an object, in their order.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

fn object(line: &str) -> Option<Object<'_>> {
    serde_json::from_str(line).ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Members).map(Object)
    }
}

/// The name of a member.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct Lines<B> {
    bytes: B,
    errors: FileErrors,
    line: Vec<u8>,
    number: u64,
}

impl<B: BufRead> Lines<B> {
    /// Goes to the next line that is not blank.
    fn advance(&mut self) -> Result<bool, RowsError> {
        loop {
            self.line.clear();
            let mut bounded = self.bytes.by_ref().take(ROW_BYTES_MAX + 1);
            let read = bounded.read_until(b'\n', &mut self.line).map_err(|error| self.errors.of(error))?;
            if read == 0 {
                return Ok(false);
            }
            self.number += 1;
            if ROW_BYTES_MAX < read as u64 {
                return Err(RowsError::RowTooLong { place: self.place(), limit: ROW_BYTES_MAX });
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn place(&self) -> RowLocation {
        RowLocation { file: Arc::clone(&self.errors.file), row: self.number, unit: "line" }
    }

    fn text(&self) -> Result<&str, RowFault> {
        let text = std::str::from_utf8(&self.line);
        let text = text.map_err(|_| RowFault::NotText { what: "the line".to_owned() })?;
        check_depth(text)?;
        Ok(text)
    }
}

fn fill(line: &str, options: &RowOptions, out: &mut Row) -> Result<(), RowFault> {
    let members = members(line, options)?;
    let no_key = || RowFault::NoKey { name: options.key_name().to_owned() };
    let key = members.key.ok_or_else(no_key)?.get();
    let text: Cow<'_, str>;
    let raw = match key.as_bytes().first() {
        Some(b'"') => {
            text = string(key)?;
            RawKey::Text(&text)
        }
        Some(b'-' | b'0'..=b'9') => RawKey::Number(key),
        Some(b'n') => return Err(no_key()),
        _ => RawKey::Other(kind(key)),
    };
    put_key(options.key, raw, options.key_name(), true, &mut out.key)?;
    if is_whole(options) {
        return match &mut out.writer {
            Some(writer) => Ok(writer.write_json_but(line, Some(options.key_name()), &mut out.value)?),
            None => {
                put_compact(line, &mut out.value);
                Ok(())
            }
        };
    }
    let no_value = || RowFault::NoValue { name: options.value_name().to_owned() };
    let value = members.value.ok_or_else(no_value)?.get();
    let text_of = |expected| match value.as_bytes().first() {
        Some(b'"') => string(value),
        Some(b'n') => Err(no_value()),
        _ => Err(RowFault::ValueType { expected, got: kind(value) }),
    };
    match (&options.value, &mut out.writer) {
        (ValueShape::Record(_), Some(writer)) => Ok(writer.write_json(value, &mut out.value)?),
        (ValueShape::Json, _) => {
            put_compact(value, &mut out.value);
            Ok(())
        }
        (ValueShape::Bytes, _) => put_base64(&text_of("bytes, in base64 text")?, &mut out.value),
        (ValueShape::Text | ValueShape::Record(_), _) => {
            out.value.extend_from_slice(text_of("text")?.as_bytes());
            Ok(())
        }
    }
}

/// The text of a JSON string.
fn string(raw: &str) -> Result<Cow<'_, str>, RowFault> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw).map(|text| text.0).map_err(|error| json_fault(&error))
}

fn kind(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'"') => "text",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        Some(b't' | b'f') => "false or true",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// The members that matter, as they are spelled.
#[derive(Default)]
struct Members<'a> {
    key: Option<&'a RawValue>,
    value: Option<&'a RawValue>,
}

fn members<'a>(line: &'a str, options: &RowOptions) -> Result<Members<'a>, RowFault> {
    let mut fault = None;
    let mut json = serde_json::Deserializer::from_str(line);
    let read = MembersSeed { options, fault: &mut fault }.deserialize(&mut json);
    let ended = read.and_then(|members| json.end().map(|()| members));
    ended.map_err(|error| fault.unwrap_or_else(|| json_fault(&error)))
}

struct MembersSeed<'s> {
    options: &'s RowOptions,
    fault: &'s mut Option<RowFault>,
}

impl<'de> DeserializeSeed<'de> for MembersSeed<'_> {
    type Value = Members<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Members<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MembersSeed<'_> {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let options = self.options;
        let whole = is_whole(options);
        let base64 = options.value == ValueShape::Bytes && options.value_field.is_none();
        let mut members = Members::default();
        while let Some(Name(name)) = map.next_key()? {
            let place = if name == options.key_name() {
                &mut members.key
            } else if !whole && (name == options.value_name() || (base64 && name == VALUE_BASE64_FIELD)) {
                &mut members.value
            } else if whole || options.value_field.is_some() {
                map.next_value::<IgnoredAny>()?;
                continue;
            } else {
                let near = nearest(&name, [KEY_FIELD, VALUE_FIELD]);
                *self.fault = Some(RowFault::UnknownMember { name: name.into_owned(), near });
                return Err(A::Error::custom("refused"));
            };
            if place.is_some() {
                *self.fault = Some(RowFault::Repeated { name: name.into_owned() });
                return Err(A::Error::custom("refused"));
            }
            *place = Some(map.next_value()?);
        }
        Ok(members)
    }
}
