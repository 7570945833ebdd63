//! The answer to a batch of keys. Its Python objects are made only when they are read.

use crate::{error, keys::Keys, record::Record};
use kith_operators::{Record as State, RecordError, Records};
use kith_schema::{Schema, ValueType};
use pyo3::{IntoPyObjectExt, prelude::*, types::PyBytes};
use std::sync::Arc;

/// The type of the values of an answer.
pub enum Values {
    /// Text, bytes or JSON. Also records if none was found and their schema is not available.
    Plain(ValueType),
    /// Records, with the schema under which they were written.
    Records(Schema),
}

/// An answer, which its batch and all entries of the batch share.
pub struct SharedAnswer {
    pub store: String,
    pub keys: Arc<Keys>,
    pub values: Arc<Values>,
    pub records: Records,
    /// The index of each record's key among the keys. `None` if the records are in the order of the keys.
    pub positions: Option<Vec<u32>>,
    /// The indexes of the records that have entries, in the order of the entries. `None` if all records have entries in
    /// their order.
    pub order: Option<Vec<u32>>,
    pub versions: Vec<u64>,
    pub missing: Vec<u32>,
}

impl SharedAnswer {
    /// Returns the index of the record of the entry at `index`.
    ///
    /// # Panics
    /// May panic if `index` is not below the number of entries.
    pub fn position(&self, index: usize) -> usize {
        self.order.as_ref().map_or(index, |order| order[index] as usize)
    }

    /// Returns the key of a record, as the caller gave it.
    pub fn key<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let key = self.positions.as_ref().map_or(index, |positions| positions[index] as usize);
        self.keys.at(py, key)
    }

    /// Returns the state of a record's key.
    pub fn state(&self, index: usize) -> State<'_> {
        self.records.get(index).unwrap_or(State::Unanswered)
    }

    /// Returns the value of a record, converted on each call; `None` if the key has no value.
    pub fn value<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(bytes) = self.records.value(index) else { return Ok(py.None().into_bound(py)) };
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

    /// Returns the exception for a key that failed.
    pub fn why(&self, error: RecordError) -> PyErr {
        let message = match error {
            RecordError::Damaged => "the record is damaged on every replica that could be asked".to_owned(),
            RecordError::Disagreeing => "replicas gave different answers about this key".to_owned(),
            RecordError::Unsuitable => "the requested computation does not fit the record".to_owned(),
            RecordError::Dimensions(fault) => {
                format!("the query has {} numbers, but the record's list has {}", fault.want, fault.got)
            }
        };
        let help = match error {
            RecordError::Damaged => "push the version again, or roll back the store",
            RecordError::Disagreeing => "`kith store verify --deep` shows which replica is wrong",
            RecordError::Unsuitable | RecordError::Dimensions(_) => "see docs/queries.md",
        };
        error::of(error.code(), &message, help)
    }
}
