//! Encodes JSON directly as a record, without an intermediate tree.
//!
//! Errors of serde are texts, so the typed fault is stored in [`Sink::fault`] and taken from there.

use super::items::{Entries, Items, put_text};
use super::json_value::{ItemDestination, ItemTaker, Taker, Value};
use super::{EncodeError, RecordWriter, Scalar, ValueFault};
use crate::{FieldType, ProjectedView};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

impl RecordWriter {
    /// Appends the record of a JSON object to `out`. Bytes are base64 text; timestamps are numbers, dates
    /// or RFC 3339. Numbers keep all digits of their field's type.
    ///
    /// # Errors
    /// [`EncodeError`] if the object does not fit; `out` is unchanged then.
    pub fn write_json(&mut self, object: &str, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.write_json_but(object, None, out)
    }

    /// Appends a record like [`RecordWriter::write_json`]; the member `but` (the row's key) is skipped unless the schema
    /// has it.
    ///
    /// # Errors
    /// [`EncodeError`] if the object does not fit; `out` is unchanged then.
    pub fn write_json_but(
        &mut self,
        object: &str,
        but: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.clear();
        let but = but.filter(|name| self.schema().index_of(name).is_none());
        self.run(object, |sink, json| json.deserialize_map(ObjectVisitor { sink, but }))?;
        self.finish(out)
    }

    /// Appends a record like [`RecordWriter::write_json`]; fields that the object lacks are copied from `base`, a record
    /// that is read under the writer's schema, without decoding them.
    ///
    /// # Errors
    /// [`EncodeError`] if the object does not fit; `out` is unchanged then.
    pub fn write_json_over(
        &mut self,
        object: &str,
        base: &ProjectedView<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.clear();
        self.run(object, |sink, json| json.deserialize_map(ObjectVisitor { sink, but: None }))?;
        self.finish_over(Some(base), out)
    }

    /// Sets a field from the text of one JSON value.
    ///
    /// # Errors
    /// [`EncodeError`], as of the typed setters.
    pub fn set_json(&mut self, index: usize, value: &str) -> Result<(), EncodeError> {
        self.run(value, |sink, json| Value(FieldTaker { sink, index }).deserialize(json))
    }

    fn run<'de>(
        &mut self,
        text: &'de str,
        read: impl FnOnce(
            &mut Sink<'_>,
            &mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
        ) -> Result<(), serde_json::Error>,
    ) -> Result<(), EncodeError> {
        if let Some(column) = rounded_whole(text) {
            let detail = "a whole number has more digits than 64 bits hold, and would be rounded: write it as text, or with an exponent";
            return Err(EncodeError::Json { detail: detail.to_owned(), column });
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let mut sink = Sink { writer: self, fault: None };
        let done = read(&mut sink, &mut json).and_then(|()| json.end());
        let fault = sink.fault.take();
        done.map_err(|error| {
            fault.unwrap_or_else(|| {
                let detail = error.to_string();
                let detail = detail.split(" at line ").next().unwrap_or_default().to_owned();
                EncodeError::Json { detail, column: error.column() }
            })
        })
    }
}

/// The digits of the shortest whole number beyond 64 bits.
const DIGITS_MANY: usize = 19;

/// The byte position, from 1, of a whole number in JSON that the parser would round: it is beyond 64 bits, and no `f64` has
/// exactly its value.
fn rounded_whole(json: &str) -> Option<usize> {
    let bytes = json.as_bytes();
    // A run of so many digits has one at every such place.
    let mut places = bytes.iter().skip(DIGITS_MANY - 1).step_by(DIGITS_MANY);
    if !places.any(u8::is_ascii_digit) {
        return None;
    }
    let is_known = |whole: i128| u64::try_from(whole).is_ok() || i64::try_from(whole).is_ok();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match bytes[at] {
            b'"' => text_length(rest),
            b'0'..=b'9' | b'-' => rest.iter().take_while(|byte| b"0123456789+-.eE".contains(byte)).count(),
            _ => 1,
        };
        if DIGITS_MANY <= length && bytes[at] != b'"' {
            let number = &json[at..at + length];
            let is_whole = !number.contains(['.', 'e', 'E']);
            let is_exact =
                number.parse::<i128>().is_ok_and(|whole| is_known(whole) || whole as f64 as i128 == whole);
            if is_whole && !is_exact {
                return Some(at + 1);
            }
        }
        at += length;
    }
    None
}

/// The length of the JSON text that begins here, with its quotes.
fn text_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

struct Sink<'w> {
    writer: &'w mut RecordWriter,
    fault: Option<EncodeError>,
}

impl Sink<'_> {
    /// Ends the parsing. The caller of the parser finds `error` in the sink.
    fn fail<E: Error>(&mut self, error: EncodeError) -> E {
        self.fault = Some(error);
        E::custom("refused")
    }

    fn fail_at<E: Error>(&mut self, index: usize, item: Option<u64>, fault: ValueFault) -> E {
        let error = self.writer.fault(index, item, fault);
        self.fail(error)
    }
}

struct ObjectVisitor<'s, 'w> {
    sink: &'s mut Sink<'w>,
    but: Option<&'s str>,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            if self.but == Some(&*name) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let Some(index) = self.sink.writer.schema().index_of(&name) else {
                let near = self.sink.writer.schema().nearest(&name);
                return Err(self.sink.fail(EncodeError::UnknownField { field: name.into_owned(), near }));
            };
            map.next_value_seed(Value(FieldTaker { sink: self.sink, index }))?;
        }
        Ok(())
    }
}

/// A member's name, borrowed if it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct FieldTaker<'s, 'w> {
    sink: &'s mut Sink<'w>,
    index: usize,
}

impl<'de> Taker<'de> for FieldTaker<'_, '_> {
    const EXPECTED: &'static str = "a value";

    fn scalar<E: Error>(self, value: Scalar<'_>) -> Result<(), E> {
        self.sink.writer.set(self.index, value).map_err(|error| self.sink.fail(error))
    }

    fn text<E: Error>(self, text: &str) -> Result<(), E> {
        let FieldType::Scalar(scalar) = self.sink.writer.field_type(self.index) else {
            return self.scalar(Scalar::Text(text));
        };
        self.sink.writer.claim(self.index).map_err(|error| self.sink.fail(error))?;
        let writer = &mut *self.sink.writer;
        let (value, clock) = (&mut writer.values[self.index], &mut writer.clocks[self.index]);
        value.clear();
        put_text(scalar, text, clock, value).map_err(|fault| self.sink.fail_at(self.index, None, fault))
    }

    fn null<E: Error>(self) -> Result<(), E> {
        self.sink.writer.set_null(self.index).map_err(|error| self.sink.fail(error))
    }

    fn list<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.sink.writer.claim(self.index).map_err(|error| self.sink.fail(error))?;
        let field_type = self.sink.writer.field_type(self.index);
        // The items borrow the buffer while the parser holds the sink.
        let mut buffer = std::mem::take(&mut self.sink.writer.values[self.index]);
        let Some(mut items) = Items::begin(field_type, self.sink.writer.clocks[self.index], &mut buffer)
        else {
            let error = self.sink.writer.wrong_type(self.index, "a list".to_owned());
            return Err(self.sink.fail(error));
        };
        let (mut fault, mut item) = (None, 0);
        let read = loop {
            item += 1;
            match seq.next_element_seed(Value(ItemTaker {
                to: ItemDestination::List(&mut items),
                fault: &mut fault,
            })) {
                Ok(Some(())) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Some(fault) = fault {
            return Err(self.sink.fail_at(self.index, Some(item), fault));
        }
        read?;
        self.sink.writer.clocks[self.index] = items.clock;
        items.finish().map_err(|fault| self.sink.fail_at(self.index, None, fault))?;
        self.sink.writer.values[self.index] = buffer;
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.sink.writer.claim(self.index).map_err(|error| self.sink.fail(error))?;
        let writer = &*self.sink.writer;
        let begun = Entries::begin(writer.field_type(self.index), writer.clocks[self.index]);
        let Some(mut entries) = begun else {
            let error = self.sink.writer.wrong_type(self.index, "an object".to_owned());
            return Err(self.sink.fail(error));
        };
        let mut fault = None;
        while let Some(Name(name)) = map.next_key()? {
            let to = ItemDestination::Map(&name, &mut entries);
            let read = map.next_value_seed(Value(ItemTaker { to, fault: &mut fault }));
            if let Some(fault) = fault {
                return Err(self.sink.fail_at(self.index, Some(entries.count() + 1), fault));
            }
            read?;
        }
        self.sink.writer.clocks[self.index] = entries.clock;
        let value = &mut self.sink.writer.values[self.index];
        entries.finish(value).map_err(|fault| self.sink.fail_at(self.index, None, fault))
    }
}
