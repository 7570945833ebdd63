//! A record, read in place: without copies, and without decoding fields that are not requested.

use super::{ListView, MapView, RecordError, Scalar, VectorView};
use crate::{FieldType, Schema};

/// The bytes of a record with the schema that they were written under.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    schema: &'a Schema,
    bytes: &'a [u8],
}

/// The value of a field that is not null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldView<'a> {
    /// One value.
    Scalar(Scalar<'a>),
    /// A vector.
    Vector(VectorView<'a>),
    /// A list.
    List(ListView<'a>),
    /// A map.
    Map(MapView<'a>),
}

impl<'a> RecordView<'a> {
    /// Reads `bytes` as a record. `O(1)`: checks its length, but not its values, which are checked when they are read.
    ///
    /// # Errors
    /// [`RecordError::Damaged`] if the length is wrong.
    #[inline]
    pub fn new(schema: &'a Schema, bytes: &'a [u8]) -> Result<Self, RecordError> {
        let damaged = |why| RecordError::Damaged { bytes: bytes.len(), why };
        schema.layout().check(bytes).map_err(damaged)?;
        Ok(RecordView { schema, bytes })
    }

    /// The schema that the record was written under.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// The bytes of the record.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The field with this name; `None` if it is null. `O(log fields)`.
    ///
    /// # Errors
    /// [`RecordError::UnknownField`] if there is no such field; [`RecordError::DamagedField`] if its bytes are damaged.
    pub fn field(&self, name: &str) -> Result<Option<FieldView<'a>>, RecordError> {
        self.at(self.schema.read_index(name)?)
    }

    /// The field at `index`; `None` if it is null. `O(1)`, except for text, which is checked to be UTF-8.
    ///
    /// # Errors
    /// [`RecordError::DamagedField`] if its bytes are damaged.
    ///
    /// # Panics
    /// If `index` is not below the number of fields.
    #[inline]
    pub fn at(&self, index: usize) -> Result<Option<FieldView<'a>>, RecordError> {
        let field = &self.schema.fields()[index];
        let view = |bytes| FieldView::of(field.field_type(), bytes);
        let value =
            self.schema.layout().value(index, self.bytes).and_then(|bytes| bytes.map(view).transpose());
        value.map_err(|why| self.damaged(index, why))
    }

    /// The encoded value of the field at `index`; `None` if it is null.
    pub(crate) fn value(&self, index: usize) -> Result<Option<&'a [u8]>, RecordError> {
        self.schema.layout().value(index, self.bytes).map_err(|why| self.damaged(index, why))
    }

    /// Reads every value of every field. `O(bytes)`.
    ///
    /// # Errors
    /// The first [`RecordError::DamagedField`].
    pub fn verify(&self) -> Result<(), RecordError> {
        for index in 0..self.schema.fields().len() {
            let checked = match self.at(index)? {
                Some(FieldView::List(list)) => list.iter().try_for_each(|item| item.map(|_| ())),
                Some(FieldView::Map(map)) => map.iter().try_for_each(|entry| entry.map(|_| ())),
                Some(FieldView::Scalar(_) | FieldView::Vector(_)) | None => Ok(()),
            };
            checked.map_err(|why| self.damaged(index, why))?;
        }
        Ok(())
    }

    pub(super) fn damaged(&self, index: usize, why: &'static str) -> RecordError {
        RecordError::DamagedField { field: self.schema.fields()[index].name().to_owned(), why }
    }
}

impl<'a> FieldView<'a> {
    /// Decodes a value. The error describes the fault if the bytes are not a value of the type.
    #[inline]
    pub(crate) fn of(field_type: FieldType, bytes: &'a [u8]) -> Result<Self, &'static str> {
        Ok(match field_type {
            FieldType::Scalar(scalar) => FieldView::Scalar(Scalar::decode(scalar, bytes)?),
            FieldType::Vector { element, .. } => FieldView::Vector(VectorView::new(element, bytes)),
            FieldType::List(scalar) => FieldView::List(ListView::new(scalar, bytes)?),
            FieldType::Map(scalar) => FieldView::Map(MapView::new(scalar, bytes)?),
        })
    }

    /// The value, if the field is scalar.
    pub fn as_scalar(&self) -> Option<Scalar<'a>> {
        if let FieldView::Scalar(scalar) = self { Some(*scalar) } else { None }
    }

    /// The text, if it is a text field.
    pub fn as_text(&self) -> Option<&'a str> {
        if let FieldView::Scalar(Scalar::Text(text)) = self { Some(text) } else { None }
    }

    /// The bytes, if it is a bytes field.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        if let FieldView::Scalar(Scalar::Bytes(bytes)) = self { Some(bytes) } else { None }
    }

    /// The number, if it is an `i32`, `i64` or timestamp field.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            FieldView::Scalar(Scalar::I32(value)) => Some(i64::from(*value)),
            FieldView::Scalar(Scalar::I64(value) | Scalar::Timestamp(value)) => Some(*value),
            _ => None,
        }
    }

    /// The number, if it is a `u64` field.
    pub fn as_u64(&self) -> Option<u64> {
        if let FieldView::Scalar(Scalar::U64(value)) = self { Some(*value) } else { None }
    }

    /// The number, if it is an `f32` or `f64` field.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            FieldView::Scalar(Scalar::F32(value)) => Some(f64::from(*value)),
            FieldView::Scalar(Scalar::F64(value)) => Some(*value),
            _ => None,
        }
    }

    /// The value, if it is a bool field.
    pub fn as_bool(&self) -> Option<bool> {
        if let FieldView::Scalar(Scalar::Bool(value)) = self { Some(*value) } else { None }
    }

    /// The vector, if it is a vector field.
    pub fn as_vector(&self) -> Option<VectorView<'a>> {
        if let FieldView::Vector(vector) = self { Some(*vector) } else { None }
    }

    /// The list, if it is a list field.
    pub fn as_list(&self) -> Option<ListView<'a>> {
        if let FieldView::List(list) = self { Some(*list) } else { None }
    }

    /// The map, if it is a map field.
    pub fn as_map(&self) -> Option<MapView<'a>> {
        if let FieldView::Map(map) = self { Some(*map) } else { None }
    }
}
