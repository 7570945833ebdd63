//! The outputs of an export: JSON lines and Parquet.

use super::lines::Lines;
use crate::out::{ExportOutput, Writer, closed_or};
use clap::ValueEnum;
#[cfg(feature = "columnar")]
use kith_build::rows::{ParquetRows, WriteRowsError};
use kith_build::rows::{RowOptions, ValueShape};
use kith_wire::v1;
use serde::Serialize;
use std::{io::Write, path::PathBuf};

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// One JSON object per line
    #[default]
    Jsonl,
    #[cfg(feature = "columnar")]
    /// Parquet: a column for the key, then the value, or a column for each field of a record
    Parquet,
}

/// The amount that was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

impl Total {
    /// Adds `more` to the total.
    pub fn add(&mut self, more: Total) {
        self.records += more.records;
        self.bytes += more.bytes;
    }
}

/// The destination of the records, in one of the formats.
pub enum Sink {
    Lines {
        lines: Lines,
        text: Vec<u8>,
        writer: Writer,
        path: PathBuf,
    },
    #[cfg(feature = "columnar")]
    Parquet {
        rows: Box<ParquetRows<Writer>>,
        path: PathBuf,
    },
}

impl Sink {
    /// Opens the output for rows of this shape.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn new(format: ExportFormat, rows: &RowOptions, out: &ExportOutput) -> anyhow::Result<Self> {
        let (path, writer) = (out.path().to_owned(), out.writer()?);
        match format {
            ExportFormat::Jsonl => {
                let schema =
                    if let ValueShape::Record(schema) = &rows.value { Some(schema.clone()) } else { None };
                let (value, key_field) = (rows.value.value_type(), rows.key_field.clone());
                let lines = Lines { key: rows.key, value, key_field, schema };
                Ok(Sink::Lines { lines, text: Vec::new(), writer, path })
            }
            #[cfg(feature = "columnar")]
            ExportFormat::Parquet => {
                let rows = ParquetRows::new(writer, rows).map_err(|error| write_failure(&path, error))?;
                Ok(Sink::Parquet { rows: Box::new(rows), path })
            }
        }
    }

    /// Writes the records of a piece.
    ///
    /// # Errors
    /// If a record does not match the store's definition, or the output cannot be written.
    pub fn write(&mut self, piece: &v1::RecordsPiece) -> anyhow::Result<Total> {
        let mut bytes = 0;
        for (key, value) in piece.keys.iter().zip(&piece.values) {
            self.put(key, value)?;
            bytes += (key.len() + value.len()) as u64;
        }
        self.write_through()?;
        Ok(Total { records: piece.keys.len() as u64, bytes })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        match self {
            Sink::Lines { lines, text, .. } => Ok(lines.put(key, value, text)?),
            #[cfg(feature = "columnar")]
            Sink::Parquet { rows, path } => rows.push(key, value).map_err(|error| write_failure(path, error)),
        }
    }

    /// Writes buffered lines to the output.
    fn write_through(&mut self) -> anyhow::Result<()> {
        match self {
            Sink::Lines { text, writer, path, .. } => {
                let written = writer.write_all(text);
                text.clear();
                written.map_err(|error| closed_or(path, error))
            }
            #[cfg(feature = "columnar")]
            Sink::Parquet { .. } => Ok(()),
        }
    }

    /// Writes the rest of the output.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Sink::Lines { mut writer, path, .. } => writer.flush().map_err(|error| closed_or(&path, error)),
            #[cfg(feature = "columnar")]
            Sink::Parquet { rows, path } => rows.finish().map_err(|error| write_failure(&path, error)),
        }
    }
}

#[cfg(feature = "columnar")]
fn write_failure(path: &std::path::Path, error: WriteRowsError) -> anyhow::Error {
    match error {
        WriteRowsError::Parquet(error) => crate::out::unwritable(path, &std::io::Error::other(error)).into(),
        error => super::lines::odd(&error.to_string()).into(),
    }
}
