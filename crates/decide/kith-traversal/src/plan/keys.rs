//! The texts that can be keys of properties and labels of elements. The messages are TinkerPop's, which its suite asks for.

use super::Label;
use crate::{
    error::{GremlinError, Result},
    value::Value,
};
use std::sync::Arc;

/// The beginning of names that TinkerPop keeps for itself.
const HIDDEN: &str = "~";

/// The label of a vertex that is given none.
pub(crate) const VERTEX: &str = "vertex";
/// The label of an edge that is given none.
pub(crate) const EDGE: &str = "edge";

/// Refuses a text that cannot be the key of a property.
pub(crate) fn check_property(key: &str) -> Result<()> {
    if key.is_empty() {
        return Err(GremlinError::bad("Property key can not be the empty string"));
    }
    if key.starts_with(HIDDEN) {
        return Err(GremlinError::bad(format!("Property key can not be a hidden key: {key}")));
    }
    Ok(())
}

/// The label that a value is.
pub(crate) fn check_label(label: &Value) -> Result<Label> {
    match label {
        Value::String(label) if label.is_empty() => Err(GremlinError::bad("Label can not be empty")),
        Value::String(label) if label.starts_with(HIDDEN) => {
            Err(GremlinError::bad(format!("Label can not be a hidden key: {label}")))
        }
        Value::String(label) => Ok(Arc::clone(label)),
        Value::Null => Err(GremlinError::bad("Label can not be null")),
        other => {
            Err(GremlinError::bad(format!("a label is a string, not a value of type {}", other.type_name())))
        }
    }
}
