//! Reads the lines of a file, with a limit on their size.

use crate::rows::error::RowsError;
use crate::rows::fault::{RowFault, RowLocation};
use crate::rows::limits::ROW_BYTES_MAX;
use crate::rows::unpack::FileErrors;
use crate::rows::value::check_depth;
use std::io::{BufRead, Read};
use std::sync::Arc;

/// The lines of a file, one at a time.
pub(super) struct Lines<B> {
    bytes: B,
    errors: FileErrors,
    line: Vec<u8>,
    /// The number of the current line, from 1.
    pub(super) number: u64,
}

impl<B: BufRead> Lines<B> {
    pub(super) fn new(bytes: B, errors: FileErrors) -> Self {
        Lines { bytes, errors, line: Vec::new(), number: 0 }
    }

    /// Goes on to the next line that is not blank.
    pub(super) fn advance(&mut self) -> Result<bool, RowsError> {
        loop {
            self.line.clear();
            let mut bounded = self.bytes.by_ref().take(ROW_BYTES_MAX + 1);
            let read = bounded.read_until(b'\n', &mut self.line).map_err(|error| self.errors.of(error))?;
            if read == 0 {
                return Ok(false);
            }
            self.number += 1;
            if ROW_BYTES_MAX < read as u64 {
                return Err(RowsError::RowTooLong { location: self.location(), limit: ROW_BYTES_MAX });
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The place of the current line.
    pub(super) fn location(&self) -> RowLocation {
        RowLocation { file: Arc::clone(&self.errors.file), row: self.number, unit: "line" }
    }

    /// The current line, if it is text and not nested too deeply.
    pub(super) fn text(&self) -> Result<&str, RowFault> {
        let text = std::str::from_utf8(&self.line);
        let text = text.map_err(|_| RowFault::NotText { what: "the line".to_owned() })?;
        check_depth(text)?;
        Ok(text)
    }
}
