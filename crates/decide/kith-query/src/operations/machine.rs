//! The state machine of an operation.

use crate::{Input, OperationError, OperationStep, Outline};
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
