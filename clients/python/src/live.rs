//! Reads and writes of live graphs, and their answers as plain Python values.

use crate::fields::Fields;
use kith_client::Written;
use kith_live::{Conditions, ListPlace, ListedAssociation, Mutation, NotAWriteId, ObjectAnswer, Write};
use kith_query::{
    AssocCountQuery, AssocGetQuery, AssocRangeQuery, AssocTimeRangeQuery, AssociationsAnswer,
    ObjectFindQuery, ObjectGetQuery, Operation,
};
use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
};

/// Makes the query of an operation that only live graphs answer; `None` for other operations.
///
/// # Errors
/// `TypeError` or `ValueError` if a field is missing or invalid.
pub fn operation(op: &str, fields: &Fields<'_, '_>) -> PyResult<Option<Operation>> {
    let (id1, kind) = (|| fields.must("id1"), || fields.must("type"));
    let (high, low) = (|| fields.may("high"), || fields.may("low"));
    let (with_data, with_versions) = (|| fields.or("with_data", false), || fields.or("with_versions", false));
    Ok(Some(match op {
        "object_get" => Operation::ObjectGet(match fields.may("id")? {
            Some(id) => ObjectGetQuery::one(id),
            None => ObjectGetQuery::many(fields.must("ids")?),
        }),
        "object_find" => Operation::ObjectFind(ObjectFindQuery {
            kind: kind()?,
            field: fields.must("field")?,
            values: fields.must("values")?,
            after: fields.may("after")?,
            limit: fields.may("limit")?,
        }),
        "assoc_get" => Operation::AssocGet(AssocGetQuery {
            id1: id1()?,
            kind: kind()?,
            ids: fields.must("ids")?,
            high: high()?,
            low: low()?,
            with_data: with_data()?,
            with_versions: with_versions()?,
        }),
        "assoc_count" => Operation::AssocCount(AssocCountQuery { id1: id1()?, kind: kind()? }),
        "assoc_range" => {
            let (pos, after) = start(fields)?;
            Operation::AssocRange(AssocRangeQuery {
                id1: id1()?,
                kind: kind()?,
                pos,
                with_data: with_data()?,
                with_versions: with_versions()?,
                limit: fields.may("limit")?,
                after,
            })
        }
        "assoc_time_range" => Operation::AssocTimeRange(AssocTimeRangeQuery {
            id1: id1()?,
            kind: kind()?,
            high: high()?,
            low: low()?,
            with_data: with_data()?,
            with_versions: with_versions()?,
            limit: fields.may("limit")?,
        }),
        _ => return Ok(None),
    }))
}

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
pub fn written(py: Python<'_>, written: &Written, is_new_object: bool) -> PyResult<Py<PyAny>> {
    let dict = PyDict::new(py);
    match is_new_object {
        true => dict.set_item("id", written.done.id)?,
        false => dict.set_item("existed", written.done.existed)?,
    }
    dict.set_item("version", written.done.version)?;
    dict.set_item("ticket", written.ticket.to_string())?;
    dict.into_py_any(py)
}

fn start(fields: &Fields<'_, '_>) -> PyResult<(Option<u64>, Option<ListPlace>)> {
    match (fields.may("pos")?, fields.may::<(u64, u64)>("after")?) {
        (Some(_), Some(_)) => Err(PyTypeError::new_err("give pos or after, not both")),
        (pos, after) => Ok((pos, after.map(|(time, id2)| ListPlace { time, id2 }))),
    }
}

/// Converts an object to a dictionary; `None` if it does not exist.
pub fn object(py: Python<'_>, object: Option<ObjectAnswer>) -> PyResult<Py<PyAny>> {
    let Some(object) = object else { return Ok(py.None()) };
    let dict = PyDict::new(py);
    dict.set_item("id", object.id)?;
    dict.set_item("type", object.kind)?;
    dict.set_item("version", object.version)?;
    dict.set_item("data", data(py, &object.data)?)?;
    dict.into_py_any(py)
}

/// Converts objects to a list of dictionaries, with `None` for objects that do not exist.
pub fn objects(py: Python<'_>, objects: Vec<Option<ObjectAnswer>>) -> PyResult<Py<PyAny>> {
    let objects = objects.into_iter().map(|it| object(py, it));
    objects.collect::<PyResult<Vec<_>>>()?.into_py_any(py)
}

/// Converts associations to a list of tuples. An answer that is a page becomes a dictionary with `out` and `more`.
pub fn associations(py: Python<'_>, answer: AssociationsAnswer) -> PyResult<Py<PyAny>> {
    let association = |ListedAssociation { id2, time, data: fields, version }| {
        let fields = fields.map(|fields| data(py, &fields)).transpose()?;
        match (fields, version) {
            (None, None) => PyTuple::new(py, [id2, time])?.into_py_any(py),
            (Some(fields), None) => (id2, time, fields).into_py_any(py),
            (None, Some(version)) => PyTuple::new(py, [id2, time, version])?.into_py_any(py),
            (Some(fields), Some(version)) => (id2, time, fields, version).into_py_any(py),
        }
    };
    let out = answer.out.into_iter().map(association).collect::<PyResult<Vec<_>>>()?;
    let Some(more) = answer.more else { return out.into_py_any(py) };
    let page = PyDict::new(py);
    page.set_item("out", out)?;
    page.set_item("more", more)?;
    page.into_py_any(py)
}

/// Converts the fields of an object or association to a dictionary.
fn data<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?
        .call_method1("loads", (text,))
        .map_err(|why| PyValueError::new_err(format!("the cluster sent fields that are not JSON: {why}")))
}
