//! Encodes rows that a program has in memory, with the same rules and bytes as for rows of files.

use crate::rows::error::{RowsError, ends_reading};
use crate::rows::fault::{RowError, RowErrors, RowFault, RowLocation};
use crate::rows::key::{RawKey, put_key};
use crate::rows::options::{RowOptions, ValueShape};
use crate::rows::sink::{RowReport, unlikely_time};
use crate::rows::value::{check_depth, check_size, put_json};
use kith_schema::RecordWriter;
use std::sync::Arc;

/// The key of a row in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKey<'a> {
    /// A key of a store whose keys are ids.
    Id(u64),
    /// A key of a store whose keys are text, or of one whose keys are bytes, if they are UTF-8.
    Text(&'a str),
    /// A key of a store whose keys are bytes.
    Bytes(&'a [u8]),
    /// Something that cannot be a key, described for messages. Such a row is wrong.
    Other(&'static str),
}

/// The value of a row in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowValue<'a> {
    /// A value of a store of text.
    Text(&'a str),
    /// A value of a store of bytes.
    Bytes(&'a [u8]),
    /// A value of a store of JSON, which may be any JSON text, or of a store of records: a JSON object with a member for
    /// each field, as in JSON lines.
    Json(&'a str),
    /// Something that cannot be a value, described for messages. Such a row is wrong.
    Other(&'static str),
}

/// The bytes of a row: key and value.
pub type EncodedRow<'e> = (&'e [u8], &'e [u8]);

/// Checks rows and encodes their keys and values into buffers that are reused.
///
/// ```
/// use kith_build::rows::{KeyType, RowEncoder, RowKey, RowOptions, RowValue, ValueShape};
///
/// let options = RowOptions { errors_max: 1, ..RowOptions::new(KeyType::Id, ValueShape::Json) };
/// let mut rows = RowEncoder::new("rows", options);
/// assert_eq!(rows.row(RowKey::Id(1), RowValue::Json("[1, 2]")).unwrap(), Some((&[1, 0, 0, 0, 0, 0, 0, 0][..], &b"[1,2]"[..])));
/// assert_eq!(rows.row(RowKey::Text("x"), RowValue::Json("3")).unwrap(), None); // wrong, and counted
/// assert_eq!(rows.finish().unwrap().rows, 1);
/// ```
pub struct RowEncoder {
    name: Arc<str>,
    options: RowOptions,
    writer: Option<RecordWriter>,
    key: Vec<u8>,
    value: Vec<u8>,
    number: u64,
    good: u64,
    errors: RowErrors,
}

impl RowEncoder {
    /// Uses the types of key and value and the number of allowed wrong rows from `options`; the other options concern
    /// files. `name` is the name of the rows in messages.
    pub fn new(name: &str, options: RowOptions) -> Self {
        let writer = match &options.value {
            ValueShape::Record(schema) => Some(options.writer(schema)),
            ValueShape::Text | ValueShape::Bytes | ValueShape::Json => None,
        };
        let (key, value, errors) = Default::default();
        RowEncoder { name: name.into(), options, writer, key, value, number: 0, good: 0, errors }
    }

    /// The options that were given.
    pub fn options(&self) -> &RowOptions {
        &self.options
    }

    /// Encodes the next row. Returns `None` if the row is wrong, which is counted, or if too many earlier rows were.
    ///
    /// # Errors
    /// [`RowsError::BadRows`] at the tenth wrong row beyond the allowed number, as when files are read.
    pub fn row(&mut self, key: RowKey<'_>, value: RowValue<'_>) -> Result<Option<EncodedRow<'_>>, RowsError> {
        self.number += 1;
        match self.fill(key, value) {
            Ok(()) if self.errors.too_many(self.options.errors_max) => Ok(None),
            Ok(()) => {
                self.good += 1;
                Ok(Some((&self.key, &self.value)))
            }
            Err(fault) => self.refuse(fault).map(|()| None),
        }
    }

    /// Ends the rows, and returns the counts.
    ///
    /// # Errors
    /// [`RowsError::BadRows`] if more rows are wrong than allowed; [`RowsError::NoGoodRows`] if all are wrong;
    /// [`RowsError::MissingFields`] if no row has some field of the schema and that is not allowed.
    pub fn finish(self) -> Result<RowReport, RowsError> {
        if self.errors.too_many(self.options.errors_max) {
            return Err(RowsError::BadRows { max: self.options.errors_max, errors: self.errors });
        }
        if self.good == 0 && 0 < self.errors.total() {
            return Err(RowsError::NoGoodRows { errors: self.errors });
        }
        let missing = if self.good == 0 { Vec::new() } else { self.missing() };
        if !self.options.fill_missing && !missing.is_empty() {
            return Err(RowsError::MissingFields { file: "every row".into(), fields: missing });
        }
        let unlikely_time = self.writer.as_ref().and_then(unlikely_time);
        Ok(RowReport { rows: self.good, errors: self.errors, missing, unlikely_time })
    }

    /// The fields of the schema that no row has.
    fn missing(&self) -> Vec<String> {
        let Some(writer) = &self.writer else { return Vec::new() };
        let fields = writer.schema().fields().iter().enumerate();
        fields
            .filter(|(index, _)| !writer.was_set(*index))
            .map(|(_, field)| field.name().to_owned())
            .collect()
    }

    fn refuse(&mut self, fault: RowFault) -> Result<(), RowsError> {
        let location = RowLocation { file: Arc::clone(&self.name), row: self.number, unit: "row" };
        self.errors.record(fault.reason(), || RowError { location, fault });
        let max = self.options.errors_max;
        match ends_reading(self.errors.total(), max) {
            true => Err(RowsError::BadRows { max, errors: std::mem::take(&mut self.errors) }),
            false => Ok(()),
        }
    }

    fn fill(&mut self, key: RowKey<'_>, value: RowValue<'_>) -> Result<(), RowFault> {
        let raw = match key {
            RowKey::Id(id) => RawKey::Unsigned(id),
            RowKey::Text(text) => RawKey::Text(text),
            RowKey::Bytes(bytes) => RawKey::Bytes(bytes),
            RowKey::Other(kind) => RawKey::Other(kind),
        };
        put_key(self.options.key, raw, self.options.key_name(), false, &mut self.key)?;
        self.value.clear();
        match (&self.options.value, &mut self.writer, value) {
            (ValueShape::Record(_), Some(writer), RowValue::Json(text)) => {
                check_depth(text)?;
                writer.write_json(text, &mut self.value)?;
            }
            (ValueShape::Json, _, RowValue::Json(text)) => put_json(text, &mut self.value)?,
            (ValueShape::Text, _, RowValue::Text(text)) => self.value.extend_from_slice(text.as_bytes()),
            (ValueShape::Bytes, _, RowValue::Bytes(bytes)) => self.value.extend_from_slice(bytes),
            (shape, _, value) => {
                return Err(RowFault::ValueType { expected: expected(shape), got: kind(value) });
            }
        }
        check_size(&self.value)
    }
}

fn expected(shape: &ValueShape) -> &'static str {
    match shape {
        ValueShape::Text => "text",
        ValueShape::Bytes => "bytes",
        ValueShape::Json => "JSON",
        ValueShape::Record(_) => "records",
    }
}

fn kind(value: RowValue<'_>) -> &'static str {
    match value {
        RowValue::Text(_) => "text",
        RowValue::Bytes(_) => "bytes",
        RowValue::Json(_) => "JSON",
        RowValue::Other(kind) => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{KeyType, MemorySource, RowSource, read_rows};

    type Encoded = Vec<(Vec<u8>, Vec<u8>)>;

    fn encoded(options: &RowOptions, rows: &[(RowKey<'_>, RowValue<'_>)]) -> Result<Encoded, RowsError> {
        let mut encoder = RowEncoder::new("rows", options.clone());
        let mut out = Vec::new();
        for (key, value) in rows {
            if let Some((key, value)) = encoder.row(*key, *value)? {
                out.push((key.to_vec(), value.to_vec()));
            }
        }
        encoder.finish().map(|_| out)
    }

    fn read(options: &RowOptions, lines: &str) -> Encoded {
        let sources: [Box<dyn RowSource>; 1] = [Box::new(MemorySource::new("rows", lines))];
        let mut out = Vec::new();
        let each = |key: &[u8], value: &[u8]| {
            out.push((key.to_vec(), value.to_vec()));
            Ok::<(), std::convert::Infallible>(())
        };
        read_rows(&sources, options, each).expect("the lines are good");
        out
    }

    #[test]
    fn rows_become_the_bytes_that_lines_become() {
        let schema = r#"{"fields":[{"name":"n","type":"u64"},{"name":"t","type":"text"}]}"#.parse().unwrap();
        let cases = [
            (ValueShape::Text, RowValue::Text("a \"b\""), r#""a \"b\"""#),
            (ValueShape::Bytes, RowValue::Bytes(&[0, 255]), r#""AP8=""#),
            (ValueShape::Json, RowValue::Json("{ \"a\" : [ 1.50 , null ] }"), r#"{ "a" : [ 1.50 , null ] }"#),
            (ValueShape::Record(schema), RowValue::Json(r#"{"t":"x","n":7}"#), r#"{"t":"x","n":7}"#),
        ];
        for (shape, value, line) in cases {
            let keys = [
                (KeyType::Id, RowKey::Id(258), "258"),
                (KeyType::String, RowKey::Text("k"), "\"k\""),
                (KeyType::Bytes, RowKey::Bytes(&[1, 2]), "\"AQI=\""),
            ];
            for (key_type, key, spelled) in keys {
                let options = RowOptions::new(key_type, shape.clone());
                let lines = format!("{{\"key\":{spelled},\"value\":{line}}}\n");
                assert_eq!(encoded(&options, &[(key, value)]).unwrap(), read(&options, &lines), "{lines}");
            }
        }
    }

    #[test]
    fn wrong_rows_are_counted_and_refused_as_those_of_files_are() {
        let mut options = RowOptions::new(KeyType::Id, ValueShape::Text);
        let rows = [
            (RowKey::Id(1), RowValue::Text("one")),
            (RowKey::Text("x"), RowValue::Text("two")),
            (RowKey::Id(3), RowValue::Bytes(b"three")),
        ];
        let refused = encoded(&options, &rows).unwrap_err();
        let RowsError::BadRows { errors, max: 0 } = &refused else { panic!("{refused}") };
        let messages: Vec<String> = errors.first.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "rows row 2: key \"x\" is no id: it is not a number",
                "rows row 3: value is bytes, values of this store are text"
            ]
        );
        options.errors_max = 2;
        assert_eq!(encoded(&options, &rows).unwrap().len(), 1);
        let all_wrong = encoded(&options, &rows[1..]).unwrap_err();
        assert!(matches!(all_wrong, RowsError::NoGoodRows { .. }), "{all_wrong}");
        let endless = std::iter::repeat_n(rows[1], 100).collect::<Vec<_>>();
        let refused = encoded(&options, &endless).unwrap_err();
        let RowsError::BadRows { errors, max: 2 } = &refused else { panic!("{refused}") };
        assert_eq!(errors.total(), 12, "nobody reads on where so many are wrong");
    }

    #[test]
    fn a_field_that_no_row_has_is_refused_unless_it_may_be_filled() {
        let schema = r#"{"fields":[{"name":"n","type":"u64"},{"name":"t","type":"text","default":""}]}"#;
        let mut options = RowOptions::new(KeyType::Id, ValueShape::Record(schema.parse().unwrap()));
        let rows =
            [(RowKey::Id(1), RowValue::Json(r#"{"n":1}"#)), (RowKey::Id(2), RowValue::Json(r#"{"n":2}"#))];
        let refused = encoded(&options, &rows).unwrap_err();
        assert_eq!(refused.to_string(), "every row lacks field \"t\" of the schema");
        let one_has_it = [rows[0], (RowKey::Id(3), RowValue::Json(r#"{"n":3,"t":"x"}"#))];
        assert_eq!(encoded(&options, &one_has_it).unwrap().len(), 2);
        options.fill_missing = true;
        assert_eq!(encoded(&options, &rows).unwrap().len(), 2);
    }
}
