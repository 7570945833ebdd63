//! Infers the schema of files without one, in a separate pass over the same sources.

use crate::rows::columnar;
use crate::rows::error::RowsError;
use crate::rows::fault::RowLocation;
use crate::rows::folders::{self, folder_columns};
use crate::rows::format::Format;
use crate::rows::options::{RowOptions, VECTOR_FIELD};
use crate::rows::read::format_of;
use crate::rows::seen::SeenRows;
use crate::rows::source::RowSource;
use crate::rows::text::{csv, json};
use crate::rows::unpack::UnpackedSource;
use crate::rows::vectors;
use kith_schema::{Field, Schema};

/// Infers the schema of the rows of `sources`: of all rows, or of the first `limit`. Later rows that do not fit it are
/// errors of [`read_rows`](crate::rows::read_rows). The value shape of `options` is ignored. Parquet and Arrow files declare
/// their types, so only their schemas are read. The same sources give the same schema.
///
/// # Errors
/// [`RowsError`] if a file cannot be read, a row is not an object, or types are not compatible.
pub fn infer_schema(
    sources: &[impl AsRef<dyn RowSource>],
    options: &RowOptions,
    limit: Option<u64>,
) -> Result<Schema, RowsError> {
    let mut seen = SeenRows::new(limit);
    for source in sources.iter().map(AsRef::as_ref) {
        if seen.is_enough() {
            break;
        }
        let constants = folder_columns(source.name());
        folders::check(source.name(), &constants, options, true)?;
        let before = seen.inference.rows();
        let unpacked = UnpackedSource::open(source)?;
        match format_of(&unpacked, options)? {
            Format::Csv => csv::infer(unpacked, options, &mut seen)?,
            Format::Json => json::infer(unpacked, options, &mut seen)?,
            Format::Parquet | Format::Arrow => columnar::infer(unpacked, source, options, &mut seen)?,
            Format::F32le => {
                let field = Field::new(VECTOR_FIELD, vectors::field_type(options)?);
                return Ok(Schema::new(vec![field])?);
            }
        }
        let location = RowLocation { file: source.name().into(), row: 1, unit: "row" };
        let fields = constants.iter().map(|column| (column.name.as_str(), column.value.is_none()));
        seen.inference.observe_constants(&location, before, fields)?;
    }
    Ok(seen.inference.finish()?)
}
