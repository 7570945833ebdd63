//! Single values on their way out, and vectors on their way in.

use bytes::Bytes;
use kith_schema::Scalar;
use pyo3::{
    IntoPyObjectExt,
    buffer::{Element, PyBuffer},
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyComplex, PyMemoryView},
};

/// A value as Python has it. Timestamps are milliseconds since 1970: they reach beyond `datetime`.
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

/// A read-only view of `bytes`, whose owner it keeps alive, as numbers of a `struct` format.
pub fn numbers<'py>(py: Python<'py>, bytes: Bytes, format: &str) -> PyResult<Bound<'py, PyAny>> {
    let owner = Bound::new(py, pyo3_bytes::PyBytes::new(bytes))?;
    PyMemoryView::from(owner.as_any())?.call_method1("cast", (format,))
}

/// An array of such numbers in the byte order of this machine; of others `None`, and a caller reads them one by one.
pub fn native<T: Element>(given: &Bound<'_, PyAny>) -> Option<PyBuffer<T>> {
    let foreign = if cfg!(target_endian = "little") { &b">!"[..] } else { &b"<"[..] };
    let buffer = PyBuffer::<T>::get(given).ok()?;
    let is_foreign = buffer.format().to_bytes().first().is_some_and(|order| foreign.contains(order));
    (!is_foreign).then_some(buffer)
}

/// The numbers of a query vector: an array of floats (of one dimension; single precision is taken as it is), or any sequence of numbers.
///
/// # Errors
/// `TypeError` if it is neither, `ValueError` for a finite number beyond single precision.
pub fn vector(given: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let py = given.py();
    if let Some(buffer) = native::<f32>(given) {
        return one_dimension(buffer.dimensions()).and_then(|()| buffer.to_vec(py));
    }
    let doubles = match native::<f64>(given) {
        Some(buffer) => one_dimension(buffer.dimensions()).and_then(|()| buffer.to_vec(py))?,
        // A sequence of numbers too, which is never meant.
        None if given.is_instance_of::<PyBytes>() => {
            return Err(PyTypeError::new_err(
                "a query is numbers, not bytes: numpy.frombuffer makes an array of them",
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
        |_| PyTypeError::new_err("a query is an array of one dimension, or a sequence of numbers");
    let items = given.extract::<Vec<Bound<'_, PyAny>>>().map_err(unsuitable)?;
    // Asked first: numpy makes a float of a complex number, and drops half of it with a warning.
    if items.iter().any(is_complex) {
        return Err(PyTypeError::new_err("a query is real numbers, and these are complex"));
    }
    items.iter().map(|item| item.extract().map_err(unsuitable)).collect()
}

/// Python's, or one of numpy's.
fn is_complex(item: &Bound<'_, PyAny>) -> bool {
    let kind = || item.getattr("dtype")?.getattr("kind")?.extract::<char>();
    item.is_instance_of::<PyComplex>() || kind().is_ok_and(|kind| kind == 'c')
}

fn one_dimension(dimensions: usize) -> PyResult<()> {
    match dimensions {
        1 => Ok(()),
        _ => Err(PyTypeError::new_err(format!("a query is an array of one dimension, not {dimensions}"))),
    }
}
