//! The steps that strategies forbid.

use super::{Kind, Label, PropertyGiven, Step, StepArgument, Traversal, labels};
use crate::{
    error::{GremlinError, Result},
    value::Value,
};

/// The steps that a traversal must not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Steps that change the graph.
    ReadOnly,
    /// Steps along edges without a label of edges.
    EdgeLabels,
    /// Steps that set a property with one of these keys.
    ReservedKeys(Vec<Label>),
}

impl Verification {
    /// Refuses a traversal that has what it must not have. The messages are TinkerPop's, which its suite asks for.
    pub(super) fn check(&self, traversal: &Traversal) -> Result<()> {
        match self {
            Self::ReadOnly => refuse(traversal, &|step| step.kind.is_change(), |step| {
                format!("The provided traversal has a mutating step and thus is not read only: {step}()")
            }),
            Self::EdgeLabels => {
                let is_open = |step: &Step| matches!(&step.kind, Kind::Hop(hop) | Kind::Degree(hop) if hop.labels.is_empty());
                refuse(traversal, &is_open, |step| {
                    format!(
                        "The provided traversal contains a vertex step without any specified edge label: {step}()"
                    )
                })
            }
            Self::ReservedKeys(keys) => keys.iter().try_for_each(|key| {
                let sets = |step: &Step| properties(&step.kind).iter().any(|property| is_key(property, key));
                refuse(traversal, &sets, |step| {
                    format!(
                        "The provided traversal contains {step}(), that is setting a property key to a reserved word: {key}"
                    )
                })
            }),
        }
    }
}

fn refuse(
    traversal: &Traversal,
    wrong: &dyn Fn(&Step) -> bool,
    message: impl FnOnce(&str) -> String,
) -> Result<()> {
    match labels::find(traversal, wrong) {
        None => Ok(()),
        Some(step) => Err(GremlinError::bad(message(&step.instruction.name))),
    }
}

/// The properties that a step sets.
fn properties(kind: &Kind) -> &[PropertyGiven] {
    match kind {
        Kind::AddVertex { properties, .. } | Kind::AddEdge { properties, .. } => properties,
        Kind::SetProperty(property) => std::slice::from_ref(property),
        _ => &[],
    }
}

fn is_key(property: &PropertyGiven, key: &Label) -> bool {
    matches!(&property.key, StepArgument::Value(Value::String(found)) if found == key)
}
