//! Reads the three kinds of input files for loaded graphs.

use super::fault::LineFault;
use super::folders::FolderValues;
use super::header::WantedColumn;
use super::row::{ColumnFault, Row};
use super::table::Table;
use super::{ColumnRef, ColumnSpec, FileError, FileOptions, FileReport, ReadProgress, TimeUnit};
use crate::rows::error::ReadError;
use kith_schema::ColumnKind;
use kith_types::check_component_name;
use std::borrow::Cow;
use std::path::Path;

/// The columns of an edge file that are read.
#[derive(Clone, Debug, Default)]
pub struct EdgeColumns {
    /// The column of sources. With `None`, it is the column named `src` if the header has `src` and `dst`, else the first.
    pub src: Option<ColumnRef>,
    /// The column of destinations. With `None`, it is the column named `dst` if the header has `src` and `dst`, else the
    /// second.
    pub dst: Option<ColumnRef>,
    /// The columns to keep, in this order.
    pub columns: Vec<ColumnSpec>,
}

/// Calls `each(src, dst, columns)` for every good line of an edge file.
///
/// # Errors
/// Those of [`FileError`]; errors of `each` end the reading.
pub fn read_edges<E>(
    path: &Path,
    options: &FileOptions,
    columns: &EdgeColumns,
    progress: &mut dyn FnMut(&ReadProgress),
    mut each: impl FnMut(u64, u64, &[u64]) -> Result<(), E>,
) -> Result<FileReport, ReadError<E, FileError>> {
    let wanted = vec![
        WantedColumn::id("src", columns.src.as_ref(), 0),
        WantedColumn::id("dst", columns.dst.as_ref(), 1),
    ];
    let folders = FolderValues::of(path, &columns.columns)?;
    let table = folders.open(path, options, wanted, &columns.columns)?;
    if columns.columns.is_empty() {
        return table.pairs(progress, |src, dst| each(src, dst, &[]));
    }
    let mut values = Vec::with_capacity(columns.columns.len());
    let mut doubt = folders.doubt.clone();
    let read = table.rows(progress, |row| {
        let ids = row.id(0).and_then(|src| Ok((src, row.id(1)?)));
        match ids.and_then(|ids| {
            take_values(row, 2, &columns.columns, &folders, &mut values, &mut doubt).map(|()| ids)
        }) {
            Ok((src, dst)) => each(src, dst, &values).map(Ok),
            Err(fault) => Ok(Err(fault)),
        }
    });
    read.map(|report| folders.report(FileReport { unlikely_time: doubt, ..report }, &columns.columns))
}

/// Calls `each(member, kind, entity, columns)` for every good line of a file of member-to-entity edges.
///
/// # Errors
/// Those of [`FileError`]; errors of `each` end the reading.
pub fn read_entities<E>(
    path: &Path,
    options: &FileOptions,
    columns: &[ColumnSpec],
    progress: &mut dyn FnMut(&ReadProgress),
    mut each: impl FnMut(u64, &str, u64, &[u64]) -> Result<(), E>,
) -> Result<FileReport, ReadError<E, FileError>> {
    let kind = WantedColumn { is_id: false, ..WantedColumn::id("kind", None, 1) };
    let wanted = vec![WantedColumn::id("member", None, 0), kind, WantedColumn::id("entity", None, 2)];
    let folders = FolderValues::of(path, columns)?;
    let table = folders.open(path, options, wanted, columns)?;
    let mut values = Vec::with_capacity(columns.len());
    let mut doubt = folders.doubt.clone();
    let read = table.rows(progress, |row| {
        let fields = row.id(0).and_then(|member| Ok((member, kind_name(row)?, row.id(2)?)));
        match fields.and_then(|fields| {
            take_values(row, 3, columns, &folders, &mut values, &mut doubt).map(|()| fields)
        }) {
            Ok((member, kind, entity)) => each(member, &kind, entity, &values).map(Ok),
            Err(fault) => Ok(Err(fault)),
        }
    });
    read.map(|report| folders.report(FileReport { unlikely_time: doubt, ..report }, columns))
}

/// Calls `each(id)` for every good line of a list of members. The id is in the column `id`: by default the column of that
/// name, else the first. All other columns may hold any text.
///
/// # Errors
/// Those of [`FileError`]; errors of `each` end the reading.
pub fn read_members<E>(
    path: &Path,
    options: &FileOptions,
    id: Option<&ColumnRef>,
    progress: &mut dyn FnMut(&ReadProgress),
    mut each: impl FnMut(u64) -> Result<(), E>,
) -> Result<FileReport, ReadError<E, FileError>> {
    let table = Table::open(path, options, vec![WantedColumn::id("id", id, 0)])?;
    table.rows(progress, |row| match row.id(0) {
        Ok(id) => each(id).map(Ok),
        Err(fault) => Ok(Err(fault)),
    })
}

fn kind_name<'a>(row: &'a Row<'_>) -> Result<Cow<'a, str>, ColumnFault> {
    row.text(1).filter(|name| check_component_name(name).is_ok()).ok_or(ColumnFault(1, LineFault::KindName))
}

/// Reads a time of `column`. Notes the first one in `doubt` that is unlikely to be in milliseconds.
pub(super) fn take_time(
    row: &Row<'_>,
    at: usize,
    column: &ColumnSpec,
    doubt: &mut Option<String>,
) -> Result<u64, ColumnFault> {
    let value = row.value(at, ColumnKind::Time)?;
    let is_settled = column.unit == TimeUnit::Millis && doubt.is_some();
    if is_settled || !row.is_number(at) {
        return Ok(value);
    }
    column.of_number(value, doubt).ok_or(ColumnFault(at, LineFault::ColumnValue(ColumnKind::Time)))
}

/// Reads the kept columns into `values`. Those that are not in `folders` follow the first `from` wanted ones. Notes the
/// first time in `doubt` that is unlikely to be in its column's unit.
fn take_values(
    row: &Row<'_>,
    from: usize,
    columns: &[ColumnSpec],
    folders: &FolderValues,
    values: &mut Vec<u64>,
    doubt: &mut Option<String>,
) -> Result<(), ColumnFault> {
    values.clear();
    let mut at = from;
    for (column, constant) in columns.iter().zip(&folders.values) {
        if let Some(value) = constant {
            values.push(*value);
            continue;
        }
        values.push(match column.kind {
            ColumnKind::Time => take_time(row, at, column, doubt)?,
            kind => row.value(at, kind)?,
        });
        at += 1;
    }
    Ok(())
}
