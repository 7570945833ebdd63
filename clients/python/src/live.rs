//! Writes to live graphs, and their outcomes as plain Python values.

use crate::fields::Fields;
use kith_client::WriteOutcome;
use kith_live::{Conditions, Mutation, NotAWriteId, Write};
use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};

/// Makes a write from the name and the fields of an operation.
///
/// # Errors
/// `TypeError` or `ValueError` if the operation is unknown or a field is missing or invalid.
pub fn write(op: &str, fields: &Fields<'_, '_>) -> PyResult<Write> {
    let (id1, id2) = (|| fields.must("id1"), || fields.must("id2"));
    let kind = || fields.must("type");
    let mutation = match op {
        "object_add" => Mutation::AddObject {
            kind: kind()?,
            data: fields.may("data")?,
            id: fields.may("id")?,
            near: fields.may("near")?,
            text_id: None,
        },
        "object_update" => Mutation::UpdateObject { id: fields.must("id")?, data: fields.must("data")? },
        "object_delete" => Mutation::DeleteObject { id: fields.must("id")? },
        "assoc_add" => Mutation::AddAssociation {
            id1: id1()?,
            kind: kind()?,
            id2: id2()?,
            time: fields.may("time")?,
            data: fields.may("data")?,
        },
        "assoc_delete" => Mutation::DeleteAssociation { id1: id1()?, kind: kind()?, id2: id2()? },
        "assoc_change_type" => Mutation::ChangeType {
            id1: id1()?,
            kind: kind()?,
            id2: id2()?,
            new_kind: fields.must("new_type")?,
        },
        _ => return Err(PyTypeError::new_err(format!("there is no write operation {op:?}"))),
    };
    let write_id = fields.may::<String>("write_id")?.map(|text| text.parse()).transpose();
    Ok(Write {
        mutation,
        conditions: Conditions { if_version: fields.may("if_version")?, if_exists: fields.may("if_exists")? },
        write_id: write_id.map_err(|why: NotAWriteId| PyValueError::new_err(why.to_string()))?,
    })
}

/// Converts the outcome of a write to a dictionary with `version`, `ticket`, and `id` for a new object or `existed` for
/// other writes.
pub fn written(py: Python<'_>, written: &WriteOutcome, is_new_object: bool) -> PyResult<Py<PyAny>> {
    let dict = PyDict::new(py);
    match is_new_object {
        true => dict.set_item("id", written.done.id)?,
        false => dict.set_item("existed", written.done.existed)?,
    }
    dict.set_item("version", written.done.version)?;
    dict.set_item("ticket", written.ticket.to_string())?;
    dict.into_py_any(py)
}
