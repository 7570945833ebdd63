//! Queries of a graph, and their answers as plain Python values.

use crate::{fields::Fields, live, options::wrong};
use kith_query::{
    CommonAnswer, CommonPlan, CommonQuery, ConnectionsQuery, DegreeQuery, DistanceQuery, EdgesAnswer,
    EdgesQuery, EntitiesQuery, GraphAnswer, GraphQuery, MembersQuery, NetworkAnswer, NetworkQuery,
    NetworkReturn, Operation, PathQuery, SuggestQuery, Want,
};
use kith_schema::ColumnNumber;
use kith_types::{Direction, Workflow};
use pyo3::{IntoPyObjectExt, exceptions::PyTypeError, prelude::*, types::PyDict};

/// Makes a query from the name and the fields of an operation, which `docs/queries.md` describes.
///
/// # Errors
/// `TypeError` or `ValueError` if the operation is unknown or a field is missing or invalid.
pub fn query(op: &str, fields: &Bound<'_, PyDict>, workflow: Workflow) -> PyResult<GraphQuery> {
    let fields = Fields(fields);
    let want = || match fields.or("return", "ids".to_owned())?.as_str() {
        "ids" => Ok(Want::Ids),
        "size" => Ok(Want::Size),
        "exists" => Ok(Want::Exists),
        other => Err(wrong("return", other, "ids, size or exists")),
    };
    let operation = match op {
        "connections" => Operation::Connections(ConnectionsQuery { id: fields.must("id")? }),
        "entities" => {
            Operation::Entities(EntitiesQuery { id: fields.must("id")?, kind: fields.must("kind")? })
        }
        "members" => {
            Operation::Members(MembersQuery { kind: fields.must("kind")?, entity: fields.must("entity")? })
        }
        "degree" => {
            Operation::Degree(DegreeQuery { ids: fields.must("ids")?, filter: fields.filter("filter")? })
        }
        "edges" => Operation::Edges(EdgesQuery {
            id: fields.must("id")?,
            columns: fields.may("columns")?,
            order_by: fields.may("order_by")?,
            descending: fields.or("descending", false)?,
            filter: fields.filter("filter")?,
            limit: fields.may("limit")?,
            after: fields.cursor("after")?,
        }),
        "network" => {
            let returns = match want()? {
                Want::Ids => NetworkReturn::Ids,
                Want::Size | Want::Exists => NetworkReturn::Size,
            };
            Operation::Network(NetworkQuery { id: fields.must("id")?, returns })
        }
        "distance" => Operation::Distance(DistanceQuery { from: fields.must("id")?, to: fields.must("to")? }),
        "path" => Operation::Path(PathQuery {
            from: fields.must("id")?,
            to: fields.must("to")?,
            max: fields.or("max", 6)?,
        }),
        "common" => Operation::Common(CommonQuery {
            id: fields.must("id")?,
            to: fields.must("to")?,
            kind: fields.may("kind")?,
            returns: want()?,
            plan: CommonPlan::Auto,
        }),
        "suggest" => Operation::Suggest(SuggestQuery { id: fields.must("id")?, k: fields.or("k", 20)? }),
        _ => live::operation(op, &fields)?
            .ok_or_else(|| PyTypeError::new_err(format!("there is no operation {op:?}")))?,
    };
    let direction = match fields.may::<String>("direction")?.as_deref() {
        None => None,
        Some("out") => Some(Direction::Out),
        Some("in") => Some(Direction::In),
        Some("both") => Some(Direction::Both),
        Some(other) => return Err(wrong("direction", other, "out, in or both")),
    };
    Ok(GraphQuery { operation, edge_type: fields.may("edge_type")?, direction, workflow })
}

/// Converts an answer to plain Python values: lists, numbers and dictionaries.
pub fn answer(py: Python<'_>, answer: GraphAnswer) -> PyResult<Py<PyAny>> {
    match answer {
        GraphAnswer::Ids(ids) | GraphAnswer::Common(CommonAnswer::Ids(ids)) => ids.into_py_any(py),
        GraphAnswer::Common(CommonAnswer::Size(size)) => size.into_py_any(py),
        GraphAnswer::Common(CommonAnswer::Exists(exists)) => exists.into_py_any(py),
        GraphAnswer::Distances(distances) => {
            distances.into_iter().map(|far| far.map(u32::from)).collect::<Vec<_>>().into_py_any(py)
        }
        GraphAnswer::Degrees(degrees) => degrees.into_py_any(py),
        GraphAnswer::Edges(answer) => edges(py, &answer),
        GraphAnswer::Object(object) => live::object(py, object),
        GraphAnswer::Objects(objects) => live::objects(py, objects),
        GraphAnswer::AssociationCount(count) => count.into_py_any(py),
        GraphAnswer::Associations(answer) => live::associations(py, answer),
        GraphAnswer::Path(path) => path.members.into_py_any(py),
        GraphAnswer::Suggestions(suggestions) => suggestions.into_py_any(py),
        GraphAnswer::Network(answer) => network(py, &answer),
    }
}

fn edges(py: Python<'_>, answer: &EdgesAnswer) -> PyResult<Py<PyAny>> {
    let edges = answer.ids.iter().enumerate().map(|(index, id)| {
        let edge = PyDict::new(py);
        edge.set_item("id", id)?;
        for column in &answer.columns {
            match column.numbers[index] {
                ColumnNumber::U64(number) => edge.set_item(&column.name, number)?,
                ColumnNumber::I64(number) => edge.set_item(&column.name, number)?,
                ColumnNumber::F64(number) => edge.set_item(&column.name, number)?,
            }
        }
        Ok(edge)
    });
    let page = PyDict::new(py);
    page.set_item("edges", edges.collect::<PyResult<Vec<_>>>()?)?;
    page.set_item("after", answer.after.map(|cursor| cursor.to_string()))?;
    page.into_py_any(py)
}

fn network(py: Python<'_>, answer: &NetworkAnswer) -> PyResult<Py<PyAny>> {
    let dict = PyDict::new(py);
    dict.set_item("id", answer.id)?;
    dict.set_item("degree", answer.sizes.first)?;
    dict.set_item("n2", answer.sizes.second)?;
    dict.set_item("net", answer.sizes.network())?;
    dict.set_item("fof", answer.sizes.union)?;
    if let Some(network) = &answer.network {
        dict.set_item("first", network.first())?;
        dict.set_item("second", network.second().collect::<Vec<_>>())?;
    }
    dict.into_py_any(py)
}
