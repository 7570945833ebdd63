//! The state machines of operations, and the pieces that several of them are made of.

pub(super) mod ask;
pub(super) mod first_degree;
pub(super) mod range;
pub(super) mod resolve;
pub(super) mod search;
mod step;

pub use step::{FanOut, Input, OperationStep, Outline, Scope};

use crate::OperationError;
use resolve::Resolver;
use std::fmt::Debug;

/// A query under way. It sends nothing; its driver sends its fan-outs.
pub(crate) trait Machine: Debug + Send + Sync {
    /// Takes the next step.
    ///
    /// # Errors
    /// If a member is not in the graph, or the input is not what the last step asked for.
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError>;

    /// The steps that the operation takes or may take, in order.
    fn outline(&self) -> Vec<Outline>;
}

/// The fields of an operation, which begin a query.
pub(crate) trait HasMachine {
    /// The state machine that answers, with its names resolved.
    ///
    /// # Errors
    /// If a name is unknown to the graph, or a number is out of its range.
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError>;
}
