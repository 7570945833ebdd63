//! Traversals as drivers send them: a list of instructions, each a name with arguments.

use crate::value::Value;
use std::sync::Arc;

/// A traversal. An anonymous traversal, such as the argument of `where(out())`, has no sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytecode {
    /// An instruction that configures the traversal source, such as `withSideEffect`.
    pub sources: Vec<Instruction>,
    /// The steps, in their order.
    pub steps: Vec<Instruction>,
}

/// A step or a source instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Its name as in gremlin-java, such as `outE`, `as` or `withStrategies`.
    pub name: Arc<str>,
    /// Its arguments. A nested traversal is a [`Value::Traversal`], a predicate a [`Value::Predicate`].
    pub arguments: Vec<Value>,
}

/// The steps that change a graph. `property` after `addV` and `addE` belongs to them.
const CHANGES: [&str; 6] = ["addV", "addE", "property", "drop", "mergeV", "mergeE"];

impl Bytecode {
    /// Whether the traversal, or one that is nested in it, has a step that changes the graph.
    pub fn changes_graph(&self) -> bool {
        self.steps
            .iter()
            .any(|step| CHANGES.contains(&&*step.name) || step.arguments.iter().any(changes_graph))
    }
}

fn changes_graph(argument: &Value) -> bool {
    match argument {
        Value::Traversal(bytecode) => bytecode.changes_graph(),
        Value::List(values) => values.iter().any(changes_graph),
        Value::Set(values) => values.iter().any(changes_graph),
        Value::Map(entries) => entries.iter().any(|(key, value)| changes_graph(key) || changes_graph(value)),
        _ => false,
    }
}

impl Instruction {
    /// An instruction with this name and these arguments.
    pub fn new(name: impl Into<Arc<str>>, arguments: Vec<Value>) -> Self {
        Self { name: name.into(), arguments }
    }
}
