//! Columns that are in the names of folders, as Hive and Spark write them: `country=ch/part-0.parquet`.

use crate::rows::error::RowsError;
use crate::rows::options::{RowOptions, ValueShape};
use crate::rows::text::csv::set_cell;
use kith_schema::RecordWriter;
use std::sync::Arc;

/// The value by which Hive means null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// A column, whose value is the same in all rows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderColumn {
    pub(crate) name: String,
    /// `None` is null.
    pub(crate) value: Option<String>,
}

/// The columns that the folders of a path or URL name.
pub(crate) fn folder_columns(path: &str) -> Vec<FolderColumn> {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let pairs = folders.split('/').filter_map(|folder| folder.split_once('='));
    let columns = pairs.filter(|(name, _)| !name.is_empty()).map(|(name, value)| FolderColumn {
        name: decoded(name),
        value: (value != NULL).then(|| decoded(value)),
    });
    columns.collect()
}

/// Replaces `%20` and the like by what they stand for.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let code = || {
            let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        match (first == b'%').then(code).flatten() {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Refuses columns of folders that the rows cannot have.
///
/// # Errors
/// [`RowsError::FolderColumn`].
pub(crate) fn check(
    file: &str,
    columns: &[FolderColumn],
    options: &RowOptions,
    is_record: bool,
) -> Result<(), RowsError> {
    let wrong = |column: &FolderColumn, why: &str| RowsError::FolderColumn {
        file: Arc::from(file),
        column: column.name.clone(),
        why: why.to_owned(),
    };
    // If the user names the column of the value, all other columns are left out.
    if let Some(column) = columns.first().filter(|_| !is_record && options.value_field.is_none()) {
        return Err(wrong(column, "only records have columns beside the key and the value"));
    }
    for (index, column) in columns.iter().enumerate() {
        if column.name == options.key_name() {
            return Err(wrong(column, "the key has the same name"));
        }
        if columns[..index].iter().any(|other| other.name == column.name) {
            return Err(wrong(column, "two folders give it"));
        }
    }
    Ok(())
}

/// Sets the columns of the folders of `file` in all records that `writer` writes from now on.
///
/// # Errors
/// [`RowsError::FolderColumn`]; [`RowsError::UnknownColumn`].
pub(crate) fn begin(
    file: &str,
    options: &RowOptions,
    writer: &mut Option<RecordWriter>,
) -> Result<(), RowsError> {
    let columns = folder_columns(file);
    check(file, &columns, options, matches!(options.value, ValueShape::Record(_)))?;
    let Some(writer) = writer else { return Ok(()) };
    writer.forget_constants();
    writer.clear();
    for column in &columns {
        let schema = writer.schema();
        let Some(index) = schema.index_of(&column.name) else {
            return Err(RowsError::UnknownColumn {
                file: Arc::from(file),
                column: column.name.clone(),
                near: schema.nearest(&column.name),
                missing: Vec::new(),
            });
        };
        let set = match &column.value {
            Some(value) => set_cell(writer, index, value),
            None => writer.set_null(index),
        };
        set.map_err(|error| RowsError::FolderColumn {
            file: Arc::from(file),
            column: format!("{}={}", column.name, column.value.as_deref().unwrap_or(NULL)),
            why: error.to_string(),
        })?;
    }
    writer.keep_constants();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_an_equals_sign_are_columns() {
        let columns = |path: &str| {
            let found = folder_columns(path).into_iter();
            found.map(|column| (column.name, column.value.unwrap_or("null".to_owned()))).collect::<Vec<_>>()
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            columns("s3://b/t/year=2020/city=Z%C3%BCrich%20%3D%2F%zz/a=b.csv"),
            [pair("year", "2020"), pair("city", "Zürich =/%zz")]
        );
        assert_eq!(columns("t/country=__HIVE_DEFAULT_PARTITION__/p.json"), [pair("country", "null")]);
        assert_eq!(columns("t/=x/plain/part-0.csv"), []);
        assert_eq!(columns("a=b.csv"), []);
    }
}
