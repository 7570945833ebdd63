//! Converts rows of Python, which are taken in batches, to the values that the builders take.

use kith_build::{ColumnValue, RowKey, RowValue};
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple},
};

/// A batch is passed on when it has this many rows.
pub const BATCH_ROWS: usize = 4_096;
/// A batch of a store is also passed on when its rows have this many bytes.
pub const BATCH_BYTES: usize = 1 << 20;

/// A key, a value of a store, or a value of a column.
pub enum Cell {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// An object that cannot be any of these, with its description for messages.
    Other(&'static str),
}

impl Cell {
    /// Converts a Python object.
    ///
    /// # Errors
    /// `UnicodeEncodeError` for text that is not valid Unicode.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self::Text(text.to_cow()?.into_owned()));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.as_bytes().to_vec()));
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Ok(Self::Bytes(bytes.to_vec()));
        }
        if let Ok(number) = object.cast::<PyFloat>() {
            return Ok(Self::Float(number.value()));
        }
        if object.is_instance_of::<PyBool>() {
            return Ok(Self::Other("false or true"));
        }
        // This includes the integers of numpy.
        Ok(match (object.extract::<u64>(), object.extract::<i64>()) {
            (Ok(number), _) => Self::Unsigned(number),
            (_, Ok(number)) => Self::Signed(number),
            _ if object.is_instance_of::<PyInt>() => Self::Other("a number of more than 64 bits"),
            _ if object.is_none() => Self::Other("null"),
            _ if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() => {
                Self::Other("a list")
            }
            _ if object.is_instance_of::<PyDict>() => Self::Other("an object"),
            _ => Self::Other("of a type that cannot be stored"),
        })
    }

    /// Returns the size of the text or bytes on the heap.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
    }

    pub fn key(&self) -> RowKey<'_> {
        match self {
            Self::Unsigned(id) => RowKey::Id(*id),
            Self::Text(text) => RowKey::Text(text),
            Self::Bytes(bytes) => RowKey::Bytes(bytes),
            Self::Signed(_) => RowKey::Other("a number below 0"),
            Self::Float(_) => RowKey::Other("a floating-point number"),
            Self::Other(kind) => RowKey::Other(kind),
        }
    }

    /// Converts the cell to a value of a store. With `is_json`, text is JSON.
    pub fn value(&self, is_json: bool) -> RowValue<'_> {
        match self {
            Self::Text(text) if is_json => RowValue::Json(text),
            Self::Text(text) => RowValue::Text(text),
            Self::Bytes(bytes) => RowValue::Bytes(bytes),
            Self::Unsigned(_) | Self::Signed(_) | Self::Float(_) => RowValue::Other("a number"),
            Self::Other(kind) => RowValue::Other(kind),
        }
    }

    /// Converts the cell to a value of a column.
    ///
    /// # Errors
    /// A description of the cell if it is not such a value.
    pub fn column(&self) -> Result<ColumnValue<'_>, &'static str> {
        match self {
            Self::Unsigned(number) => Ok(ColumnValue::Unsigned(*number)),
            Self::Signed(number) => Ok(ColumnValue::Signed(*number)),
            Self::Float(number) => Ok(ColumnValue::Float(*number)),
            Self::Text(text) => Ok(ColumnValue::Text(text)),
            Self::Bytes(_) => Err("bytes"),
            Self::Other(kind) => Err(kind),
        }
    }

    /// Converts the cell to the id of a member or entity.
    ///
    /// # Errors
    /// The reason why it is not an id, worded like the errors of files.
    pub fn id(&self) -> Result<u64, String> {
        match self {
            Self::Unsigned(id) => Ok(*id),
            Self::Signed(_) => Err("is negative".to_owned()),
            Self::Other("a number of more than 64 bits") => Err(format!("is not within 0 and {}", u64::MAX)),
            _ => Err("is not a whole number".to_owned()),
        }
    }
}

/// Calls `each` for the parts of a row, which is a tuple, a list or any other iterable.
///
/// # Errors
/// `TypeError` if the row is not iterable or is text or bytes, and the errors of `each`.
pub fn parts(
    row: &Bound<'_, PyAny>,
    mut each: impl FnMut(&Bound<'_, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(row) = row.cast::<PyTuple>() {
        return row.iter_borrowed().try_for_each(|part| each(&part));
    }
    if let Ok(row) = row.cast::<PyList>() {
        return row.iter().try_for_each(|part| each(&part));
    }
    if row.is_instance_of::<PyString>() || row.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("a row must be a tuple, not text"));
    }
    row.try_iter()?.try_for_each(|part| each(&part?))
}
