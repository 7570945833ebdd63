//! Reads files of objects and associations of a live graph.

use super::fault::LineFault;
use super::files::take_time;
use super::header::WantedColumn;
use super::row::{ColumnFault, Row};
use super::table::Table;
use super::{ColumnRef, ColumnSpec, FileError, FileOptions, FileReport, ReadProgress, TimeUnit};
use crate::rows::error::ReadError;
use kith_schema::ColumnKind;
use std::path::Path;

/// One object of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// Its line or row in the file, from 1.
    pub number: u64,
    /// Its id.
    pub id: u64,
    /// Its fields, as written in the file; `None` if it has none.
    pub data: Option<String>,
}

/// One association of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationRow {
    /// Its line or row in the file, from 1.
    pub number: u64,
    /// The object that it leaves.
    pub id1: u64,
    /// The object that it leads to.
    pub id2: u64,
    /// Its time.
    pub time: u64,
    /// Its fields, as written in the file; `None` if it has none.
    pub data: Option<String>,
}

/// Calls `each` for every object of a file. `columns` names the columns of id and fields; with fewer than two, the file has
/// no fields. Without `columns`, the columns are those named `id` and `data`, or else the first two. `each` returns a fault
/// if the object is wrong.
///
/// # Errors
/// Those of [`FileError`]; errors of `each` end the reading.
pub fn read_objects<E>(
    path: &Path,
    options: &FileOptions,
    columns: &[ColumnRef],
    progress: &mut dyn FnMut(&ReadProgress),
    mut each: impl FnMut(ObjectRow) -> Result<Result<(), LineFault>, E>,
) -> Result<FileReport, ReadError<E, FileError>> {
    let wanted = wanted(&["id"], columns);
    Table::open(path, options, wanted)?.rows(progress, |row| {
        let object = row.id(0).and_then(|id| Ok(ObjectRow { number: row.number(), id, data: data(row, 1)? }));
        handed(object, 1, &mut each)
    })
}

/// Calls `each` for every association of a file. `columns` names the columns of the two ids, the time and the fields; with
/// fewer than four, the file has no fields. Without `columns`, the columns are those named `id1`, `id2`, `time` and `data`,
/// or else the first four. Times that are plain numbers are in `unit`. `each` returns a fault if the association is wrong.
///
/// # Errors
/// Those of [`read_objects`].
pub fn read_associations<E>(
    path: &Path,
    options: &FileOptions,
    columns: &[ColumnRef],
    unit: TimeUnit,
    progress: &mut dyn FnMut(&ReadProgress),
    mut each: impl FnMut(AssociationRow) -> Result<Result<(), LineFault>, E>,
) -> Result<FileReport, ReadError<E, FileError>> {
    let table = Table::open(path, options, wanted(&["id1", "id2", "time"], columns))?;
    let time = ColumnSpec { name: table.name_of(2), kind: ColumnKind::Time, unit, position: None };
    let mut doubt = None;
    let read = table.rows(progress, |row| {
        let mut association = || {
            let (id1, id2) = (row.id(0)?, row.id(1)?);
            let time = take_time(row, 2, &time, &mut doubt)?;
            Ok(AssociationRow { number: row.number(), id1, id2, time, data: data(row, 3)? })
        };
        handed(association(), 3, &mut each)
    });
    read.map(|report| FileReport { unlikely_time: doubt, ..report })
}

/// The wanted columns: `labels`, followed by the fields.
fn wanted(labels: &[&'static str], columns: &[ColumnRef]) -> Vec<WantedColumn> {
    let column = |(position, label): (usize, &&'static str)| {
        let is_id = label.starts_with("id");
        WantedColumn { is_id, ..WantedColumn::id(label, columns.get(position), position) }
    };
    let mut wanted: Vec<WantedColumn> = labels.iter().enumerate().map(column).collect();
    match columns.get(labels.len()) {
        Some(at) => {
            wanted.push(WantedColumn { is_id: false, ..WantedColumn::id("data", Some(at), labels.len()) })
        }
        None if columns.is_empty() => wanted.push(WantedColumn::optional("data", labels.len())),
        None => {}
    }
    wanted
}

/// The text of a column, if the file has the column and the text is not empty.
fn data(row: &Row<'_>, column: usize) -> Result<Option<String>, ColumnFault> {
    if row.columns() <= column {
        return Ok(None);
    }
    let text = row.text(column).ok_or(ColumnFault(column, LineFault::NotText))?;
    Ok((!text.is_empty()).then(|| text.into_owned()))
}

/// Hands on a parsed line. A fault that the caller finds concerns the fields, which are in column `data`.
fn handed<T, E>(
    row: Result<T, ColumnFault>,
    data: usize,
    each: &mut impl FnMut(T) -> Result<Result<(), LineFault>, E>,
) -> Result<Result<(), ColumnFault>, E> {
    match row {
        Ok(row) => Ok(each(row)?.map_err(|fault| ColumnFault(data, fault))),
        Err(fault) => Ok(Err(fault)),
    }
}
