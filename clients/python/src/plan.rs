//! Plans of read compute, built by `kith.Compute`, and of aggregation.

use crate::{options::wrong, predicate, value};
use kith_client::{ComputeAt, ComputeQuery};
use kith_schema::{
    Schema,
    compute::{AggregatePlan, ComputeFunction, ComputePlan, GroupBy},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict, PyInt},
};

/// A plan of what to return for each record. It is checked against a store only when it is executed.
#[pyclass(module = "kith._kith")]
#[derive(Default)]
pub struct Plan {
    pub plan: ComputePlan,
    pub at: ComputeAt,
}

impl Plan {
    /// As the client library has it.
    pub fn query(&self) -> ComputeQuery {
        ComputeQuery { plan: self.plan.clone(), at: self.at }
    }
}

#[pymethods]
impl Plan {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds a field of the record.
    fn project(&mut self, field: String) {
        self.plan.project.push(field);
    }

    /// Adds the value of `function` (`dot`, `cosine`, `hadamard`, `count`) for a field.
    #[pyo3(signature = (function, field, query=None, name=None))]
    fn operator(
        &mut self,
        function: &str,
        field: String,
        query: Option<&Bound<'_, PyAny>>,
        name: Option<String>,
    ) -> PyResult<()> {
        let query = query.map(value::vector).transpose()?;
        let function = match (function, query) {
            ("dot", Some(query)) => ComputeFunction::Dot(query),
            ("cosine", Some(query)) => ComputeFunction::Cosine(query),
            ("hadamard", Some(query)) => ComputeFunction::Hadamard(query),
            ("count", None) => ComputeFunction::Count,
            (other, _) => {
                return Err(wrong("an operator", other, "dot, cosine or hadamard of a query, or count"));
            }
        };
        self.plan = std::mem::take(&mut self.plan).operator(function, field, name);
        Ok(())
    }

    /// Returns only the `k` records with the greatest `by`.
    ///
    /// # Errors
    /// `ValueError` if there cannot be so many.
    fn top_k(&mut self, by: String, k: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = k.cast::<PyInt>().ok().filter(|_| !k.is_instance_of::<PyBool>());
        let count = number.ok_or_else(|| PyTypeError::new_err(format!("k is a whole number, not {k}")))?;
        let count = count
            .extract()
            .map_err(|_| PyValueError::new_err(format!("k is a whole number from 1 to {}", u32::MAX)))?;
        self.plan = std::mem::take(&mut self.plan).top_k(by, count);
        Ok(())
    }

    /// A copy of the plan.
    fn copy(&self) -> Self {
        Self { plan: self.plan.clone(), at: self.at }
    }

    /// Reads records under this schema (its text) instead of the version's own.
    fn reader(&mut self, schema: &str) -> PyResult<()> {
        self.plan.reader = Some(schema_of(schema)?);
        Ok(())
    }

    /// Where to compute the values: `nodes` or `client`.
    fn at(&mut self, place: &str) -> PyResult<()> {
        self.at = at(place)?;
        Ok(())
    }
}

/// Where to compute the values.
///
/// # Errors
/// `ValueError` for another word.
fn at(place: &str) -> PyResult<ComputeAt> {
    match place {
        "nodes" => Ok(ComputeAt::Nodes),
        "client" => Ok(ComputeAt::Client),
        _ => Err(wrong("at", place, "nodes or client")),
    }
}

/// Counts the values of a field, and gives the `top` most frequent ones.
pub fn by_value(field: String, top: u32) -> AggregatePlan {
    AggregatePlan { field, by: GroupBy::Value { top }, reader: None }
}

/// Counts how many values of a field are in each of `buckets`.
///
/// # Errors
/// As [`predicate::buckets`].
pub fn by_bucket(field: String, buckets: &Bound<'_, PyDict>) -> PyResult<AggregatePlan> {
    Ok(AggregatePlan { field, by: GroupBy::Bucket(predicate::buckets(buckets)?), reader: None })
}

fn schema_of(text: &str) -> PyResult<Schema> {
    text.parse().map_err(|error| PyValueError::new_err(format!("this is no schema: {error}")))
}
