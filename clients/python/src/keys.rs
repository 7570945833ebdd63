//! Converts keys of Python: an iterable of ids, of `str` or of `bytes`, or an array of ids without Python objects.

use crate::{error::raised, value::native};
use kith_client::{ANSWER_BYTES_MAX, BATCH_KEYS_MAX, BatchKeys, QueryError};
use kith_types::ByteKeys;
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBool, PyBytes, PyInt, PyString},
};

/// A batch of keys, and whether they were given as text.
pub struct Keys {
    pub batch: BatchKeys,
    text: bool,
}

enum Key<'py> {
    Id(u64),
    Text(Bound<'py, PyString>),
    Bytes(Bound<'py, PyBytes>),
}

impl Keys {
    /// Converts the keys of any iterable.
    ///
    /// # Errors
    /// `TypeError` if a key has an unsupported type or keys have different types; `kith.KithError` if a batch cannot hold
    /// them all.
    pub fn of(keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err(
                "keys must be a list of keys, not a single key; use `get` to read one key",
            ));
        }
        if let Some(ids) = ids_of_array(keys)? {
            return Ok(Self { batch: BatchKeys::Ids(ids), text: false });
        }
        let mut found = Self { batch: BatchKeys::Ids(Vec::new()), text: false };
        for (index, key) in keys.try_iter()?.enumerate() {
            let key = key?;
            if BATCH_KEYS_MAX <= index {
                return Err(too_large("the number of keys", index + 1, BATCH_KEYS_MAX));
            }
            let taken = Key::of(&key).and_then(|key| found.push(key));
            if !taken? {
                let what = match is_out_of_range(&key) {
                    true => "a number out of range".to_owned(),
                    false => format!("of type {}", key.get_type().name()?),
                };
                let message = format!(
                    "key {index} is {what}: keys must be whole numbers from 0 to 2**64 - 1, str or bytes, all of one type"
                );
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(found)
    }

    /// Converts a single key.
    ///
    /// # Errors
    /// `TypeError` if it is not a key.
    pub fn one(key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut found = Self { batch: BatchKeys::Ids(Vec::new()), text: false };
        if Key::of(key).and_then(|key| found.push(key))? {
            return Ok(found);
        }
        let what = match is_out_of_range(key) {
            true => "one that is out of range".to_owned(),
            false => key.get_type().name()?.to_string(),
        };
        let message = format!("a key must be a whole number from 0 to 2**64 - 1, str or bytes, not {what}");
        Err(PyTypeError::new_err(message))
    }

    /// Adds a key. Returns false if `key` is `None` or has a different type than the keys before it.
    fn push(&mut self, key: Option<Key<'_>>) -> PyResult<bool> {
        if self.batch.is_empty() && !matches!(key, Some(Key::Id(_))) {
            self.batch = BatchKeys::Bytes(ByteKeys::default());
            self.text = matches!(key, Some(Key::Text(_)));
        }
        match (&mut self.batch, key) {
            (BatchKeys::Ids(ids), Some(Key::Id(id))) => ids.push(id),
            (BatchKeys::Bytes(keys), Some(Key::Text(text))) if self.text => {
                push_bytes(keys, text.to_cow()?.as_bytes())?;
            }
            (BatchKeys::Bytes(keys), Some(Key::Bytes(bytes))) if !self.text => {
                push_bytes(keys, bytes.as_bytes())?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the key at `index`, as the caller gave it.
    ///
    /// # Panics
    /// If `index` is not below the number of keys.
    pub fn at<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        match &self.batch {
            BatchKeys::Ids(ids) => ids[index].into_bound_py_any(py),
            BatchKeys::Bytes(keys) if self.text => {
                // The keys were given as text, so they are valid UTF-8.
                String::from_utf8_lossy(keys.get(index)).into_bound_py_any(py)
            }
            BatchKeys::Bytes(keys) => PyBytes::new(py, keys.get(index)).into_bound_py_any(py),
        }
    }
}

impl<'py> Key<'py> {
    fn of(key: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(text) = key.cast::<PyString>() {
            return Ok(Some(Key::Text(text.clone())));
        }
        if let Ok(bytes) = key.cast::<PyBytes>() {
            return Ok(Some(Key::Bytes(bytes.clone())));
        }
        // A `bool` is a number in Python, but as a key it is a mistake.
        if key.is_instance_of::<PyBool>() {
            return Ok(None);
        }
        // The caller reports numbers out of range and objects that are not numbers, with their index.
        Ok(key.extract::<u64>().ok().map(Key::Id))
    }
}

fn is_out_of_range(key: &Bound<'_, PyAny>) -> bool {
    key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>() && key.extract::<u64>().is_err()
}

fn push_bytes(keys: &mut ByteKeys, key: &[u8]) -> PyResult<()> {
    let bytes = keys.byte_count() + key.len();
    if ANSWER_BYTES_MAX < bytes {
        return Err(too_large("the length of all keys in bytes", bytes, ANSWER_BYTES_MAX));
    }
    keys.push(key);
    Ok(())
}

fn too_large(what: &'static str, got: usize, max: usize) -> PyErr {
    raised(&QueryError::BatchTooLarge { what, got: got as u64, max: max as u64 })
}

/// Returns the ids of a one-dimensional array; `None` if `keys` is not an array of 64-bit integers in the byte order of this
/// machine.
///
/// # Errors
/// `TypeError` if the array has several dimensions or an id is negative.
fn ids_of_array(keys: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u64>>> {
    let py = keys.py();
    if let Some(buffer) = native::<u64>(keys) {
        return one_dimension(buffer.dimensions()).and_then(|()| buffer.to_vec(py)).map(Some);
    }
    let Some(buffer) = native::<i64>(keys) else { return Ok(None) };
    one_dimension(buffer.dimensions())?;
    let ids = buffer.to_vec(py)?.into_iter().map(u64::try_from).collect::<Result<_, _>>();
    ids.map(Some).map_err(|_| PyTypeError::new_err("keys must be whole numbers from 0 to 2**64 - 1"))
}

fn one_dimension(dimensions: usize) -> PyResult<()> {
    match dimensions {
        1 => Ok(()),
        _ => Err(PyTypeError::new_err(format!("keys must be an array of one dimension, not {dimensions}"))),
    }
}
