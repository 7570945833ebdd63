//! From bytecode to plans.

use super::{
    Kind, Label, Plan, Step, Traversal,
    arguments::refuse_lambdas,
    calls::{Call, group},
    connectives, names, with,
};
use crate::{
    bytecode::{Bytecode, Instruction},
    error::{GremlinError, Result},
};
use std::{borrow::Cow, sync::Arc};

/// Turns a traversal into a plan.
///
/// # Errors
/// A step is unknown or not supported, or an argument is wrong. The message names it.
pub fn compile(bytecode: &Bytecode) -> Result<Plan> {
    let source = with::compile(&bytecode.sources)?;
    let traversal = steps(&connectives::nested(&bytecode.steps, true))?;
    Plan::new(source, traversal)
}

/// Compiles a nested traversal.
pub(super) fn anonymous(bytecode: &Bytecode) -> Result<Traversal> {
    steps(&instructions(bytecode)?)
}

/// The instructions of a nested traversal.
pub(super) fn instructions(bytecode: &Bytecode) -> Result<Cow<'_, [Instruction]>> {
    if let Some(instruction) = bytecode.sources.first() {
        let name = &instruction.name;
        return Err(GremlinError::bad(format!(
            "{name}() belongs to the source of a traversal, not into a nested one"
        )));
    }
    Ok(connectives::nested(&bytecode.steps, false))
}

/// Compiles instructions in which no `and()` or `or()` stands between steps.
pub(super) fn steps(instructions: &[Instruction]) -> Result<Traversal> {
    let mut steps: Vec<Arc<Step>> = Vec::with_capacity(instructions.len());
    instructions.iter().try_for_each(refuse_lambdas)?;
    for call in group(instructions)? {
        let mut kinds = kinds(&call)?;
        let last = kinds.pop();
        let step = |kind, labels| Arc::new(Step { kind, labels, instruction: call.instruction.clone() });
        steps.extend(kinds.into_iter().map(|kind| step(kind, Vec::new())));
        steps.extend(last.map(|kind| step(kind, call.labels.clone())));
    }
    Ok(steps.into())
}

/// Compiles the calls of some steps. `None` for all others.
type Family = fn(&Call<'_>) -> Result<Option<Vec<Kind>>>;

/// The steps of a call: one, or several for a call that stands for several, such as `has` with a label and a key.
fn kinds(call: &Call<'_>) -> Result<Vec<Kind>> {
    let families: [Family; 7] = [
        super::elements::compile,
        super::filters::compile,
        super::maps::compile,
        super::branches::compile,
        super::side_effects::compile,
        super::functions::compile,
        super::changes::compile,
    ];
    for family in families {
        if let Some(kinds) = family(call)? {
            return Ok(kinds);
        }
    }
    Err(names::unknown(call.name()))
}

/// A traversal of these kinds of steps, for what one step stands for.
pub(super) fn traversal(kinds: Vec<Kind>) -> Traversal {
    let step = |kind| {
        let instruction = Instruction::new(Label::from(""), Vec::new());
        Arc::new(Step { kind, labels: Vec::new(), instruction })
    };
    kinds.into_iter().map(step).collect()
}
