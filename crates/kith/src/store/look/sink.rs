//! Where an export writes records, and in which form: JSON lines or Parquet, standard output or a file that appears whole.

use super::lines::{Lines, odd};
use crate::failure::Failure;
use clap::ValueEnum;
use kith_rows::{ParquetRows, RowOptions, ValueShape, WriteRowsError};
use kith_types::ErrorCode;
use kith_wire::v1;
use serde::Serialize;
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// One JSON object per line
    #[default]
    Jsonl,
    /// Parquet: a column for the key, then the value, or a column for each field of a record
    Parquet,
}

/// How much was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    pub records: u64,
    /// Of keys and values.
    pub bytes: u64,
}

impl Total {
    /// Adds what was written since.
    pub fn add(&mut self, more: Total) {
        self.records += more.records;
        self.bytes += more.bytes;
    }
}

type Writer = Box<dyn Write + Send>;

/// Where records go, in which form.
pub enum Sink {
    Lines { lines: Lines, text: Vec<u8>, writer: Writer, path: PathBuf },
    Parquet { rows: Box<ParquetRows<Writer>>, path: PathBuf },
}

impl Sink {
    /// Opens the output for these rows.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(format: ExportFormat, rows: &RowOptions, out: &Out) -> anyhow::Result<Self> {
        let (path, writer) = (out.path.clone(), out.writer()?);
        if format == ExportFormat::Parquet {
            let rows = ParquetRows::new(writer, rows).map_err(|error| told(&path, error))?;
            return Ok(Sink::Parquet { rows: Box::new(rows), path });
        }
        let schema = if let ValueShape::Record(schema) = &rows.value { Some(schema.clone()) } else { None };
        let (value, key_field) = (rows.value.value_type(), rows.key_field.clone());
        let lines = Lines { key: rows.key, value, key_field, schema };
        Ok(Sink::Lines { lines, text: Vec::new(), writer, path })
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
            Sink::Parquet { rows, path } => rows.push(key, value).map_err(|error| told(path, error)),
        }
    }

    /// Has what can be written leave memory.
    fn write_through(&mut self) -> anyhow::Result<()> {
        let Sink::Lines { text, writer, path, .. } = self else { return Ok(()) };
        let written = writer.write_all(text);
        text.clear();
        written.map_err(|error| closed_or(path, error))
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Sink::Lines { mut writer, path, .. } => writer.flush().map_err(|error| closed_or(&path, error)),
            Sink::Parquet { rows, path } => rows.finish().map_err(|error| told(&path, error)),
        }
    }
}

/// A reader that went away is no failure of ours: the caller ends in silence.
fn closed_or(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => unwritable(path, &error).into(),
    }
}

fn told(path: &Path, error: WriteRowsError) -> anyhow::Error {
    match error {
        WriteRowsError::Parquet(error) => unwritable(path, &io::Error::other(error)).into(),
        error => odd(&error.to_string()).into(),
    }
}

/// Standard output, or a file that gets its name when it is whole.
pub struct Out {
    path: PathBuf,
    /// `None`: standard output.
    partial: Option<PathBuf>,
}

impl Out {
    /// The file at a path; `-` is standard output.
    pub fn open(path: &Path) -> Self {
        if path.as_os_str() == "-" {
            return Self { path: path.to_owned(), partial: None };
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        Self { path: path.to_owned(), partial: Some(path.with_file_name(name)) }
    }

    fn writer(&self) -> Result<Writer, Failure> {
        let Some(partial) = &self.partial else { return Ok(Box::new(io::stdout())) };
        let file = File::create(partial).map_err(|error| unwritable(partial, &error))?;
        Ok(Box::new(BufWriter::new(file)))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), Failure> {
        let Some(partial) = self.partial else { return Ok(()) };
        let synced = File::open(&partial).and_then(|file| file.sync_all());
        let named = synced.and_then(|()| fs::rename(&partial, &self.path));
        named.map_err(|error| {
            let _ = fs::remove_file(&partial);
            unwritable(&self.path, &error)
        })
    }

    /// Removes what is not whole, so that nobody takes it for an export.
    pub fn give_up(self) {
        if let Some(partial) = self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write {}: {error}", path.display());
    Failure::new(ErrorCode::OutputUnwritable, message, "check the path, its permissions and the free space")
}
