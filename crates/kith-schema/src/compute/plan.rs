//! What is asked, as the asker states it. Nothing in it was checked yet.

use crate::Schema;
use strum::IntoStaticStr;

/// The most operators of a plan: a bound on what one request costs a node per record.
pub const OPERATORS_MAX: usize = 128;

/// The most records of a `top_k`: no batch has more keys.
pub const TOP_K_MAX: u32 = 100_000;

/// What is wanted of each record. The result is a record too: the projected fields in the order given, then one field
/// per operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputePlan {
    /// Names of fields to have as they are.
    pub project: Vec<String>,
    /// What to work out.
    pub operators: Vec<ComputeOperator>,
    /// Only the best records, best first.
    pub top_k: Option<TopK>,
    /// The schema by which fields are asked for, where it is not the version's own: fields go by name, are widened, and
    /// one that the version does not have is this schema's default, else null.
    pub reader: Option<Schema>,
}

/// One value to work out of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeOperator {
    /// The field of the result.
    pub name: String,
    /// The field of the record.
    pub field: String,
    /// What to work out.
    pub function: ComputeFunction,
}

/// What to work out of a field.
#[derive(Clone, Debug, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ComputeFunction {
    /// The dot product of a vector and a query, `f64`.
    Dot(Vec<f32>),
    /// Their cosine, `f64` from -1 to 1; null if either has a norm of zero.
    Cosine(Vec<f32>),
    /// Their products, element by element.
    Hadamard(Vec<f32>),
    /// How many items a list, map or vector has, `u64`; 0 of null.
    Count,
}

/// The best records by one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopK {
    /// A field of the result, or else of the record, which then is in the result too.
    pub by: String,
    /// How many, at most.
    pub k: u32,
}

impl ComputePlan {
    /// A plan with nothing in it yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, and a field as it is.
    pub fn project(mut self, field: impl Into<String>) -> Self {
        self.project.push(field.into());
        self
    }

    /// The same, and an operator. Without a name it is called `<function>_<field>`, as `dot_embed`.
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

    /// The same, of the `k` records with the greatest `by` alone.
    pub fn top_k(mut self, by: impl Into<String>, k: u32) -> Self {
        self.top_k = Some(TopK { by: by.into(), k });
        self
    }
}

impl ComputeFunction {
    /// The word in requests and messages.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// The query vector, of those that have one.
    pub fn query(&self) -> Option<&[f32]> {
        match self {
            ComputeFunction::Dot(query)
            | ComputeFunction::Cosine(query)
            | ComputeFunction::Hadamard(query) => Some(query),
            ComputeFunction::Count => None,
        }
    }
}
