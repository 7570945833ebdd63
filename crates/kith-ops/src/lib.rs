//! What Kith computes over a graph: operators, operations, and how partial answers merge.
//!
//! Everything here is a plain function of its inputs. A node evaluates an
//! [`Operator`] tree over a [`NeighbourSource`]; a caller drives an [`Operation`],
//! which says step by step what to ask of the nodes and what the answer is.
//! Neither knows about sockets, clocks or where a partition lives.

mod answer;
mod error;
mod network;
mod operation;
mod operator;
mod query;
mod schema;
mod source;

pub use answer::{CommonAnswer, GraphAnswer, NetworkAnswer, PathAnswer};
pub use error::{EvaluateError, OperationError};
pub use network::{Network, NetworkKey};
pub use operation::{FanOut, Input, Operation, Scope, Step};
pub use operator::{ColumnRange, EdgeSelector, ListEntry, Operator, Value};
pub use query::{CommonPlan, GraphQuery, Operand, Want};
pub use schema::{GraphSchema, KindRole, KindSchema};
pub use source::{NeighbourSource, SourceError};
