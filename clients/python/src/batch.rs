//! A batch: the state of each key, in the order of the keys, or best first.

use crate::{
    answered::{SharedAnswer, Values},
    entry::Entry,
    error,
    footer::footer,
    keys::Keys,
    record::dtype,
    value,
};
use kith_client::{BatchAnswer, BatchPiece};
use kith_operators::Record as State;
use kith_schema::{FieldType, RecordView, Schema, ValueType};
use kith_types::ErrorCode;
use pyo3::{
    exceptions::{PyIndexError, PyTypeError},
    prelude::*,
    types::{PyDict, PyList},
};
use std::sync::Arc;

/// A sequence of entries. The batch, its entries and their records share the bytes of the answer.
#[pyclass(frozen, sequence, module = "kith")]
pub struct Batch(Arc<SharedAnswer>);

impl Batch {
    /// Returns the batch of a whole answer to `keys`. `best` is the order of its entries, if it is not that of the keys.
    pub fn new(
        store: String,
        keys: Keys,
        values: Values,
        answer: BatchAnswer,
        best: Option<Vec<u32>>,
    ) -> Self {
        Self(Arc::new(SharedAnswer {
            store,
            keys: Arc::new(keys),
            values: Arc::new(values),
            records: answer.records,
            positions: None,
            order: best,
            versions: answer.served.into_iter().map(|(_, version)| version).collect(),
            missing: answer.missing_partitions,
        }))
    }

    /// Returns the batch of one piece of the answer to `keys`.
    pub fn piece(store: &str, keys: &Arc<Keys>, values: &Arc<Values>, piece: BatchPiece) -> Self {
        Self(Arc::new(SharedAnswer {
            store: store.to_owned(),
            keys: Arc::clone(keys),
            values: Arc::clone(values),
            records: piece.records,
            positions: Some(piece.positions),
            order: None,
            versions: vec![piece.version],
            missing: Vec::new(),
        }))
    }

    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.__len__()).map(|index| self.0.position(index))
    }

    /// Returns the vectors in a field of all entries, `width` bytes each, and for each entry whether it has a vector.
    /// Entries without a vector get zeros.
    fn vectors(&self, schema: &Schema, field: usize, width: usize) -> PyResult<(Vec<u8>, Vec<u8>)> {
        let mut rows = Vec::with_capacity(width * self.__len__());
        let mut there = Vec::with_capacity(self.__len__());
        for index in self.places() {
            let start = rows.len();
            if let State::Found(bytes) = self.0.state(index) {
                let view = RecordView::new(schema, bytes).and_then(|view| view.at(field));
                let field = view.map_err(|why| error::damaged(&self.0.store, why))?;
                rows.extend_from_slice(
                    field.and_then(|field| field.as_vector()).map_or(&[][..], |vector| vector.bytes()),
                );
            }
            there.push(u8::from(start < rows.len()));
            rows.resize(start + width, 0);
        }
        Ok((rows, there))
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.0.order.as_ref().map_or(self.0.records.len(), Vec::len)
    }

    fn __getitem__(&self, index: usize) -> PyResult<Entry> {
        if self.__len__() <= index {
            return Err(PyIndexError::new_err(format!("the batch has {} entries", self.__len__())));
        }
        Ok(Entry::new(Arc::clone(&self.0), self.0.position(index)))
    }

    /// The values in the order of the entries; `None` for entries without a value.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for index in self.places() {
            list.append(self.0.value(py, index)?)?;
        }
        Ok(list)
    }

    /// The values of the keys that were found, by key.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for index in self.places() {
            if let State::Found(_) = self.0.state(index) {
                dict.set_item(self.0.key(py, index)?, self.0.value(py, index)?)?;
            }
        }
        Ok(dict)
    }

    /// A vector field of all entries as a numpy array with one row per entry; rows of entries without the vector are zeros.
    /// The second array says which rows have a vector.
    fn numpy<'py>(&self, py: Python<'py>, field: &str) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let Values::Records(schema) = self.0.values.as_ref() else {
            return Err(match self.0.values.as_ref() {
                Values::Plain(ValueType::Record) => {
                    let help = "read again, because the version may have been removed in the meantime";
                    let message = "none of these records was found, and the schema with the length of their vectors is not available";
                    error::of(ErrorCode::SchemaUnavailable, message, help)
                }
                _ => PyTypeError::new_err("only records have fields"),
            });
        };
        let found = schema.index_of(field).map(|index| (index, schema.fields()[index].field_type()));
        let Some((index, FieldType::Vector { element, dimensions })) = found else {
            return Err(PyTypeError::new_err(format!("field {field:?} of these records is not a vector")));
        };
        let (rows, there) = self.vectors(schema, index, element.width() * dimensions as usize)?;
        let numpy = py.import("numpy")?;
        let array = |bytes: Vec<u8>, dtype: &str| {
            numpy.call_method1("frombuffer", (value::numbers(py, bytes.into(), "B")?, dtype))
        };
        let rows = array(rows, dtype(element))?.call_method1("reshape", (self.__len__(), dimensions))?;
        Ok((rows, array(there, "?")?))
    }

    /// The numbers of keys in each state, the version that was read, and the partitions that did not answer, as a
    /// `kith.Footer`.
    #[getter]
    fn footer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        footer(py, &self.0.records, &self.0.versions, &self.0.missing)
    }

    fn __repr__(&self) -> String {
        let counts = self.0.records.counts();
        format!(
            "<kith.Batch of store {:?}: {} found, {} absent, {} error, {} unanswered>",
            self.0.store, counts.found, counts.absent, counts.error, counts.unanswered
        )
    }
}
