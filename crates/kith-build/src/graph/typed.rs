//! Parquet, Arrow and JSON lines as files of a graph: what `kith-rows` reads, as the loader takes it.

use kith_engine::load::input::{EachRow, Field, LineFault, TypedError, TypedFile, TypedOptions};
use kith_rows::{FieldTable, FileSource};
use std::path::Path;

/// A file that `kith-rows` reads.
struct Typed {
    table: FieldTable,
    bytes: u64,
}

/// Opens a file of rows; `None` of everything else, about which the loader itself says what is wrong. What is no regular file is
/// text, for it can be read only once.
///
/// # Errors
/// If it is of a format of rows, but damaged or too large to be decoded.
pub(super) fn open(path: &Path, options: TypedOptions) -> Result<Option<Box<dyn TypedFile>>, TypedError> {
    let Some(metadata) = path.metadata().ok().filter(|metadata| metadata.is_file()) else { return Ok(None) };
    let Ok(source) = FileSource::new(path) else { return Ok(None) };
    let table = FieldTable::open(&source, options.memory_bytes)?;
    Ok(table.map(|table| Box::new(Typed { table, bytes: metadata.len() }) as Box<dyn TypedFile>))
}

impl TypedFile for Typed {
    fn columns(&self) -> &[String] {
        self.table.columns()
    }

    fn unit(&self) -> &'static str {
        self.table.unit()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn rows(self: Box<Self>, columns: &[usize], each: &mut EachRow<'_>) -> Result<(), TypedError> {
        let read = self.table.rows(columns, &mut |number, fields| match fields {
            Ok(fields) => {
                let fields: Vec<Field<'_>> = fields.iter().map(field).collect();
                each(number, Ok(&fields))
            }
            Err(_) => each(number, Err(LineFault::NotAnObject)),
        });
        Ok(read?)
    }
}

fn field<'a>(field: &'a kith_rows::Field<'_>) -> Field<'a> {
    match field {
        kith_rows::Field::Null => Field::Null,
        kith_rows::Field::Unsigned(number) => Field::Unsigned(*number),
        kith_rows::Field::Text(text) => Field::Text((&**text).into()),
    }
}
