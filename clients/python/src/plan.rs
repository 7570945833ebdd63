//! Plans of read compute, which `kith.Compute` builds, and plans of aggregation.

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
    /// Returns the query of the plan for the client library.
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

    /// Adds a field of the record to the result.
    fn project(&mut self, field: String) {
        self.plan.project.push(field);
    }

    /// Adds the value of `function` (`dot`, `cosine`, `hadamard` or `count`) for a field to the result.
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

    /// Restricts the result to the `k` records with the greatest `by`.
    ///
    /// # Errors
    /// `TypeError` if `k` is not a whole number, `ValueError` if it is out of range.
    fn top_k(&mut self, by: String, k: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = k.cast::<PyInt>().ok().filter(|_| !k.is_instance_of::<PyBool>());
        let count = number.ok_or_else(|| PyTypeError::new_err(format!("k is a whole number, not {k}")))?;
        let count = count
            .extract()
            .map_err(|_| PyValueError::new_err(format!("k is a whole number from 1 to {}", u32::MAX)))?;
        self.plan = std::mem::take(&mut self.plan).top_k(by, count);
        Ok(())
    }

    /// Returns a copy of the plan.
    fn copy(&self) -> Self {
        Self { plan: self.plan.clone(), at: self.at }
    }

    /// Reads records under this schema, which is given as text, instead of the schema of the version.
    fn reader(&mut self, schema: &str) -> PyResult<()> {
        self.plan.reader = Some(schema_of(schema)?);
        Ok(())
    }

    /// Sets where the values are computed: `nodes` or `client`.
    fn at(&mut self, path: &str) -> PyResult<()> {
        self.at = at(path)?;
        Ok(())
    }
}

/// Parses where the values are computed.
///
/// # Errors
/// `ValueError` for a word other than `nodes` and `client`.
fn at(path: &str) -> PyResult<ComputeAt> {
    match path {
        "nodes" => Ok(ComputeAt::Nodes),
        "client" => Ok(ComputeAt::Client),
        _ => Err(wrong("at", path, "nodes or client")),
    }
}

/// Returns a plan that counts the values of a field and returns the `top` most frequent ones.
pub fn by_value(field: String, top: u32) -> AggregatePlan {
    AggregatePlan { field, by: GroupBy::Value { top }, reader: None }
}

/// Returns a plan that counts the values of a field in each of `buckets`.
///
/// # Errors
/// The errors are those of [`predicate::buckets`].
pub fn by_bucket(field: String, buckets: &Bound<'_, PyDict>) -> PyResult<AggregatePlan> {
    Ok(AggregatePlan { field, by: GroupBy::Bucket(predicate::buckets(buckets)?), reader: None })
}

fn schema_of(text: &str) -> PyResult<Schema> {
    text.parse().map_err(|error| PyValueError::new_err(format!("this is not a schema: {error}")))
}
