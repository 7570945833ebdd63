//! Values out of records: as they lie there, or decompressed.

use super::ValueError;
use super::compression::{Decompressor, decompress};
use crate::chunk::Found;
use zstd::bulk;

/// Turns records into values, for one call.
pub(super) struct Frames<'a> {
    decompressor: Option<&'a Decompressor>,
    /// Made at the first value.
    context: Option<bulk::Decompressor<'a>>,
    buffer: Vec<u8>,
}

impl<'a> Frames<'a> {
    pub(super) fn new(decompressor: Option<&'a Decompressor>) -> Self {
        Self { decompressor, context: None, buffer: Vec::new() }
    }

    /// Whether values lie in their records as they are.
    pub(super) fn are_plain(&self) -> bool {
        self.decompressor.is_none()
    }

    /// The value of a record. Used first and proven after, so that nothing can change in between.
    pub(super) fn value<'s>(&'s mut self, found: &Found<'s>) -> Result<&'s [u8], ValueError> {
        let Some(decompressor) = self.decompressor else {
            found.prove()?;
            return Ok(found.value());
        };
        let context = match &mut self.context {
            Some(context) => context,
            // Only memory can be short, which a smaller batch does not help either.
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
