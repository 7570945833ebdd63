//! Records of one schema read as records of another: fewer fields, other order, added and widened fields.

use crate::evolution::{Incompatible, Mismatch};
use crate::record::{FieldView, Piece, RecordError, RecordView, Scalar, assemble};
use crate::{FieldType, ScalarType, Schema};

/// How each field of a reader's schema is had from records of a writer's. Fields go by name. Resolved once, used for
/// many records.
#[derive(Clone, Debug)]
pub struct Projection {
    writer: Schema,
    reader: Schema,
    sources: Vec<Source>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// The field at this index of the writer; widened if the types differ.
    Field(usize),
    /// Not in the writer: the reader's default, else null.
    Absent,
}

/// A record seen through a [`Projection`].
#[derive(Clone, Copy, Debug)]
pub struct ProjectedView<'a> {
    projection: &'a Projection,
    record: RecordView<'a>,
}

impl Projection {
    /// Finds every field of `reader` in `writer`, or its default, or null.
    ///
    /// # Errors
    /// [`Incompatible`]: a field that is in neither way there, may be null where the reader says never, or is of a
    /// type that does not widen.
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

    /// The schema of what comes out.
    pub fn reader(&self) -> &Schema {
        &self.reader
    }

    /// Sees a record through it, without decoding.
    ///
    /// # Errors
    /// [`RecordError::Damaged`].
    pub fn view<'a>(&'a self, record: &'a [u8]) -> Result<ProjectedView<'a>, RecordError> {
        Ok(ProjectedView { projection: self, record: RecordView::new(&self.writer, record)? })
    }

    /// Appends the bytes of the projected record, under [`Projection::reader`]; copies only the fields kept.
    ///
    /// # Errors
    /// [`RecordError`]; `out` is then as it was. Values are copied, not decoded: one that is damaged is found by
    /// who reads it.
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
    /// The field of that name of the reader's schema; `None` if null.
    ///
    /// # Errors
    /// [`RecordError::UnknownField`], [`RecordError::DamagedField`].
    pub fn field(&self, name: &str) -> Result<Option<FieldView<'a>>, RecordError> {
        self.at(self.projection.reader.read_index(name)?)
    }

    /// The field at `index` of the reader's schema; `None` if null.
    ///
    /// # Errors
    /// [`RecordError::DamagedField`].
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

    /// The coded bytes of the field at `index` of the reader's schema; `None` if null.
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
