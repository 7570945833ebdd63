//! Builds a version of a store from rows of a program.

use super::{BuiltVersion, RowSettings, SchemaFrom, Shape, Target, scratch::Scratch};
use crate::rows::{RowEncoder, RowKey, RowValue, ValueType};
use crate::{
    Failure, OnProgress, Progress,
    failure::{build, check_name, refused_rows},
};
use kith_files::ValuesBuilder;
use kith_types::ErrorCode;

/// Builds a version of a store from rows in any order. Rows are sorted within the memory of the settings; rows that do not
/// fit are written to scratch files in the version's folder. A builder that is dropped leaves nothing behind.
///
/// The files are the same as those that `kith store build` writes for the same rows in a file.
pub struct StoreBuilder {
    builder: ValuesBuilder,
    rows: RowEncoder,
    _scratch: Scratch,
}

impl StoreBuilder {
    /// Begins a version. Records need a schema, in `settings` or in `shape`: it cannot be inferred, because the rows pass
    /// only once.
    ///
    /// # Errors
    /// `invalid_name`; `bad_schema` if records have no schema; `usage` if there is a schema but values are not records;
    /// `build_failed` if the version exists, another build of the store is running, or folders cannot be created.
    pub fn new(target: &Target<'_>, shape: &Shape, settings: &RowSettings) -> Result<Self, Failure> {
        check_name("store", target.store)?;
        let mut settings = settings.clone();
        if shape.value == ValueType::Record && settings.schema.is_none() {
            settings.schema = shape.schema.clone().map(SchemaFrom::Given);
        }
        if shape.value == ValueType::Record && settings.schema.is_none() {
            let help =
                "say what the fields are with --schema FILE, or build from a file, from which it is inferred";
            return Err(Failure::new(ErrorCode::BadSchema, "records of a program need a schema", help));
        }
        let (options, _) = shape.row_options(&settings, &[], false)?;
        let values = target.values_options(shape, &settings, &options.value);
        let scratch = Scratch(values.scratch_dir.clone());
        let builder = ValuesBuilder::new(values).map_err(|error| build(&error))?;
        Ok(Self { builder, rows: RowEncoder::new("rows", options), _scratch: scratch })
    }

    /// Adds a row. A wrong row (a key of another type, a record that does not fit the schema, too large a value) is dropped
    /// and counted if that many are allowed. Cost: a copy of key and value; for JSON and records, parsing their text.
    ///
    /// # Errors
    /// `bad_rows` at the tenth wrong row beyond the allowed number; `build_failed` if the disk fails. The build cannot be
    /// continued then.
    pub fn put(&mut self, key: RowKey<'_>, value: RowValue<'_>) -> Result<(), Failure> {
        match self.rows.row(key, value) {
            Ok(Some((key, value))) => self.builder.row(key, value).map_err(|error| build(&error)),
            Ok(None) => Ok(()),
            Err(error) => Err(refused_rows(&error, self.rows.options())),
        }
    }

    /// Sorts, writes and syncs all files, and gives the version's folder its name.
    ///
    /// # Errors
    /// `bad_rows` or `no_rows` if rows are wrong; `duplicate_key`; `build_failed`. Nothing remains then.
    pub fn finish(self, on_progress: &mut OnProgress<'_>) -> Result<BuiltVersion, Failure> {
        let Self { builder, rows, _scratch } = self;
        let options = rows.options().clone();
        let report = rows.finish().map_err(|error| refused_rows(&error, &options))?;
        let written =
            builder.finish(&mut |step| on_progress(Progress::writing(step.rows_done, step.rows_total)));
        let (manifest, summary) = written.map_err(|error| build(&error))?;
        Ok(BuiltVersion { manifest, duplicates: summary.duplicates, report, changes: None })
    }
}
