//! From bytecode to plans.

use super::{
    Kind, Step, Traversal, TraversalPlan,
    arguments::refuse_lambdas,
    calls::{Call, group},
    connectives, names, reads, with,
};
use crate::{
    bytecode::{Bytecode, Instruction},
    error::Result,
};
use std::sync::Arc;

/// Turns a traversal into a plan.
///
/// # Errors
/// A step is unknown or not supported, or an argument is wrong. The message names it.
pub fn compile(bytecode: &Bytecode) -> Result<TraversalPlan> {
    let source = with::compile(&bytecode.sources)?;
    let traversal = steps(&connectives::nested(&bytecode.steps, true))?;
    let mut plan = TraversalPlan::new(source, traversal)?;
    if let Some(bytecode) = reads::without_unread(bytecode, &plan.traversal) {
        plan.traversal = steps(&connectives::nested(&bytecode.steps, true))?;
    }
    Ok(super::rules::whole(plan))
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
    Ok(super::rules::everywhere(steps).into())
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
