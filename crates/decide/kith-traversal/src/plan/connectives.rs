//! `and()` and `or()` between steps: `a.or().b` means `or(a, b)`. `and()` binds tighter.

use crate::{
    bytecode::{Bytecode, Instruction},
    error::{GremlinError, Result},
    value::Value,
};
use std::{borrow::Cow, sync::Arc};

/// Instructions in which no `and()` or `or()` stands between steps. The steps that begin a whole traversal (`is_whole`) are no
/// operand: they return the traversers that the operands judge.
pub(super) fn nested(instructions: &[Instruction], is_whole: bool) -> Cow<'_, [Instruction]> {
    let Some(name) =
        ["or", "and"].into_iter().find(|name| instructions.iter().any(|it| is_between(it, name)))
    else {
        return Cow::Borrowed(instructions);
    };
    let (beginning, rest) = instructions.split_at(if is_whole { beginning(instructions) } else { 0 });
    let operand = |steps: &[Instruction]| {
        let steps = nested(steps, false).into_owned();
        Value::Traversal(Arc::new(Bytecode { sources: Vec::new(), steps }))
    };
    let operands = rest.split(|instruction| is_between(instruction, name)).map(operand).collect();
    let mut joined = beginning.to_vec();
    joined.push(Instruction::new(name, operands));
    Cow::Owned(joined)
}

fn is_between(instruction: &Instruction, name: &str) -> bool {
    &*instruction.name == name && instruction.arguments.is_empty()
}

/// The number of instructions that begin a traversal: the first step, if it reads elements or values, and its labels.
fn beginning(instructions: &[Instruction]) -> usize {
    match instructions.split_first() {
        Some((first, rest)) if matches!(&*first.name, "V" | "E" | "inject") => {
            1 + rest.iter().take_while(|instruction| &*instruction.name == "as").count()
        }
        _ => 0,
    }
}

/// The instructions of a nested traversal.
pub(super) fn instructions(bytecode: &Bytecode) -> Result<Cow<'_, [Instruction]>> {
    if let Some(instruction) = bytecode.sources.first() {
        let name = &instruction.name;
        return Err(GremlinError::bad(format!(
            "{name}() belongs to the source of a traversal, not into a nested one"
        )));
    }
    Ok(nested(&bytecode.steps, false))
}
