//! Prints a record as JSON: fields in the order of the schema, including nulls; whole numbers with all digits,
//! floating-point numbers as the shortest text that reads back as the same number, bytes as base64.

use super::{FieldView, RecordError, RecordView, Scalar};
use crate::text_of_time;
use base64::engine::general_purpose::STANDARD;
use std::io::Write;

const NOT_FINITE: &str = "it is not a finite number";

/// How values are spelled that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// Times are numbers. Numbers that are not finite count as damage, because no writer of records produces them.
    Plain,
    /// Numbers that are not finite are `"NaN"`, `"Infinity"` or `"-Infinity"`: read compute can produce these.
    Results,
    /// Times are RFC 3339, for people.
    Dates,
}

impl RecordView<'_> {
    /// The record as one line of JSON.
    ///
    /// # Errors
    /// [`RecordError::DamagedField`] if a field is damaged or a number is not finite, because no writer produces such a
    /// number.
    pub fn to_json(&self) -> Result<String, RecordError> {
        let mut out = Vec::with_capacity(2 * self.bytes().len() + 16);
        self.write_json(&mut out)?;
        Ok(String::from_utf8(out).expect("JSON of text is text"))
    }

    /// The record as one line of JSON, for results of read compute: numbers that are not finite become `"NaN"`,
    /// `"Infinity"` and `"-Infinity"`.
    ///
    /// # Errors
    /// [`RecordError::DamagedField`] if a field is damaged.
    pub fn to_result_json(&self) -> Result<String, RecordError> {
        let mut out = Vec::with_capacity(2 * self.bytes().len() + 16);
        self.write_fields(Spelling::Results, &mut out)?;
        Ok(String::from_utf8(out).expect("JSON of text is text"))
    }

    /// The record as one line of JSON for people: times are dates.
    ///
    /// # Errors
    /// Those of [`RecordView::to_json`].
    pub fn to_dated_json(&self) -> Result<String, RecordError> {
        let mut out = Vec::with_capacity(2 * self.bytes().len() + 16);
        self.write_fields(Spelling::Dates, &mut out)?;
        Ok(String::from_utf8(out).expect("JSON of text is text"))
    }

    /// Appends the record as JSON (UTF-8).
    ///
    /// # Errors
    /// Those of [`RecordView::to_json`]; `out` then contains the part written so far.
    pub fn write_json(&self, out: &mut Vec<u8>) -> Result<(), RecordError> {
        self.write_fields(Spelling::Plain, out)
    }

    fn write_fields(&self, spelling: Spelling, out: &mut Vec<u8>) -> Result<(), RecordError> {
        out.push(b'{');
        for (index, field) in self.schema().fields().iter().enumerate() {
            if 0 < index {
                out.push(b',');
            }
            put_text(field.name(), out);
            out.push(b':');
            match self.at(index)? {
                Some(value) => put_field(&value, spelling, out).map_err(|why| self.damaged(index, why))?,
                None => out.extend_from_slice(b"null"),
            }
        }
        out.push(b'}');
        Ok(())
    }
}

/// Appends one value as JSON. The error describes the fault if the value is damaged.
pub(crate) fn write_field_json(value: &FieldView<'_>, out: &mut Vec<u8>) -> Result<(), &'static str> {
    put_field(value, Spelling::Plain, out)
}

fn put_field(value: &FieldView<'_>, spelling: Spelling, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let put_scalar = |scalar: Scalar<'_>, out: &mut Vec<u8>| {
        let text = match (spelling, scalar) {
            (Spelling::Results, _) => spelled(scalar).map(str::to_owned),
            (Spelling::Dates, Scalar::Timestamp(millis)) => text_of_time(millis),
            _ => None,
        };
        match text {
            Some(text) => {
                put_text(&text, out);
                Ok(())
            }
            None => put_scalar(scalar, out),
        }
    };
    match value {
        FieldView::Scalar(scalar) => put_scalar(*scalar, out),
        FieldView::Vector(vector) if vector.element() == crate::ElementType::I8 => {
            list(out, vector.iter(), |value, out| put_scalar(Scalar::I32(value as i32), out))
        }
        FieldView::Vector(vector) => {
            list(out, vector.iter(), |value, out| put_scalar(Scalar::F32(value), out))
        }
        FieldView::List(items) => list(out, items.iter(), |item, out| put_scalar(item?, out)),
        FieldView::Map(map) => {
            out.push(b'{');
            for (index, entry) in map.iter().enumerate() {
                let (key, value) = entry?;
                if 0 < index {
                    out.push(b',');
                }
                put_text(key, out);
                out.push(b':');
                put_scalar(value, out)?;
            }
            out.push(b'}');
            Ok(())
        }
    }
}

/// The text of a number that is not finite.
fn spelled(value: Scalar<'_>) -> Option<&'static str> {
    let number = match value {
        Scalar::F32(value) => value.into(),
        Scalar::F64(value) => value,
        _ => return None,
    };
    match number {
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ if number.is_nan() => Some("NaN"),
        _ => None,
    }
}

fn list<T>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = T>,
    mut put: impl FnMut(T, &mut Vec<u8>) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if 0 < index {
            out.push(b',');
        }
        put(item, out)?;
    }
    out.push(b']');
    Ok(())
}

fn put_scalar(value: Scalar<'_>, out: &mut Vec<u8>) -> Result<(), &'static str> {
    match value {
        Scalar::Bool(value) => put(value, out),
        Scalar::I32(value) => put(value, out),
        Scalar::I64(value) | Scalar::Timestamp(value) => put(value, out),
        Scalar::U64(value) => put(value, out),
        // `Debug` of the standard library is used, because its output is part of schema ids and does not change with a
        // dependency.
        Scalar::F32(value) if value.is_finite() => drop(write!(out, "{value:?}")),
        Scalar::F64(value) if value.is_finite() => drop(write!(out, "{value:?}")),
        Scalar::F32(_) | Scalar::F64(_) => return Err(NOT_FINITE),
        Scalar::Text(text) => put_text(text, out),
        Scalar::Bytes(bytes) => {
            let _ = write!(out, "\"{}\"", base64::display::Base64Display::new(bytes, &STANDARD));
        }
    }
    Ok(())
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put(text, out);
}

fn put(value: impl serde::Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, &value)
        .expect("a vector takes all bytes, and values of one part have no keys");
}
