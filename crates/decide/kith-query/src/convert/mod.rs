//! Conversions between inner types and wire messages that are of no single operation.

mod batch;
mod compute;
mod filter;
mod gremlin;
mod live;
#[cfg(feature = "nodes")]
mod nodes;
mod query;
mod records;
mod stream;
mod write;

pub use batch::{
    batch_answer_from_wire, batch_answer_to_wire, batch_from_wire, batch_to_wire, schema_from_wire,
};
pub use compute::{
    aggregate_answer_from_wire, aggregate_answer_to_wire, aggregate_from_wire, aggregate_to_wire,
    compute_answer_from_wire, compute_answer_to_wire, compute_from_wire, compute_to_wire,
};
pub(crate) use filter::{filter_from_wire, filter_to_wire};
pub use gremlin::{gremlin_answer_from_wire, gremlin_answer_to_wire, gremlin_from_wire, gremlin_to_wire};
pub(crate) use live::{
    associations_from_wire, associations_to_wire, find_from_wire, find_to_wire, object_from_wire,
    object_to_wire, objects_from_wire, objects_to_wire, read_from_wire as association_read_from_wire,
    read_to_wire as association_read_to_wire,
};
#[cfg(feature = "nodes")]
pub use nodes::{operator_from_wire, operator_to_wire, value_from_wire, value_of_reply, value_to_wire};
pub use query::{
    answer_from_wire, answer_to_wire, answered_from_wire, answered_to_wire, query_from_wire, query_to_wire,
};
pub use records::{groups_from_wire, groups_to_wire, records_from_wire, records_in_place, records_to_wire};
pub use stream::{StreamReader, StreamWriter};
pub use write::{write_from_wire, write_to_wire, written_from_wire, written_to_wire};

use crate::NotACursor;
use kith_operators::EvaluateError;
use kith_types::{Direction, Workflow};
use kith_wire::{body::BodyError, v1};
use thiserror::Error;

/// The reason why a message cannot be decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ConvertError {
    /// A required field is not set.
    #[error("field {0} is missing")]
    Missing(&'static str),
    /// An enum value is invalid, or of a newer release.
    #[error("field {field} has unknown value {got}")]
    Unknown { field: &'static str, got: i32 },
    /// A packed body is malformed.
    #[error("field {field} is malformed")]
    Body {
        field: &'static str,
        #[source]
        source: BodyError,
    },
    /// A schema is invalid.
    #[error("field {field} is no schema: {why}")]
    Schema {
        field: &'static str,
        /// A description of the fault in the schema.
        why: String,
    },
    /// A cursor is invalid.
    #[error(transparent)]
    Cursor(NotACursor),
    /// An operator tree or predicate is nested deeper than this release nests them.
    #[error("the plan, or a condition in it, is nested deeper than {0}")]
    TooDeep(usize),
    /// An operator tree is larger than this release builds them.
    #[error(transparent)]
    TooWide(EvaluateError),
}

/// Encodes a direction.
pub fn direction_to_wire(direction: Option<Direction>) -> i32 {
    let wire = match direction {
        None => v1::Direction::Default,
        Some(Direction::Out) => v1::Direction::Out,
        Some(Direction::In) => v1::Direction::In,
        Some(Direction::Both) => v1::Direction::Both,
    };
    wire.into()
}

/// Decodes a direction.
///
/// # Errors
/// If the number is unknown.
pub fn direction_from_wire(got: i32) -> Result<Option<Direction>, ConvertError> {
    match v1::Direction::try_from(got) {
        Ok(v1::Direction::Default) => Ok(None),
        Ok(v1::Direction::Out) => Ok(Some(Direction::Out)),
        Ok(v1::Direction::In) => Ok(Some(Direction::In)),
        Ok(v1::Direction::Both) => Ok(Some(Direction::Both)),
        Err(_) => Err(ConvertError::Unknown { field: "direction", got }),
    }
}

/// Encodes a workflow.
pub fn workflow_to_wire(workflow: Workflow) -> i32 {
    match workflow {
        Workflow::Interactive => v1::Workflow::Interactive.into(),
        Workflow::Background => v1::Workflow::Background.into(),
    }
}

/// Decodes a workflow.
///
/// # Errors
/// If the number is unknown.
pub fn workflow_from_wire(got: i32) -> Result<Workflow, ConvertError> {
    match v1::Workflow::try_from(got) {
        Ok(v1::Workflow::Interactive) => Ok(Workflow::Interactive),
        Ok(v1::Workflow::Background) => Ok(Workflow::Background),
        Err(_) => Err(ConvertError::Unknown { field: "workflow", got }),
    }
}
