//! Reads of live graphs, and their answers as plain Python values.

use crate::graph::Fields;
use kith_live::{AssociationRead, ListPlace, ListedAssociation, ObjectAnswer, Select, Start};
use kith_ops::{AssociationsAnswer, Operand};
use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
};

/// The question of an operation that only live graphs answer; `None` if it is another operation.
///
/// # Errors
/// `TypeError` or `ValueError`, with what is wrong.
pub fn operand(op: &str, fields: &Fields<'_, '_>) -> PyResult<Option<Operand>> {
    let times = || Ok::<_, PyErr>((fields.may("high")?, fields.may("low")?));
    let select = match op {
        "object_get" => {
            return Ok(Some(match fields.may("id")? {
                Some(id) => Operand::Objects { ids: vec![id], is_single: true },
                None => Operand::Objects { ids: fields.must("ids")?, is_single: false },
            }));
        }
        "assoc_get" => {
            let (high, low) = times()?;
            Select::Ids { ids: fields.must("ids")?, high, low }
        }
        "assoc_count" => Select::Count,
        "assoc_range" => Select::Range { start: start(fields)?, limit: fields.may("limit")? },
        "assoc_time_range" => {
            let (high, low) = times()?;
            Select::Times { high, low, limit: fields.may("limit")? }
        }
        _ => return Ok(None),
    };
    let (kind, with_data) = (fields.must("type")?, fields.or("with_data", false)?);
    let read = AssociationRead { kind, select, with_data };
    Ok(Some(Operand::Associations { id1: fields.must("id1")?, read }))
}

fn start(fields: &Fields<'_, '_>) -> PyResult<Start> {
    match (fields.may("pos")?, fields.may::<(u64, u64)>("after")?) {
        (Some(_), Some(_)) => Err(PyTypeError::new_err("give pos or after, not both")),
        (pos, None) => Ok(Start::Index(pos.unwrap_or(0))),
        (None, Some((time, id2))) => Ok(Start::After(ListPlace { time, id2 })),
    }
}

/// An object as a dictionary; `None` if there is none.
pub fn object(py: Python<'_>, object: Option<ObjectAnswer>) -> PyResult<Py<PyAny>> {
    let Some(object) = object else { return Ok(py.None()) };
    let dict = PyDict::new(py);
    dict.set_item("id", object.id)?;
    dict.set_item("type", object.kind)?;
    dict.set_item("version", object.version)?;
    dict.set_item("data", data(py, &object.data)?)?;
    dict.into_py_any(py)
}

/// Objects as a list.
pub fn objects(py: Python<'_>, objects: Vec<Option<ObjectAnswer>>) -> PyResult<Py<PyAny>> {
    let objects = objects.into_iter().map(|it| object(py, it));
    objects.collect::<PyResult<Vec<_>>>()?.into_py_any(py)
}

/// Associations as a list of tuples; of answers that have pages, a dictionary with `out` and `more`.
pub fn associations(py: Python<'_>, answer: AssociationsAnswer) -> PyResult<Py<PyAny>> {
    let association = |ListedAssociation { id2, time, data: fields }| match fields {
        None => PyTuple::new(py, [id2, time])?.into_py_any(py),
        Some(fields) => (id2, time, data(py, &fields)?).into_py_any(py),
    };
    let out = answer.out.into_iter().map(association).collect::<PyResult<Vec<_>>>()?;
    let Some(more) = answer.more else { return out.into_py_any(py) };
    let page = PyDict::new(py);
    page.set_item("out", out)?;
    page.set_item("more", more)?;
    page.into_py_any(py)
}

/// The fields of an object or association as a dictionary.
fn data<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?
        .call_method1("loads", (text,))
        .map_err(|why| PyValueError::new_err(format!("the cluster sent fields that are not JSON: {why}")))
}
