//! What nodes are asked: operators, the values that they return, and the merging of these values.

mod edges;
mod live;
mod merge;
mod operator;
mod typing;
mod value;

pub use edges::{EdgePage, EdgesEntry, EdgesPlan, PLAN_COLUMNS_MAX};
pub use live::{AssociationsEntry, ObjectEntry};
pub use merge::MissingKeyRule;
pub use operator::Operator;
pub use typing::PlanSize;
pub use value::{ListEntry, Part, Value, ValueKind};
