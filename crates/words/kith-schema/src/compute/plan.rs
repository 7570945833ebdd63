//! Plans as callers state them. They are unchecked.

use crate::Schema;
use strum::IntoStaticStr;

/// The most operators of a plan. It bounds the cost of one request per record.
pub const OPERATORS_MAX: usize = 128;

/// The most records of a `top_k`. No batch has more keys.
pub const TOP_K_MAX: u32 = 100_000;

/// The results wanted of each record. The result is a record too: the projected fields in the given order, followed by one
/// field per operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputePlan {
    /// The names of fields to return unchanged.
    pub project: Vec<String>,
    /// The values to compute.
    pub operators: Vec<ComputeOperator>,
    /// Restricts the result to the best records, best first.
    pub top_k: Option<TopK>,
    /// The schema of the caller, if it is not that of the version. Fields are matched by name and widened. A field that the
    /// version lacks gets its default in this schema, or null without one.
    pub reader: Option<Schema>,
}

/// One value to compute from one field.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeOperator {
    /// The name of the field of the result.
    pub name: String,
    /// The name of the field of the record.
    pub field: String,
    /// The function to apply.
    pub function: ComputeFunction,
}

/// A function of a field.
#[derive(Clone, Debug, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ComputeFunction {
    /// The dot product of a vector and a query, `f64`.
    Dot(Vec<f32>),
    /// The cosine of a vector and a query, `f64` from -1 to 1; null if either has a norm of zero.
    Cosine(Vec<f32>),
    /// The element-wise product of a vector and a query.
    Hadamard(Vec<f32>),
    /// The number of items of a list, map or vector, `u64`; 0 for null.
    Count,
}

/// Restricts the result to the best records by one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopK {
    /// A field of the result, or else of the record. A field of the record is then added to the result.
    pub by: String,
    /// The most records to return.
    pub k: u32,
}

impl ComputePlan {
    /// Creates an empty plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field that is returned unchanged.
    pub fn project(mut self, field: impl Into<String>) -> Self {
        self.project.push(field.into());
        self
    }

    /// Adds an operator. Without a name it is named `<function>_<field>`, such as `dot_embed`.
    pub fn operator(
        mut self,
        function: ComputeFunction,
        field: impl Into<String>,
        name: Option<String>,
    ) -> Self {
        let field = field.into();
        let name = name.unwrap_or_else(|| format!("{}_{field}", function.name()));
        self.operators.push(ComputeOperator { name, field, function });
        self
    }

    /// Restricts the result to the `k` records with the greatest `by`.
    pub fn top_k(mut self, by: impl Into<String>, k: u32) -> Self {
        self.top_k = Some(TopK { by: by.into(), k });
        self
    }
}

impl ComputeFunction {
    /// The name in requests and messages.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// The query vector, for functions that have one.
    pub fn query(&self) -> Option<&[f32]> {
        match self {
            ComputeFunction::Dot(query)
            | ComputeFunction::Cosine(query)
            | ComputeFunction::Hadamard(query) => Some(query),
            ComputeFunction::Count => None,
        }
    }
}
