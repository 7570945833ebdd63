//! Reads rows of sources in memory, and shows records as JSON.

pub mod containers;

use kith_build::rows::{
    FormatChoice, KeyType, MemorySource, ReadError, RowOptions, RowReport, RowSource, RowsError, ValueShape,
    infer_schema, read_rows,
};
use kith_schema::RecordView;
use std::convert::Infallible;
use std::io::Write;

pub type Rows = Vec<(String, String)>;

pub fn source(name: &str, bytes: impl AsRef<[u8]>) -> Vec<Box<dyn RowSource>> {
    vec![Box::new(MemorySource::new(name, bytes))]
}

pub fn options(key: KeyType, value: ValueShape) -> RowOptions {
    RowOptions::new(key, value)
}

/// Reads rows. Ids and text values are shown as text, records as JSON.
pub fn read(sources: &[Box<dyn RowSource>], options: &RowOptions) -> Result<(Rows, RowReport), RowsError> {
    let mut rows = Rows::new();
    let report = read_rows(sources, options, |key, value| {
        let key = match options.key {
            KeyType::Id => u64::from_le_bytes(key.try_into().unwrap()).to_string(),
            _ => String::from_utf8_lossy(key).into_owned(),
        };
        let value = match &options.value {
            ValueShape::Record(schema) => {
                let view = RecordView::new(schema, value).unwrap();
                view.verify().unwrap();
                view.to_json().unwrap()
            }
            _ => String::from_utf8_lossy(value).into_owned(),
        };
        rows.push((key, value));
        Ok::<(), Infallible>(())
    });
    match report {
        Ok(report) => Ok((rows, report)),
        Err(ReadError::Input(error)) => Err(error),
        Err(ReadError::Caller(never)) => match never {},
    }
}

/// Reads the rows of records whose schema is inferred.
pub fn read_inferred(sources: &[Box<dyn RowSource>], options: &RowOptions) -> Result<Rows, RowsError> {
    let schema = infer_schema(sources, options, None)?;
    let options = RowOptions { value: ValueShape::Record(schema), fill_missing: true, ..options.clone() };
    read(sources, &options).map(|(rows, _)| rows)
}

pub fn shown(rows: &Rows) -> Vec<String> {
    rows.iter().map(|(key, value)| format!("{key} {value}")).collect()
}

#[allow(dead_code)]
pub fn refusal(bytes: impl AsRef<[u8]>, options: &RowOptions) -> String {
    read(&source("in", bytes), options).unwrap_err().to_string()
}

#[allow(dead_code)]
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[allow(dead_code)]
pub fn with_format(options: RowOptions, format: kith_build::rows::Format) -> RowOptions {
    RowOptions { format: FormatChoice::Given(format), ..options }
}

pub fn record(fields: &str) -> ValueShape {
    ValueShape::Record(format!("{{\"fields\":[{fields}]}}").parse().unwrap())
}

pub fn ids() -> RowOptions {
    options(KeyType::Id, ValueShape::Text)
}

pub fn named(key: &str, value: ValueShape) -> RowOptions {
    RowOptions { key_field: Some(key.to_owned()), ..options(KeyType::Id, value) }
}

pub fn rows(bytes: impl AsRef<[u8]>, options: &RowOptions) -> Vec<String> {
    shown(&read(&source("in", bytes), options).unwrap().0)
}
