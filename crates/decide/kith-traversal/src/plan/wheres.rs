//! `where`, and the traversals that begin and end with labels.

use super::{
    Kind, Label, Step, Traversal, WhereFilter, WherePredicate, arguments::Arguments, calls::Call,
    modulators::all_by,
};
use crate::{
    bytecode::{Bytecode, Instruction},
    error::{GremlinError, Result},
    predicate::Predicate,
    semantics::Relation,
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
            Ok(Kind::Where(WhereFilter { start, predicate: self::predicate(predicate)?, by: all_by(call)? }))
        }
        Value::Traversal(bytecode) if start.is_none() => {
            arguments.end()?;
            call.allow(&[])?;
            Ok(Kind::Filter { traversal: condition(bytecode)?, is_negated: false })
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
        _ => WherePredicate::Compare {
            relation: Relation::new(&predicate.operator),
            labels: operands(predicate)?,
        },
    })
}

/// Compiles a traversal that is the condition of `where`. A label at its beginning (`as("a").out()`) means the value with this
/// label, and a label at its end (`out().as("b")`) wants the end to be the value with that label. The same holds for the
/// operands if it begins with `and`, `or` or `not`.
fn condition(bytecode: &Bytecode) -> Result<Traversal> {
    let instructions = super::connectives::instructions(bytecode)?;
    let mut rest = &*instructions;
    let mut steps = Vec::with_capacity(rest.len() + 1);
    if let Some((first, others)) = rest.split_first() {
        let start = match &*first.name {
            "as" => Some(Kind::WhereStart(label(first)?)),
            "and" | "or" | "not" => Some(connective(first)?),
            _ => None,
        };
        if let Some(kind) = start {
            steps.push(step(first, kind));
            rest = others;
        }
    }
    let mut end = None;
    if let Some((last, others)) = rest.split_last()
        && &*last.name == "as"
    {
        end = Some(step(last, Kind::WhereEnd(label(last)?)));
        rest = others;
    }
    steps.extend(super::steps(rest)?.iter().cloned());
    steps.extend(end);
    Ok(steps.into())
}

fn connective(instruction: &Instruction) -> Result<Kind> {
    let name = &instruction.name;
    let operand = |value: &Value| match value {
        Value::Traversal(bytecode) => condition(bytecode),
        other => Err(GremlinError::bad(format!(
            "{name}() needs traversals, not a value of type {}",
            other.type_name()
        ))),
    };
    let mut traversals = instruction.arguments.iter().map(operand).collect::<Result<Vec<_>>>()?;
    Ok(match (&**name, traversals.pop()) {
        ("not", Some(traversal)) if traversals.is_empty() => Kind::Filter { traversal, is_negated: true },
        ("not", _) => return Err(GremlinError::bad("not() needs one traversal")),
        (name, last) => {
            traversals.extend(last);
            Kind::Connective { traversals, is_and: name == "and" }
        }
    })
}

fn label(instruction: &Instruction) -> Result<Label> {
    match &instruction.arguments[..] {
        [Value::String(label)] => Ok(label.clone()),
        _ => Err(GremlinError::bad(
            "the first and the last step of the traversal in where() can only have one label each",
        )),
    }
}

fn step(instruction: &Instruction, kind: Kind) -> Arc<Step> {
    Arc::new(Step { kind, labels: Vec::new(), instruction: instruction.clone() })
}

/// The names of the comparisons of a predicate, with their operands as labels.
fn operands(predicate: &Predicate) -> Result<Vec<Label>> {
    let label = |value: Value| match value {
        Value::String(label) => Ok(label),
        other => Err(GremlinError::bad(format!(
            "where() compares with labels, which are strings, not with a value of type {}",
            other.type_name()
        ))),
    };
    super::arguments::flat(&predicate.operands).into_iter().map(label).collect()
}
