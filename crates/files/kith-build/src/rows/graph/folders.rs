//! Kept columns whose values are in the names of folders, as Hive and Spark write them: `year=2020/part-0.parquet`.

use super::columns::store_text;
use super::header::WantedColumn;
use super::table::Table;
use super::{ColumnSpec, FileError, FileOptions, FileReport};
use crate::rows::error::RowsError;
use crate::rows::folders::folder_columns;
use kith_schema::ColumnKind;
use std::path::Path;

/// The values that the folders of a file give to its kept columns.
pub(super) struct FolderValues {
    /// The stored value of each kept column; `None` if the column is in the file.
    pub(super) values: Vec<Option<u64>>,
    /// A time that is probably in another unit, as in [`FileReport::unlikely_time`].
    pub(super) doubt: Option<String>,
}

impl FolderValues {
    /// Finds the `columns` that folders of `path` name. A column with a position is in the file.
    ///
    /// # Errors
    /// [`RowsError::FolderColumn`] if two folders give the column, or if its value is not of the column's kind.
    pub(super) fn of(path: &Path, columns: &[ColumnSpec]) -> Result<Self, FileError> {
        let file = path.display().to_string();
        let folders = folder_columns(&file);
        let mut doubt = None;
        let mut value = |column: &ColumnSpec| {
            let mut found = folders.iter().filter(|it| column.position.is_none() && it.name == column.name);
            let Some(folder) = found.next() else { return Ok(None) };
            let wrong = |why: String| RowsError::FolderColumn {
                file: file.as_str().into(),
                column: column.name.clone(),
                why,
            };
            if found.next().is_some() {
                return Err(wrong("two folders give it".to_owned()));
            }
            let Some(text) = &folder.value else { return Err(wrong("its value is null".to_owned())) };
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let stored = store_text(column.kind, text);
            let stored = if is_number && column.kind == ColumnKind::Time {
                stored.and_then(|number| column.of_number(number, &mut doubt))
            } else {
                stored
            };
            stored.map(Some).ok_or_else(|| wrong(format!("{text:?} is not of kind {}", column.kind.name())))
        };
        let values = columns.iter().map(&mut value).collect::<Result<_, _>>()?;
        Ok(FolderValues { values, doubt })
    }

    /// Opens the file with the `wanted` columns and those of `columns` that no folder gives.
    ///
    /// # Errors
    /// Those of [`FileError`]; [`FileError::RepeatedColumn`] if the file also has a column that a folder gives.
    pub(super) fn open(
        &self,
        path: &Path,
        options: &FileOptions,
        mut wanted: Vec<WantedColumn>,
        columns: &[ColumnSpec],
    ) -> Result<Table, FileError> {
        let pairs = || columns.iter().zip(&self.values);
        wanted.extend(
            pairs().filter(|(_, value)| value.is_none()).map(|(column, _)| WantedColumn::kept(column)),
        );
        let given = pairs().filter(|(_, value)| value.is_some()).map(|(column, _)| column.name.clone());
        Table::open_beside(path, options, wanted, given.collect())
    }

    /// Adds to a report which of `columns` were taken from folders.
    pub(super) fn report(&self, mut report: FileReport, columns: &[ColumnSpec]) -> FileReport {
        let given = columns.iter().zip(&self.values).filter(|(_, value)| value.is_some());
        report.taken.extend(given.map(|(column, _)| (column.name.clone(), "name of the folder".to_owned())));
        report
    }
}
