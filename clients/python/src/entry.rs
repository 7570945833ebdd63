//! An entry: one key of a batch and its outcome.

use crate::answered::SharedAnswer;
use kith_operators::Record as State;
use pyo3::prelude::*;
use std::sync::Arc;

/// The state of one key, and its value or error.
#[pyclass(frozen, module = "kith")]
pub struct Entry {
    answered: Arc<SharedAnswer>,
    /// The index of the entry's record in the answer.
    position: usize,
}

impl Entry {
    /// Returns the entry of the record at index `position`.
    pub fn new(answered: Arc<SharedAnswer>, index: usize) -> Self {
        Self { answered, position: index }
    }
}

#[pymethods]
impl Entry {
    /// The key, as the caller gave it.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answered.key(py, self.position)
    }

    /// `FOUND`, `ABSENT`, `ERROR` or `UNANSWERED`.
    #[getter]
    fn state(&self) -> &'static str {
        match self.answered.state(self.position) {
            State::Found(_) | State::Unsent => "FOUND",
            State::Absent => "ABSENT",
            State::Error(_) => "ERROR",
            State::Unanswered => "UNANSWERED",
        }
    }

    /// Whether there is a value.
    #[getter]
    fn found(&self) -> bool {
        matches!(self.answered.state(self.position), State::Found(_))
    }

    /// The value, converted on each access; `None` if the key has no value.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answered.value(py, self.position)
    }

    /// The `kith.KithError` of a key that failed, which is returned and not raised; `None` for other keys.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match self.answered.state(self.position) {
            State::Error(error) => Some(self.answered.why(error).into_value(py).into_any()),
            _ => None,
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = self.answered.key(py, self.position)?.repr()?;
        Ok(format!("<kith.Entry {key} {}>", self.state()))
    }
}
