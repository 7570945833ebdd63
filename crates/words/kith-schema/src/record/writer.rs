//! Encodes records from typed values or JSON.

use super::items::{Entries, Items};
use super::layout::{Piece, assemble};
use super::number::{Clock, put_scalar};
use super::{EncodeError, Scalar, ValueFault};
use crate::{ElementType, FieldType, ProjectedView, Schema, TimeUnit};

/// Writes records of one schema, one after the other; its buffers are reused. Fields may be set in any order, each once.
/// [`RecordWriter::finish`] adds defaults and nulls.
///
/// After an error, drop the current record with [`RecordWriter::clear`].
pub struct RecordWriter {
    schema: Schema,
    /// The encoded value of each field whose state is [`State::Set`].
    pub(super) values: Vec<Vec<u8>>,
    /// How the times of each field are read.
    pub(super) clocks: Vec<Clock>,
    states: Vec<State>,
    /// For each field, whether a record has set it, even to null, since [`RecordWriter::forget`].
    was_set: Vec<bool>,
    /// The encoded value, or null, of each field that is the same in all records.
    constants: Vec<Option<Option<Vec<u8>>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Null,
    Set,
}

impl RecordWriter {
    /// Creates a writer of records under `schema`.
    pub fn new(schema: &Schema) -> Self {
        let fields = schema.fields().len();
        RecordWriter {
            schema: schema.clone(),
            values: vec![Vec::new(); fields],
            clocks: vec![Clock::default(); fields],
            states: vec![State::Absent; fields],
            was_set: vec![false; fields],
            constants: vec![None; fields],
        }
    }

    /// The schema of its records.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Reads plain numbers in a field of times as numbers of this unit. Milliseconds are the default.
    pub fn set_unit(&mut self, index: usize, unit: TimeUnit) {
        self.clocks[index].unit = unit;
    }

    /// The first field with a number that is unlikely to be a time in milliseconds, and that number.
    pub fn unlikely_time(&self) -> Option<(&str, i128)> {
        let doubtful = self.clocks.iter().map(|clock| clock.doubtful);
        let named = self.schema.fields().iter().zip(doubtful);
        named.filter_map(|(field, number)| Some((field.name(), number?))).next()
    }

    /// Drops the fields that were set.
    pub fn clear(&mut self) {
        self.states.fill(State::Absent);
    }

    /// Whether a record has set this field, even to null, since the last [`RecordWriter::forget`].
    pub fn was_set(&self, index: usize) -> bool {
        self.was_set[index] || self.constants[index].is_some()
    }

    /// Makes the fields that are set now the same in all following records, which must not set them again. Earlier such
    /// fields are forgotten.
    pub fn keep_constants(&mut self) {
        let values = self.states.iter().zip(&self.values).map(|(state, value)| match state {
            State::Absent => None,
            State::Null => Some(None),
            State::Set => Some(Some(value.clone())),
        });
        self.constants = values.collect();
        self.clear();
    }

    /// Whether a field is the same in all records.
    pub fn is_constant(&self, index: usize) -> bool {
        self.constants[index].is_some()
    }

    /// Forgets the fields that are the same in all records.
    pub fn forget_constants(&mut self) {
        self.constants.fill(None);
    }

    /// Forgets which fields records have set.
    pub fn forget(&mut self) {
        self.was_set.fill(false);
    }

    /// Sets a field to one value.
    ///
    /// # Errors
    /// [`EncodeError`] if the type differs, the value is out of range, or the field is already set.
    ///
    /// # Panics
    /// If `index` is not below the number of fields, like all functions that take an `index`.
    pub fn set(&mut self, index: usize, value: Scalar<'_>) -> Result<(), EncodeError> {
        self.claim(index)?;
        let FieldType::Scalar(scalar) = self.field_type(index) else {
            return Err(self.wrong_type(index, value.describe()));
        };
        self.values[index].clear();
        let put = put_scalar(scalar, value, &mut self.clocks[index], &mut self.values[index]);
        put.map_err(|fault| self.fault(index, None, fault))
    }

    /// Sets a field to null.
    ///
    /// # Errors
    /// [`EncodeError`] if the field is not nullable or already set.
    pub fn set_null(&mut self, index: usize) -> Result<(), EncodeError> {
        self.claim(index)?;
        let field = &self.schema.fields()[index];
        if !field.is_nullable() {
            return Err(EncodeError::Null { field: field.name().to_owned() });
        }
        self.states[index] = State::Null;
        Ok(())
    }

    /// Sets a list or vector field.
    ///
    /// # Errors
    /// [`EncodeError`] if the type differs, an item is out of range, a vector has another length, or the field is already
    /// set.
    pub fn set_list<'v>(
        &mut self,
        index: usize,
        values: impl IntoIterator<Item = Scalar<'v>>,
    ) -> Result<(), EncodeError> {
        self.claim(index)?;
        let field_type = self.field_type(index);
        let Some(mut items) = Items::begin(field_type, self.clocks[index], &mut self.values[index]) else {
            return Err(self.wrong_type(index, "a list".to_owned()));
        };
        let pushed = values.into_iter().try_for_each(|value| items.push(value));
        let at = items.count();
        self.clocks[index] = items.clock;
        let finished =
            pushed.map_err(|fault| (Some(at), fault)).and_then(|()| items.finish().map_err(|f| (None, f)));
        finished.map_err(|(item, fault)| self.fault(index, item, fault))
    }

    /// Sets a vector field from `f32` values. This is a copy if its elements are `f32`.
    ///
    /// # Errors
    /// Those of [`RecordWriter::set_list`].
    pub fn set_f32s(&mut self, index: usize, values: &[f32]) -> Result<(), EncodeError> {
        match self.field_type(index) {
            FieldType::Vector { element: ElementType::F32, dimensions }
                if values.len() == dimensions as usize =>
            {
                if let Some(item) = values.iter().position(|value| !value.is_finite()) {
                    return Err(self.fault(index, Some(item as u64 + 1), ValueFault::NotFinite));
                }
                self.claim(index)?;
                self.values[index].clear();
                self.values[index].extend(values.iter().flat_map(|value| value.to_le_bytes()));
                Ok(())
            }
            _ => self.set_list(index, values.iter().map(|&value| Scalar::F32(value))),
        }
    }

    /// Sets a map field. Entries may have any order.
    ///
    /// # Errors
    /// [`EncodeError`] if the type differs, a value is out of range, a key is repeated, or the field is already set.
    pub fn set_map<'v>(
        &mut self,
        index: usize,
        entries: impl IntoIterator<Item = (&'v str, Scalar<'v>)>,
    ) -> Result<(), EncodeError> {
        self.claim(index)?;
        let Some(mut map) = Entries::begin(self.field_type(index), self.clocks[index]) else {
            return Err(self.wrong_type(index, "a map".to_owned()));
        };
        for (key, value) in entries {
            let pushed = map.push(key, value);
            pushed.map_err(|fault| self.fault(index, Some(map.count()), fault))?;
        }
        self.clocks[index] = map.clock;
        map.finish(&mut self.values[index]).map_err(|fault| self.fault(index, None, fault))
    }

    /// Appends the record to `out` and begins the next. Fields that were not set get their default, or null without one.
    ///
    /// # Errors
    /// [`EncodeError::Missing`] if a field has no value; an error for a record beyond
    /// [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX). `out` is unchanged then, and the current record is dropped.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.finish_over(None, out)
    }

    /// Ends the record like [`RecordWriter::finish`], but takes fields that were not set from `base` if it is given.
    pub(super) fn finish_over(
        &mut self,
        base: Option<&ProjectedView<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        let done = assemble(self.schema.layout(), out, |index| match (self.states[index], base) {
            (State::Set, _) => Ok(Some(Piece::Slice(&self.values[index]))),
            (State::Null, _) => Ok(None),
            (State::Absent, Some(base)) => Ok(base.piece(index)?),
            (State::Absent, None) => self.absent(index),
        });
        if done.is_err() {
            out.truncate(start);
        }
        self.clear();
        done
    }

    fn absent(&self, index: usize) -> Result<Option<Piece<'_>>, EncodeError> {
        if let Some(constant) = &self.constants[index] {
            return Ok(constant.as_deref().map(Piece::Slice));
        }
        let field = &self.schema.fields()[index];
        match self.schema.default_bytes(index) {
            Some(bytes) => Ok(Some(Piece::Slice(bytes))),
            None if field.is_nullable() => Ok(None),
            None => Err(EncodeError::Missing { field: field.name().to_owned() }),
        }
    }

    /// Marks a field as set. The caller writes its value.
    pub(super) fn claim(&mut self, index: usize) -> Result<(), EncodeError> {
        if self.states[index] != State::Absent || self.constants[index].is_some() {
            return Err(EncodeError::Repeated { field: self.name(index) });
        }
        self.states[index] = State::Set;
        self.was_set[index] = true;
        Ok(())
    }

    pub(super) fn field_type(&self, index: usize) -> FieldType {
        self.schema.fields()[index].field_type()
    }

    pub(super) fn fault(&self, index: usize, item: Option<u64>, fault: ValueFault) -> EncodeError {
        // A wrong length of a vector is not the fault of the item at which it is detected.
        let item = item.filter(|_| !matches!(fault, ValueFault::Dimensions { .. } | ValueFault::TooLarge));
        EncodeError::Value { field: self.name(index), item, fault }
    }

    pub(super) fn wrong_type(&self, index: usize, got: String) -> EncodeError {
        let expected = self.field_type(index).to_string();
        self.fault(index, None, ValueFault::WrongType { expected, got })
    }

    fn name(&self, index: usize) -> String {
        self.schema.fields()[index].name().to_owned()
    }
}
