//! The schema of files that bring none: a pass of its own over the same sources.

use crate::columnar;
use crate::error::RowsError;
use crate::options::{Format, RowOptions, VECTOR_FIELD};
use crate::read::format_of;
use crate::seen::Seen;
use crate::source::RowSource;
use crate::text::{csv, json};
use crate::unpack::Unpacked;
use crate::vectors;
use kith_schema::{Field, Schema};

/// The schema of the rows of `sources`: of all of them, or of the first `limit`. Rows that later do not fit it are
/// errors of [`read_rows`](crate::read_rows). Of `options`, the value shape does not matter. Parquet and Arrow files
/// declare their types: of them only the schema is read. The same sources give the same schema.
///
/// # Errors
/// [`RowsError`]: files that cannot be read, rows that are no objects, types that do not go together.
pub fn infer_schema(
    sources: &[impl AsRef<dyn RowSource>],
    options: &RowOptions,
    limit: Option<u64>,
) -> Result<Schema, RowsError> {
    let mut seen = Seen::new(limit);
    for source in sources.iter().map(AsRef::as_ref) {
        if seen.is_enough() {
            break;
        }
        let unpacked = Unpacked::open(source)?;
        match format_of(&unpacked, options)? {
            Format::Csv => csv::infer(unpacked, options, &mut seen)?,
            Format::Json => json::infer(unpacked, options, &mut seen)?,
            Format::Parquet | Format::Arrow => columnar::infer(unpacked, source, options, &mut seen)?,
            Format::F32le => {
                let field = Field::new(VECTOR_FIELD, vectors::field_type(options)?);
                return Ok(Schema::new(vec![field])?);
            }
        }
    }
    Ok(seen.inference.finish()?)
}
