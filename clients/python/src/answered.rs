//! An answer to keys, from which Python's objects are made when they are asked for.

use crate::{error, keys::Keys, record::Record};
use kith_ops::{Record as State, RecordError, Records};
use kith_schema::{Schema, ValueType};
use pyo3::{IntoPyObjectExt, prelude::*, types::PyBytes};
use std::sync::Arc;

/// What the values of an answer are.
pub enum Values {
    /// Text, bytes or JSON; or records of which none was found, whose schema cannot be had.
    Plain(ValueType),
    /// Records, and the schema that they were written under.
    Records(Schema),
}

/// An answer as its batch and all entries of it share it.
pub struct Answered {
    pub store: String,
    pub keys: Arc<Keys>,
    pub values: Arc<Values>,
    pub records: Records,
    /// The key of each record, among the keys; `None`: the first key of the first record, and so on.
    pub positions: Option<Vec<u32>>,
    /// Which records are told of, in this order; `None`: all.
    pub order: Option<Vec<u32>>,
    pub versions: Vec<u64>,
    pub missing: Vec<u32>,
}

impl Answered {
    /// The record of the entry at `index`, which is below the number of entries.
    pub fn place(&self, index: usize) -> usize {
        self.order.as_ref().map_or(index, |order| order[index] as usize)
    }

    /// The key of a record, as it was given.
    pub fn key<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let key = self.positions.as_ref().map_or(place, |positions| positions[place] as usize);
        self.keys.at(py, key)
    }

    /// What became of the key of a record.
    pub fn state(&self, place: usize) -> State<'_> {
        self.records.get(place).unwrap_or(State::Unanswered)
    }

    /// The value of a record, converted on each call; `None` if the key has no record.
    pub fn value<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
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

    /// The error of a key that failed.
    pub fn why(&self, error: RecordError) -> PyErr {
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
