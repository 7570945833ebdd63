//! Traversals whose steps are known and whose arguments are checked: what is evaluated.

mod arguments;
mod branches;
mod calls;
mod changes;
mod compile;
mod connectives;
mod elements;
mod filters;
mod flow;
mod functions;
pub(crate) mod keys;
mod labels;
mod maps;
pub(crate) mod merge_maps;
mod merges;
mod modulators;
mod names;
mod parts;
mod reads;
mod repeats;
mod rules;
mod side_effects;
mod singles;
mod sought;
mod source;
mod step;
mod strategies;
mod verification;
mod wheres;
mod with;

pub use compile::compile;
pub(crate) use flow::{is_stateless, needs_all_input, side_effect_of};
pub(crate) use labels::{all_steps, any_step, nested};
pub use parts::*;
pub use source::{Source, TraversalPlan};
pub use step::{Kind, Step};
pub use verification::Verification;

use crate::{
    bytecode::{Bytecode, Instruction},
    error::Result,
};
use std::sync::Arc;

/// A label that `as` gives to a step, the name of a side effect, a label of elements, or a key of properties.
pub type Label = Arc<str>;

/// A sequence of steps.
pub type Traversal = Arc<[Arc<Step>]>;

/// Compiles a nested traversal. Steps that take traversals call it, and it compiles steps.
fn anonymous(bytecode: &Bytecode) -> Result<Traversal> {
    steps(&connectives::instructions(bytecode)?)
}

/// Compiles instructions in which no `and()` or `or()` stands between steps.
fn steps(instructions: &[Instruction]) -> Result<Traversal> {
    compile::steps(instructions)
}
