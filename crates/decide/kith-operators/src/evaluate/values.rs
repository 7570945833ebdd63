//! Evaluates plans over a store of values on a node.

use crate::{BatchRead, EvaluateError, Operator, Value, aggregate, compute, lookup};
use kith_schema::compute::{Aggregation, Computation};
use kith_schema::{Schema, ValueSource};

/// Evaluates `plan` over the keys of `asked`, a node's share. `schema` is the schema of the values if they are records.
/// Aggregations ignore the room. Only looked-up values have proofs, as with [`lookup()`]; results of plans have none.
///
/// # Errors
/// Those of [`lookup()`]; [`EvaluateError::NotRecords`], [`EvaluateError::Plan`] and [`EvaluateError::Schema`] before
/// anything is read; [`EvaluateError::Mistyped`] for a plan over a graph.
pub fn evaluate_values(
    plan: &Operator,
    asked: &BatchRead<'_>,
    source: &dyn ValueSource,
    schema: Option<&Schema>,
    cancelled: &dyn Fn() -> bool,
) -> Result<Value, EvaluateError> {
    match plan {
        Operator::Lookup => lookup(asked, source, cancelled).map(Value::Records),
        Operator::Compute(plan) => {
            let schema = schema.ok_or(EvaluateError::NotRecords)?;
            let computation = Computation::new(plan, schema)?;
            let plan = computation.over(schema)?;
            compute(asked.keys, source, &plan, asked.room, cancelled).map(Value::Records)
        }
        Operator::Aggregate(plan) => {
            let schema = schema.ok_or(EvaluateError::NotRecords)?;
            let aggregation = Aggregation::new(plan, schema)?;
            aggregate(asked.keys, source, &aggregation.over(schema)?, cancelled).map(Value::Groups)
        }
        other => Err(EvaluateError::Mistyped { operator: other.name(), got: "values" }),
    }
}
