//! Converts single values to Python, and vectors from Python.

use bytes::Bytes;
use kith_schema::Scalar;
use pyo3::{
    IntoPyObjectExt,
    buffer::{Element, PyBuffer},
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyComplex, PyMemoryView},
};

/// Converts a value to Python. Timestamps become milliseconds since 1970, because `datetime` cannot represent all of them.
pub fn scalar<'py>(py: Python<'py>, value: Scalar<'_>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Scalar::Bool(value) => value.into_bound_py_any(py),
        Scalar::I32(value) => value.into_bound_py_any(py),
        Scalar::I64(value) | Scalar::Timestamp(value) => value.into_bound_py_any(py),
        Scalar::U64(value) => value.into_bound_py_any(py),
        Scalar::F32(value) => value.into_bound_py_any(py),
        Scalar::F64(value) => value.into_bound_py_any(py),
        Scalar::Text(value) => value.into_bound_py_any(py),
        Scalar::Bytes(value) => PyBytes::new(py, value).into_bound_py_any(py),
    }
}

/// Returns a read-only memoryview of `bytes` as numbers of a `struct` format. The view keeps the owner of the bytes alive.
pub fn numbers<'py>(py: Python<'py>, bytes: Bytes, format: &str) -> PyResult<Bound<'py, PyAny>> {
    let owner = Bound::new(py, pyo3_bytes::PyBytes::new(bytes))?;
    PyMemoryView::from(owner.as_any())?.call_method1("cast", (format,))
}

/// Returns the buffer of an array of `T` in the byte order of this machine; `None` for other objects.
pub fn native<T: Element>(given: &Bound<'_, PyAny>) -> Option<PyBuffer<T>> {
    let foreign = if cfg!(target_endian = "little") { &b">!"[..] } else { &b"<"[..] };
    let buffer = PyBuffer::<T>::get(given).ok()?;
    let is_foreign = buffer.format().to_bytes().first().is_some_and(|order| foreign.contains(order));
    (!is_foreign).then_some(buffer)
}

/// Converts a query vector, which is a one-dimensional array of floats or any sequence of numbers. Arrays of single
/// precision are copied without conversion.
///
/// # Errors
/// `TypeError` for other objects, `ValueError` for a finite number that single precision cannot represent.
pub fn vector(given: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let py = given.py();
    if let Some(buffer) = native::<f32>(given) {
        return one_dimension(buffer.dimensions()).and_then(|()| buffer.to_vec(py));
    }
    let doubles = match native::<f64>(given) {
        Some(buffer) => one_dimension(buffer.dimensions()).and_then(|()| buffer.to_vec(py))?,
        // Bytes are a sequence of numbers too, but are never meant as a vector.
        None if given.is_instance_of::<PyBytes>() => {
            return Err(PyTypeError::new_err(
                "a query must be numbers, not bytes; numpy.frombuffer converts bytes to an array",
            ));
        }
        None => numbers_one_by_one(given)?,
    };
    let single = |number: f64| match number as f32 {
        single if single.is_infinite() && number.is_finite() => {
            Err(PyValueError::new_err(format!("{number} is beyond single precision")))
        }
        single => Ok(single),
    };
    doubles.into_iter().map(single).collect()
}

fn numbers_one_by_one(given: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let unsuitable =
        |_| PyTypeError::new_err("a query must be an array of one dimension or a sequence of numbers");
    let items = given.extract::<Vec<Bound<'_, PyAny>>>().map_err(unsuitable)?;
    // This check comes first, because numpy converts a complex number to a float by dropping its imaginary part.
    if items.iter().any(is_complex) {
        return Err(PyTypeError::new_err("a query must be real numbers, not complex ones"));
    }
    items.iter().map(|item| item.extract().map_err(unsuitable)).collect()
}

/// Whether a number is a complex number of Python or of numpy.
fn is_complex(item: &Bound<'_, PyAny>) -> bool {
    let kind = || item.getattr("dtype")?.getattr("kind")?.extract::<char>();
    item.is_instance_of::<PyComplex>() || kind().is_ok_and(|kind| kind == 'c')
}

fn one_dimension(dimensions: usize) -> PyResult<()> {
    match dimensions {
        1 => Ok(()),
        _ => Err(PyTypeError::new_err(format!("a query must have one dimension, not {dimensions}"))),
    }
}
