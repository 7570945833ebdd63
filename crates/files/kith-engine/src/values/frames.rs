//! Extracts values from records, and decompresses them if necessary.

use super::ValueError;
use super::compression::{Decompressor, decompress};
use crate::chunk::FoundRecord;
use zstd::bulk;

/// Turns the records of one call into values.
pub(super) struct Frames<'a> {
    decompressor: Option<&'a Decompressor>,
    /// The decompressor, which is created at the first value.
    context: Option<bulk::Decompressor<'a>>,
    buffer: Vec<u8>,
}

impl<'a> Frames<'a> {
    pub(super) fn new(decompressor: Option<&'a Decompressor>) -> Self {
        Self { decompressor, context: None, buffer: Vec::new() }
    }

    /// Whether values are stored uncompressed.
    pub(super) fn are_plain(&self) -> bool {
        self.decompressor.is_none()
    }

    /// The value of a record. It is used first and proven afterwards, so that a change in between is detected.
    pub(super) fn value<'s>(&'s mut self, found: &FoundRecord<'s>) -> Result<&'s [u8], ValueError> {
        let Some(decompressor) = self.decompressor else {
            found.prove()?;
            return Ok(found.value());
        };
        let context = match &mut self.context {
            Some(context) => context,
            // This fails only if memory is short, and a smaller batch would not help.
            none => none.insert(decompressor.context().map_err(|_| found.malformed("dictionary"))?),
        };
        let whole = decompress(context, found.value(), &mut self.buffer);
        found.prove()?;
        if !whole {
            return Err(found.malformed("compressed value").into());
        }
        Ok(&self.buffer)
    }
}
