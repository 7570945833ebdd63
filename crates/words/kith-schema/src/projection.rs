//! Reads records of one schema as records of another: with fewer fields, another order, added fields and widened fields.

use crate::evolution::{Incompatible, Mismatch};
use crate::record::{FieldView, Piece, RecordError, RecordView, Scalar, assemble};
use crate::{FieldType, ScalarType, Schema};

/// The origin of each field of a reader's schema in records of a writer's schema. Fields are matched by name. It is
/// resolved once and used for many records.
#[derive(Clone, Debug)]
pub struct Projection {
    writer: Schema,
    reader: Schema,
    sources: Vec<Source>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// The field at this index of the writer, widened if the types differ.
    Field(usize),
    /// The writer lacks the field: it has the reader's default, or null without one.
    Absent,
}

/// A record, read through a [`Projection`].
#[derive(Clone, Copy, Debug)]
pub struct ProjectedView<'a> {
    projection: &'a Projection,
    record: RecordView<'a>,
}

impl Projection {
    /// Finds every field of `reader` in `writer`. A missing field has its default, or null without one.
    ///
    /// # Errors
    /// [`Incompatible`] if a missing field has neither default nor null, a field may be null in the writer but not in the
    /// reader, or its type does not widen.
    pub fn resolve(writer: &Schema, reader: &Schema) -> Result<Self, Incompatible> {
        let sources = reader.fields().iter().map(|field| {
            let why = |why| Incompatible { field: field.name().to_owned(), why };
            let can_be_absent = field.is_nullable() || field.has_default();
            let Some(index) = writer.index_of(field.name()) else {
                return if can_be_absent { Ok(Source::Absent) } else { Err(why(Mismatch::NotWritten)) };
            };
            let written = &writer.fields()[index];
            if !written.field_type().widens_to(field.field_type()) {
                let (old, new) = (written.field_type(), field.field_type());
                return Err(why(Mismatch::Type { old, new }));
            }
            if written.is_nullable() && !can_be_absent {
                return Err(why(Mismatch::NoLongerNullable));
            }
            Ok(Source::Field(index))
        });
        let sources = sources.collect::<Result<_, _>>()?;
        Ok(Projection { writer: writer.clone(), reader: reader.clone(), sources })
    }

    /// The schema of the projected records.
    pub fn reader(&self) -> &Schema {
        &self.reader
    }

    /// Reads a record through the projection, without decoding it.
    ///
    /// # Errors
    /// [`RecordError::Damaged`] if the bytes are not a record of the writer's schema.
    pub fn view<'a>(&'a self, record: &'a [u8]) -> Result<ProjectedView<'a>, RecordError> {
        Ok(ProjectedView { projection: self, record: RecordView::new(&self.writer, record)? })
    }

    /// Appends the bytes of the projected record under [`Projection::reader`]. Copies only the kept fields.
    ///
    /// # Errors
    /// [`RecordError`] if the record is damaged; `out` is unchanged then. Values are copied and not decoded, so a damaged
    /// value is detected only by its reader.
    pub fn write(&self, record: &[u8], out: &mut Vec<u8>) -> Result<(), RecordError> {
        let view = self.view(record)?;
        let start = out.len();
        let done = assemble(self.reader.layout(), out, |index| view.piece(index));
        if done.is_err() {
            out.truncate(start);
        }
        done
    }
}

impl<'a> ProjectedView<'a> {
    /// The field with this name in the reader's schema; `None` if it is null.
    ///
    /// # Errors
    /// [`RecordError::UnknownField`] if there is no such field; [`RecordError::DamagedField`] if its bytes are damaged.
    pub fn field(&self, name: &str) -> Result<Option<FieldView<'a>>, RecordError> {
        self.at(self.projection.reader.read_index(name)?)
    }

    /// The field at `index` of the reader's schema; `None` if it is null.
    ///
    /// # Errors
    /// [`RecordError::DamagedField`] if its bytes are damaged.
    ///
    /// # Panics
    /// If `index` is not below the number of fields.
    pub fn at(&self, index: usize) -> Result<Option<FieldView<'a>>, RecordError> {
        let field = &self.projection.reader.fields()[index];
        let written = match self.projection.sources[index] {
            Source::Field(from) => self.record.at(from)?,
            Source::Absent => None,
        };
        if let Some(value) = written {
            return Ok(Some(widened(value, field.field_type())));
        }
        if field.is_nullable() && matches!(self.projection.sources[index], Source::Field(_)) {
            return Ok(None);
        }
        let default = self.projection.reader.default_bytes(index);
        let view = default.map(|bytes| FieldView::of(field.field_type(), bytes)).transpose();
        Ok(view.expect("a default was coded by the schema"))
    }

    /// The encoded value of the field at `index` of the reader's schema; `None` if it is null.
    pub(crate) fn piece(&self, index: usize) -> Result<Option<Piece<'a>>, RecordError> {
        let (writer, reader) = (&self.projection.writer, &self.projection.reader);
        let field = &reader.fields()[index];
        if let Source::Field(from) = self.projection.sources[index] {
            let old = writer.fields()[from].field_type();
            if old != field.field_type() {
                let wide = |value| {
                    if let FieldView::Scalar(scalar) = widened(value, field.field_type()) {
                        wide(scalar)
                    } else {
                        None
                    }
                };
                if let Some(bytes) = self.record.at(from)?.and_then(wide) {
                    return Ok(Some(Piece::Wide(bytes)));
                }
            } else if let Some(bytes) = self.record.value(from)? {
                return Ok(Some(Piece::Slice(bytes)));
            }
            if field.is_nullable() {
                return Ok(None);
            }
        }
        Ok(reader.default_bytes(index).map(Piece::Slice))
    }
}

fn widened(value: FieldView<'_>, to: FieldType) -> FieldView<'_> {
    match (value, to) {
        (FieldView::Scalar(Scalar::I32(value)), FieldType::Scalar(ScalarType::I64)) => {
            FieldView::Scalar(Scalar::I64(value.into()))
        }
        (FieldView::Scalar(Scalar::F32(value)), FieldType::Scalar(ScalarType::F64)) => {
            FieldView::Scalar(Scalar::F64(value.into()))
        }
        _ => value,
    }
}

fn wide(value: Scalar<'_>) -> Option<[u8; 8]> {
    match value {
        Scalar::I64(value) => Some(value.to_le_bytes()),
        Scalar::F64(value) => Some(value.to_le_bytes()),
        _ => None,
    }
}
