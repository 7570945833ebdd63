//! Traversals whose steps are known and whose arguments are checked: what is evaluated.

mod arguments;
mod branches;
mod calls;
mod changes;
mod compile;
mod connectives;
mod elements;
mod filters;
mod functions;
mod labels;
mod maps;
mod names;
mod side_effects;
mod source;
mod step;
mod wheres;

pub use compile::compile;
pub(crate) use labels::any_step;
pub use source::{Plan, Source};
pub use step::*;

use std::sync::Arc;

/// A label that `as` gives to a step, the name of a side effect, a label of elements, or a key of properties.
pub type Label = Arc<str>;

/// A sequence of steps.
pub type Traversal = Arc<[Arc<Step>]>;
