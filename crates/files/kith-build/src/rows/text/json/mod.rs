//! JSON lines: one object per line.

mod fields;
mod lines;
mod members;
mod raw;

use crate::rows::error::RowsError;
use crate::rows::fault::RowFault;
use crate::rows::inference::{InferError, JsonFault};
use crate::rows::key::{RawKey, put_key};
use crate::rows::options::{RowOptions, ValueShape};
use crate::rows::seen::SeenRows;
use crate::rows::sink::{Halt, Row, RowSink};
use crate::rows::unpack::UnpackedSource;
use crate::rows::value::{put_base64, put_compact};
use lines::Lines;
use members::{is_whole, members};
use raw::{kind, string};
use std::borrow::Cow;

pub(crate) use fields::FieldLines;

/// Reads the rows of one file.
pub(crate) fn read(
    unpacked: UnpackedSource,
    options: &RowOptions,
    sink: &mut RowSink<'_>,
) -> Result<(), Halt> {
    let (errors, bytes) = unpacked.into_text();
    let mut lines = Lines::new(bytes, errors);
    sink.begin_objects();
    while lines.advance()? {
        sink.row(|| lines.location(), |out| fill(lines.text()?, options, out))?;
    }
    sink.end_objects();
    Ok(())
}

/// Adds the rows of one file to the inference.
pub(crate) fn infer(
    unpacked: UnpackedSource,
    options: &RowOptions,
    seen: &mut SeenRows,
) -> Result<(), RowsError> {
    let (errors, bytes) = unpacked.into_text();
    let mut lines = Lines::new(bytes, errors);
    while !seen.is_enough() && lines.advance()? {
        let location = lines.location();
        let wrong = |fault: RowFault| InferError::Json {
            location: location.clone(),
            fault: JsonFault { detail: fault.to_string(), column: 0 },
        };
        let text = lines.text().map_err(wrong)?;
        if is_whole(options) {
            seen.inference.observe_json(&location, text, Some(options.key_name()))?;
            continue;
        }
        let value = members(text, options).map_err(wrong)?.value;
        let value =
            value.ok_or_else(|| wrong(RowFault::NoValue { name: options.value_name().to_owned() }))?;
        seen.inference.observe_json(&location, value.get(), None)?;
    }
    Ok(())
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
    put_value(members.value.ok_or_else(no_value)?.get(), options, out)
}

/// Encodes the value of a row, which is one member of its object.
fn put_value(value: &str, options: &RowOptions, out: &mut Row) -> Result<(), RowFault> {
    let text_of = |expected| match value.as_bytes().first() {
        Some(b'"') => string(value),
        Some(b'n') => Err(RowFault::NoValue { name: options.value_name().to_owned() }),
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
