//! A record read where it lies: no copy, no decoding of fields nobody asks for.

use super::{ListView, MapView, RecordError, Scalar, VectorView};
use crate::{FieldType, Schema};

/// The bytes of a record under the schema they were written with.
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
    /// Takes `bytes` as a record. `O(1)`: checks its length, not its values, which are checked when read.
    ///
    /// # Errors
    /// [`RecordError::Damaged`].
    #[inline]
    pub fn new(schema: &'a Schema, bytes: &'a [u8]) -> Result<Self, RecordError> {
        let damaged = |why| RecordError::Damaged { bytes: bytes.len(), why };
        schema.layout().check(bytes).map_err(damaged)?;
        Ok(RecordView { schema, bytes })
    }

    /// The schema it was written under.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// The record as it lies.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The field of that name; `None` if null. `O(log fields)`.
    ///
    /// # Errors
    /// [`RecordError::UnknownField`], [`RecordError::DamagedField`].
    pub fn field(&self, name: &str) -> Result<Option<FieldView<'a>>, RecordError> {
        self.at(self.schema.read_index(name)?)
    }

    /// The field at `index`; `None` if null. `O(1)`, but for text, which is checked to be UTF-8.
    ///
    /// # Errors
    /// [`RecordError::DamagedField`].
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

    /// The coded bytes of the field at `index`; `None` if null.
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
    /// Takes coded bytes as a value; says what does not hold if they are none.
    #[inline]
    pub(crate) fn of(field_type: FieldType, bytes: &'a [u8]) -> Result<Self, &'static str> {
        Ok(match field_type {
            FieldType::Scalar(scalar) => FieldView::Scalar(Scalar::decode(scalar, bytes)?),
            FieldType::Vector { element, .. } => FieldView::Vector(VectorView::new(element, bytes)),
            FieldType::List(scalar) => FieldView::List(ListView::new(scalar, bytes)?),
            FieldType::Map(scalar) => FieldView::Map(MapView::new(scalar, bytes)?),
        })
    }

    /// The value, of a field of one.
    pub fn as_scalar(&self) -> Option<Scalar<'a>> {
        if let FieldView::Scalar(scalar) = self { Some(*scalar) } else { None }
    }

    /// The text, of a text field.
    pub fn as_text(&self) -> Option<&'a str> {
        if let FieldView::Scalar(Scalar::Text(text)) = self { Some(text) } else { None }
    }

    /// The bytes, of a bytes field.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        if let FieldView::Scalar(Scalar::Bytes(bytes)) = self { Some(bytes) } else { None }
    }

    /// The number, of an `i32`, `i64` or timestamp field.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            FieldView::Scalar(Scalar::I32(value)) => Some(i64::from(*value)),
            FieldView::Scalar(Scalar::I64(value) | Scalar::Timestamp(value)) => Some(*value),
            _ => None,
        }
    }

    /// The number, of a `u64` field.
    pub fn as_u64(&self) -> Option<u64> {
        if let FieldView::Scalar(Scalar::U64(value)) = self { Some(*value) } else { None }
    }

    /// The number, of an `f32` or `f64` field.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            FieldView::Scalar(Scalar::F32(value)) => Some(f64::from(*value)),
            FieldView::Scalar(Scalar::F64(value)) => Some(*value),
            _ => None,
        }
    }

    /// The value, of a bool field.
    pub fn as_bool(&self) -> Option<bool> {
        if let FieldView::Scalar(Scalar::Bool(value)) = self { Some(*value) } else { None }
    }

    /// The vector, of a vector field.
    pub fn as_vector(&self) -> Option<VectorView<'a>> {
        if let FieldView::Vector(vector) = self { Some(*vector) } else { None }
    }

    /// The list, of a list field.
    pub fn as_list(&self) -> Option<ListView<'a>> {
        if let FieldView::List(list) = self { Some(*list) } else { None }
    }

    /// The map, of a map field.
    pub fn as_map(&self) -> Option<MapView<'a>> {
        if let FieldView::Map(map) = self { Some(*map) } else { None }
    }
}
