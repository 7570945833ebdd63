//! Determines the roles of columns, in tables of any kind.

use crate::rows::error::RowsError;
use crate::rows::options::{RowOptions, ValueShape};
use kith_schema::Schema;
use std::sync::Arc;

/// The places of key and value among the columns.
pub(crate) struct Columns {
    pub(crate) key: usize,
    pub(crate) value: ValueColumns,
    /// The number of columns of a row.
    pub(crate) count: usize,
}

pub(crate) enum ValueColumns {
    /// The value is one column.
    One(usize),
    /// The value is a record: the field of each column, if the column is one.
    Fields(Vec<Option<usize>>),
}

/// Finds the columns by name.
pub(crate) fn by_name(file: &Arc<str>, names: &[String], options: &RowOptions) -> Result<Columns, RowsError> {
    check_names(file, names)?;
    let key = position(file, names, options.key_name())?;
    let value = match &options.value {
        ValueShape::Record(schema) => ValueColumns::Fields(fields(file, names, key, schema)?),
        ValueShape::Text | ValueShape::Bytes | ValueShape::Json => {
            let value = position(file, names, options.value_name())?;
            if names.len() != 2 && options.value_field.is_none() {
                return Err(RowsError::ExtraColumns { file: Arc::clone(file), columns: names.to_vec() });
            }
            ValueColumns::One(value)
        }
    };
    Ok(Columns { key, value, count: names.len() })
}

/// Takes the columns in order: the key, then the value or the schema's fields.
pub(crate) fn by_place(options: &RowOptions) -> Columns {
    match &options.value {
        ValueShape::Record(schema) => {
            let fields: Vec<Option<usize>> =
                std::iter::once(None).chain((0..schema.fields().len()).map(Some)).collect();
            Columns { key: 0, count: fields.len(), value: ValueColumns::Fields(fields) }
        }
        ValueShape::Text | ValueShape::Bytes | ValueShape::Json => {
            Columns { key: 0, value: ValueColumns::One(1), count: 2 }
        }
    }
}

/// Refuses repeated names, because one of them would be ignored silently.
pub(crate) fn check_names(file: &Arc<str>, names: &[String]) -> Result<(), RowsError> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(RowsError::RepeatedColumn { file: Arc::clone(file), column: pair[0].clone() }),
        None => Ok(()),
    }
}

pub(crate) fn position(file: &Arc<str>, names: &[String], name: &str) -> Result<usize, RowsError> {
    names.iter().position(|column| column == name).ok_or_else(|| RowsError::NoColumn {
        file: Arc::clone(file),
        column: name.to_owned(),
        columns: names.to_vec(),
    })
}

/// The fields of the schema for which there is no column.
fn missing(names: &[String], schema: &Schema) -> Vec<String> {
    let fields = schema.fields().iter().map(|field| field.name());
    fields.filter(|field| !names.iter().any(|name| name == field)).map(str::to_owned).collect()
}

fn fields(
    file: &Arc<str>,
    names: &[String],
    key: usize,
    schema: &Schema,
) -> Result<Vec<Option<usize>>, RowsError> {
    let fields = names.iter().enumerate().map(|(index, name)| match schema.index_of(name) {
        None if index != key => Err(RowsError::UnknownColumn {
            file: Arc::clone(file),
            column: name.clone(),
            near: schema.nearest(name),
            missing: missing(names, schema),
        }),
        field => Ok(field),
    });
    fields.collect()
}
