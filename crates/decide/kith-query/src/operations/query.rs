//! The query of a graph.

use crate::Operation;
use kith_types::{Direction, Workflow};

/// One query, as the caller states it. [`crate::QueryMachine::new`] resolves its names with the graph's
/// [`kith_schema::GraphSchema`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphQuery {
    /// The operation, with its fields.
    pub operation: Operation,
    /// The edge type to follow; `None` is the graph's first.
    pub edge_type: Option<String>,
    /// The direction; `None` is `Both` for an undirected edge type, and `Out` for a directed one.
    pub direction: Option<Direction>,
    /// Whether somebody waits for the answer.
    pub workflow: Workflow,
}

impl GraphQuery {
    /// A query along the first edge type of the graph in its usual direction, for somebody who waits.
    pub fn new(operation: impl Into<Operation>) -> Self {
        Self {
            operation: operation.into(),
            edge_type: None,
            direction: None,
            workflow: Workflow::Interactive,
        }
    }
}
