//! What became of each key of a batch, in the order of the keys, or best first.

use crate::{
    error,
    keys::Keys,
    record::{Record, dtype},
    value,
};
use kith_client::{BatchAnswer, BatchPiece};
use kith_ops::{Record as State, RecordError, Records};
use kith_schema::{FieldType, RecordView, Schema, ValueType};
use kith_types::ErrorCode;
use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyIndexError, PyTypeError},
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};
use std::sync::Arc;

/// What the values of an answer are.
pub enum Values {
    /// Text, bytes or JSON; or records of which none was found, whose schema cannot be had.
    Plain(ValueType),
    /// Records, and the schema that they were written under.
    Records(Schema),
}

struct Inner {
    store: String,
    keys: Arc<Keys>,
    values: Arc<Values>,
    records: Records,
    /// The key of each record, among the keys; `None`: the first key of the first record, and so on.
    positions: Option<Vec<u32>>,
    /// Which records are told of, in this order; `None`: all.
    order: Option<Vec<u32>>,
    versions: Vec<u64>,
    missing: Vec<u32>,
}

/// A sequence of entries. It shares the nodes' answers with its entries and their records.
#[pyclass(frozen, sequence, module = "kith")]
pub struct Batch(Arc<Inner>);

/// What became of one key.
#[pyclass(frozen, module = "kith")]
pub struct Entry {
    batch: Arc<Inner>,
    /// Among the records.
    place: usize,
}

impl Batch {
    /// The answer to `keys`.
    pub fn new(
        store: String,
        keys: Keys,
        values: Values,
        answer: BatchAnswer,
        best: Option<Vec<u32>>,
    ) -> Self {
        Self(Arc::new(Inner {
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

    /// Some of the answer to `keys`.
    pub fn piece(store: &str, keys: &Arc<Keys>, values: &Arc<Values>, piece: BatchPiece) -> Self {
        Self(Arc::new(Inner {
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
        (0..self.__len__()).map(|index| self.0.place(index))
    }
}

impl Inner {
    /// The record of the entry at `index`, which is below the number of entries.
    fn place(&self, index: usize) -> usize {
        self.order.as_ref().map_or(index, |order| order[index] as usize)
    }

    fn key<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let key = self.positions.as_ref().map_or(place, |positions| positions[place] as usize);
        self.keys.at(py, key)
    }

    fn state(&self, place: usize) -> State<'_> {
        self.records.get(place).unwrap_or(State::Unanswered)
    }

    fn value<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(bytes) = self.records.value(place) else { return Ok(py.None().into_bound(py)) };
        let text = || std::str::from_utf8(&bytes).map_err(|why| error::damaged(&self.store, why));
        match self.values.as_ref() {
            Values::Records(schema) => Record::new(&self.store, schema, bytes)?.into_bound_py_any(py),
            Values::Plain(ValueType::Text) => text()?.into_bound_py_any(py),
            Values::Plain(ValueType::Json) => py.import("json")?.call_method1("loads", (text()?,)),
            Values::Plain(ValueType::Bytes | ValueType::Record) => {
                PyBytes::new(py, &bytes).into_bound_py_any(py)
            }
        }
    }

    fn why(&self, error: RecordError) -> PyErr {
        let message = match error {
            RecordError::Damaged => "the record is damaged on every replica that could be asked".to_owned(),
            RecordError::Disagreeing => "replicas gave different answers about this key".to_owned(),
            RecordError::Unsuitable => "the record cannot be worked on as asked".to_owned(),
            RecordError::Dimensions(fault) => {
                format!("the query has {} numbers, the record's list {}", fault.want, fault.got)
            }
        };
        let help = match error {
            RecordError::Damaged => "push the version again, or roll back",
            RecordError::Disagreeing => "kith store verify --deep says which replica is wrong",
            RecordError::Unsuitable | RecordError::Dimensions(_) => "see docs/queries.md",
        };
        error::of(error.code(), &message, help)
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.0.order.as_ref().map_or(self.0.records.len(), Vec::len)
    }

    fn __getitem__(&self, index: usize) -> PyResult<Entry> {
        if self.__len__() <= index {
            return Err(PyIndexError::new_err(format!("there are {} entries", self.__len__())));
        }
        Ok(Entry { batch: Arc::clone(&self.0), place: self.0.place(index) })
    }

    /// The values in order, `None` where there is none.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for place in self.places() {
            list.append(self.0.value(py, place)?)?;
        }
        Ok(list)
    }

    /// Key → value of the keys that were found.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for place in self.places() {
            if let State::Found(_) = self.0.state(place) {
                dict.set_item(self.0.key(py, place)?, self.0.value(py, place)?)?;
            }
        }
        Ok(dict)
    }

    /// A vector field of all entries as one numpy array, a row each; rows of entries without the vector are zeros.
    /// The second array says which rows are there.
    fn numpy<'py>(&self, py: Python<'py>, field: &str) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let Values::Records(schema) = self.0.values.as_ref() else {
            return Err(match self.0.values.as_ref() {
                Values::Plain(ValueType::Record) => {
                    let help = "read again: the version may have gone meanwhile";
                    let told = "none of these records was found, nor the schema that says how long their vectors are";
                    error::of(ErrorCode::SchemaUnavailable, told, help)
                }
                _ => PyTypeError::new_err("only records have fields"),
            });
        };
        let found = schema.index_of(field).map(|index| (index, schema.fields()[index].field_type()));
        let Some((index, FieldType::Vector { element, dimensions })) = found else {
            return Err(PyTypeError::new_err(format!("field {field:?} of these records is no vector")));
        };
        let width = element.width() * dimensions as usize;
        let mut rows = Vec::with_capacity(width * self.__len__());
        let mut there = Vec::with_capacity(self.__len__());
        for place in self.places() {
            let start = rows.len();
            if let State::Found(bytes) = self.0.state(place) {
                let view = RecordView::new(schema, bytes).and_then(|view| view.at(index));
                let field = view.map_err(|why| error::damaged(&self.0.store, why))?;
                rows.extend_from_slice(
                    field.and_then(|field| field.as_vector()).map_or(&[][..], |vector| vector.bytes()),
                );
            }
            there.push(u8::from(start < rows.len()));
            rows.resize(start + width, 0);
        }
        let numpy = py.import("numpy")?;
        let array = |bytes: Vec<u8>, dtype: &str| {
            numpy.call_method1("frombuffer", (value::numbers(py, bytes.into(), "B")?, dtype))
        };
        let rows = array(rows, dtype(element))?.call_method1("reshape", (self.__len__(), dimensions))?;
        Ok((rows, array(there, "?")?))
    }

    /// How many keys ended how, which version answered, and whose partitions did not: `kith.Footer`.
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

#[pymethods]
impl Entry {
    /// The key as it was given.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.batch.key(py, self.place)
    }

    /// `FOUND`, `ABSENT`, `ERROR` or `UNANSWERED`.
    #[getter]
    fn state(&self) -> &'static str {
        match self.batch.state(self.place) {
            State::Found(_) | State::Unsent => "FOUND",
            State::Absent => "ABSENT",
            State::Error(_) => "ERROR",
            State::Unanswered => "UNANSWERED",
        }
    }

    /// Whether there is a value.
    #[getter]
    fn found(&self) -> bool {
        matches!(self.batch.state(self.place), State::Found(_))
    }

    /// The value, made anew each time it is asked for; `None` where there is none.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.batch.value(py, self.place)
    }

    /// Why there is no answer, of a key that failed: a `kith.KithError`, not raised.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match self.batch.state(self.place) {
            State::Error(error) => Some(self.batch.why(error).into_value(py).into_any()),
            _ => None,
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = self.batch.key(py, self.place)?.repr()?;
        Ok(format!("<kith.Entry {key} {}>", self.state()))
    }
}

/// A `kith.Footer`.
pub fn footer<'py>(
    py: Python<'py>,
    records: &Records,
    versions: &[u64],
    missing: &[u32],
) -> PyResult<Bound<'py, PyAny>> {
    let counts = records.counts();
    let counts = (counts.found, counts.absent, counts.error, counts.unanswered);
    let (versions, missing) = (versions.to_vec(), missing.to_vec());
    let class = py.import("kith.answers")?.getattr("Footer")?;
    class.call1((counts.0, counts.1, counts.2, counts.3, versions, missing))
}
