//! `where`, and the traversals that begin and end with labels.

use super::{
    Kind, Label, Step, Traversal, Where, WherePredicate,
    arguments::Arguments,
    calls::Call,
    filters::{all_by, operands},
};
use crate::{
    error::{GremlinError, Result},
    predicate::Predicate,
    value::Value,
};
use std::sync::Arc;

pub(super) fn compile(call: &Call<'_>, mut arguments: Arguments<'_>) -> Result<Kind> {
    call.allow(&["by"])?;
    let start = match arguments.peek() {
        Some(Value::String(label)) => {
            arguments.next();
            Some(Label::clone(label))
        }
        _ => None,
    };
    match arguments.required("a predicate or a traversal")? {
        Value::Predicate(predicate) => {
            arguments.end()?;
            Ok(Kind::Where(Where { start, predicate: self::predicate(predicate)?, by: all_by(call)? }))
        }
        Value::Traversal(bytecode) if start.is_none() => {
            arguments.end()?;
            call.allow(&[])?;
            Ok(Kind::Filter { traversal: ends(super::compile::anonymous(bytecode)?), is_negated: false })
        }
        other => Err(GremlinError::bad(format!(
            "where() needs a predicate or a traversal, not a value of type {}",
            other.type_name()
        ))),
    }
}

fn predicate(predicate: &Predicate) -> Result<WherePredicate> {
    let nested = || {
        let operand = |operand: &Value| match operand {
            Value::Predicate(operand) => self::predicate(operand),
            other => Err(GremlinError::bad(format!(
                "a predicate is needed, not a value of type {}",
                other.type_name()
            ))),
        };
        predicate.operands.iter().map(operand).collect::<Result<Vec<_>>>()
    };
    Ok(match &*predicate.operator {
        "and" => WherePredicate::And(nested()?),
        "or" => WherePredicate::Or(nested()?),
        "not" => {
            let mut nested = nested()?;
            WherePredicate::Not(Box::new(
                nested.pop().ok_or_else(|| GremlinError::bad("not() needs a predicate"))?,
            ))
        }
        operator => WherePredicate::Compare { operator: operator.into(), labels: operands(predicate)? },
    })
}

/// In a traversal that is a condition, a label at the beginning (`as("a").out()`) means the value with this label, and a label
/// at the end (`out().as("b")`) wants the end to be the value with that label.
pub(super) fn ends(traversal: Traversal) -> Traversal {
    let steps: Vec<Arc<Step>> = traversal.iter().cloned().collect();
    let Some((first, rest)) = steps.split_first() else { return traversal };
    let mut changed = Vec::with_capacity(steps.len() + 1);
    let is_start = matches!(first.kind, Kind::Identity) && &*first.instruction.name == "as";
    let rest = match first.labels.first() {
        Some(label) if is_start => {
            changed.push(derived(first, Kind::WhereStart(label.clone())));
            rest
        }
        _ => &steps,
    };
    let Some((last, middle)) = rest.split_last() else { return changed.into() };
    changed.extend(middle.iter().cloned());
    changed.push(Arc::clone(last));
    if let Some(label) = last.labels.first() {
        changed.push(derived(last, Kind::WhereEnd(label.clone())));
    }
    changed.into()
}

fn derived(step: &Step, kind: Kind) -> Arc<Step> {
    Arc::new(Step { kind, labels: Vec::new(), instruction: step.instruction.clone() })
}
