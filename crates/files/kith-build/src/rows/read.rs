//! Reads all sources, one after the other.

use crate::rows::columnar;
use crate::rows::error::{ReadError, RowsError};
use crate::rows::folders;
use crate::rows::format::Format;
use crate::rows::options::{FormatChoice, RowOptions};
use crate::rows::sink::{Halt, RowReport, RowSink};
use crate::rows::source::RowSource;
use crate::rows::text::{csv, json};
use crate::rows::unpack::UnpackedSource;
use crate::rows::vectors;
use std::sync::Arc;

/// Calls `each(key bytes, value bytes)` for every good row of `sources`, in order. An error of `each` ends the reading.
/// Memory: one row (with Parquet and Arrow: one batch), whatever the size of the files.
///
/// # Errors
/// [`ReadError::Input`] if a file cannot be read to its end, more rows are wrong than allowed, or all rows are wrong;
/// `each` may have been called before that. [`ReadError::Caller`] with the error of `each`.
pub fn read_rows<E>(
    sources: &[impl AsRef<dyn RowSource>],
    options: &RowOptions,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
) -> Result<RowReport, ReadError<E>> {
    let mut caller = None;
    let mut deliver = |key: &[u8], value: &[u8]| match each(key, value) {
        Ok(()) => true,
        Err(error) => {
            caller = Some(error);
            false
        }
    };
    let size = sources.iter().filter_map(|source| source.as_ref().size()).sum();
    let mut sink = RowSink::new(options, size, &mut deliver);
    let read = sources.iter().try_for_each(|source| read_source(source.as_ref(), options, &mut sink));
    let halted = read.and_then(|()| sink.finish());
    match (halted, caller) {
        (Ok(report), _) => Ok(report),
        (Err(Halt::Rows(error)), _) => Err(ReadError::Input(*error)),
        (Err(Halt::Caller), Some(error)) => Err(ReadError::Caller(error)),
        (Err(Halt::Caller), None) => unreachable!("the caller's error was kept when it halted the reading"),
    }
}

fn read_source(source: &dyn RowSource, options: &RowOptions, sink: &mut RowSink<'_>) -> Result<(), Halt> {
    folders::begin(source.name(), options, sink.writer())?;
    let unpacked = UnpackedSource::open(source)?;
    sink.file = source.name().into();
    if source.size().is_none() {
        sink.begin_pipe(Arc::clone(&unpacked.packed));
    }
    match format_of(&unpacked, options)? {
        Format::Csv => csv::read(unpacked, options, sink),
        Format::Json => json::read(unpacked, options, sink),
        Format::Parquet | Format::Arrow => columnar::read(unpacked, source, options, sink),
        Format::F32le => vectors::read(unpacked, options, sink),
    }
}

/// The format of an opened source. A given format must not contradict the first bytes.
pub(crate) fn format_of(unpacked: &UnpackedSource, options: &RowOptions) -> Result<Format, RowsError> {
    let declared = match options.format {
        FormatChoice::Detect => return unpacked.format(),
        FormatChoice::Given(Format::F32le) => return Ok(Format::F32le),
        FormatChoice::Given(given) => given,
    };
    let found = unpacked.format()?;
    let is_text = |format| matches!(format, Format::Csv | Format::Json);
    // The first bytes cannot distinguish text formats with certainty, and an empty file can have any text format.
    if declared == found || (is_text(declared) && is_text(found)) || unpacked.head.is_empty() {
        return Ok(if unpacked.head.is_empty() { found } else { declared });
    }
    Err(RowsError::OtherFormat { file: unpacked.file.clone(), declared, found })
}
