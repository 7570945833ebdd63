//! What a node does with a plan over a store of values.

use super::{LookupKeys, Room, aggregate, compute, lookup};
use crate::{EvaluateError, Operator, Value, ValueSource};
use kith_schema::Schema;
use kith_schema::compute::{Aggregation, Computation};

/// Evaluates `plan` over a node's share of the keys; `schema` is what the values are records of, if they are. Aggregates have no use for `room`.
/// With `proofs` every value that is looked up comes with its proof, as of [`lookup()`]; results of plans have none.
///
/// # Errors
/// As [`lookup()`]; [`EvaluateError::NotRecords`], [`EvaluateError::Plan`] and [`EvaluateError::Schema`] before anything is read;
/// [`EvaluateError::Mistyped`] of a plan over a graph.
pub fn evaluate_values(
    plan: &Operator,
    keys: LookupKeys<'_>,
    source: &dyn ValueSource,
    schema: Option<&Schema>,
    room: Room,
    proofs: bool,
    cancelled: &dyn Fn() -> bool,
) -> Result<Value, EvaluateError> {
    match plan {
        Operator::Lookup => lookup(keys, source, room, proofs, cancelled).map(Value::Records),
        Operator::Compute(plan) => {
            let schema = schema.ok_or(EvaluateError::NotRecords)?;
            let computation = Computation::new(plan, schema)?;
            let plan = computation.over(schema)?;
            compute(keys, source, &plan, room, cancelled).map(Value::Records)
        }
        Operator::Aggregate(plan) => {
            let schema = schema.ok_or(EvaluateError::NotRecords)?;
            let aggregation = Aggregation::new(plan, schema)?;
            aggregate(keys, source, &aggregation.over(schema)?, cancelled).map(Value::Groups)
        }
        other => Err(EvaluateError::Mistyped { operator: other.name(), got: "values" }),
    }
}
