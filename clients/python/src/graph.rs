//! Queries of graphs. Which operations there are, their fields and their answers follow from the registry of operations.

use crate::{
    from_python,
    options::{NAMES, options, wrong},
    to_python::ToPython,
};
use kith_client::{QueryError, QueryOptions};
use kith_query::{
    AnswerPage, AnswerView, GraphAnswer, GraphQuery, Operation, Page, PageStart, Parameter, Signature,
};
use kith_types::Direction;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString},
};
use serde::Serialize;
use std::sync::LazyLock;

/// The arguments that every query of a graph takes.
const EDGES: [&str; 2] = ["edge_type", "direction"];

static SIGNATURES: LazyLock<Vec<Signature>> = LazyLock::new(Operation::signatures);

/// An operation for Python: its name, its description, and its parameters. A parameter is a name, whether it is required, and
/// its default.
type Described<'py> = (&'static str, &'static str, Vec<(&'static str, bool, Option<Bound<'py, PyAny>>)>);

/// Describes the operations of graphs.
#[pyo3::pyfunction]
pub fn operations(py: Python<'_>) -> PyResult<Vec<Described<'_>>> {
    let parameter = |Parameter { name, is_required, default, .. }: &'static Parameter| {
        let default = default.as_ref().map(|default| default.serialize(ToPython(py))).transpose()?;
        Ok((*name, *is_required, default))
    };
    let described = |signature: &'static Signature| {
        let parameters = signature.parameters.iter().map(parameter).collect::<PyResult<_>>()?;
        Ok((signature.operation.name(), signature.about, parameters))
    };
    SIGNATURES.iter().map(described).collect()
}

/// Makes a query and its options from the name of an operation and its arguments, which `docs/queries.md` describes.
/// Arguments that are `None` count as not given. `given` has options only. An option among the arguments replaces it, even
/// with `None`.
///
/// # Errors
/// `TypeError` or `ValueError` if the operation, an argument or an option is unknown, or one of them is missing or invalid.
pub fn query(
    op: &str,
    arguments: &Bound<'_, PyDict>,
    given: &Bound<'_, PyDict>,
) -> PyResult<(GraphQuery, QueryOptions)> {
    let signature = SIGNATURES.iter().find(|signature| signature.operation.name() == op);
    let signature = signature.ok_or_else(|| PyTypeError::new_err(format!("there is no operation {op:?}")))?;
    let fields = PyDict::new(given.py());
    let read = given.copy()?;
    let (mut page, mut edge_type, mut direction) = (AnswerPage::default(), None, None);
    for (name, value) in arguments {
        let name: String = name.extract()?;
        let within = |why: PyErr| PyTypeError::new_err(format!("{name}: {why}"));
        let is_field = signature.parameters.iter().any(|it| it.name == name && !it.is_page);
        match name.as_str() {
            name if is_field => fields.set_item(name, value)?,
            name if NAMES.contains(&name) => read.set_item(name, value)?,
            _ if value.is_none() => {}
            "limit" => page.limit = Some(value.extract().map_err(within)?),
            "after" => page.after = Some(after(&value)?),
            "edge_type" => edge_type = Some(value.extract().map_err(within)?),
            "direction" => direction = Some(direction_of(&value.extract::<String>().map_err(within)?)?),
            name => return Err(unknown(signature, name)),
        }
    }
    let mut operation = from_python::operation(op, &fields)?;
    let mut options = options(Some(&read))?;
    operation.check_page(&page).map_err(|why| PyTypeError::new_err(why.replace('`', "")))?;
    match operation.page() {
        Some(_) => operation.set_page(page),
        None => options.page = Page { after: page.id(), limit: page.limit },
    }
    Ok((GraphQuery { operation, edge_type, direction, workflow: options.workflow }, options))
}

fn unknown(signature: &Signature, name: &str) -> PyErr {
    let own = signature.parameters.iter().map(|it| it.name).chain(EDGES).collect::<Vec<_>>().join(", ");
    let op = signature.operation.name();
    let options = NAMES.join(", ");
    PyTypeError::new_err(format!("{op} has no argument {name:?}; arguments: {own}; options: {options}"))
}

/// The end of the previous page.
fn after(value: &Bound<'_, PyAny>) -> PyResult<PageStart> {
    from_python::value(value).map_err(|why| match value.is_instance_of::<PyString>() {
        true => PyValueError::new_err(why.value(value.py()).to_string()),
        false => PyTypeError::new_err(format!("after: {}", why.value(value.py()))),
    })
}

fn direction_of(word: &str) -> PyResult<Direction> {
    match word {
        "out" => Ok(Direction::Out),
        "in" => Ok(Direction::In),
        "both" => Ok(Direction::Both),
        other => Err(wrong("direction", other, "out, in or both")),
    }
}

/// Prepares an answer for Python: the object that is its JSON too.
///
/// # Errors
/// If the answer is of another kind than the operation's.
pub fn view(operation: &Operation, answer: GraphAnswer) -> Result<AnswerView, QueryError> {
    operation.view(answer).map_err(|error| QueryError::Internal { detail: error.to_string() })
}
