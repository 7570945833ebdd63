//! Traversals as drivers send them: a list of instructions, each a name with arguments.

use crate::value::Value;
use std::sync::Arc;

/// A traversal. An anonymous traversal, such as the argument of `where(out())`, has no sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytecode {
    /// What configures the traversal source, such as `withSideEffect`.
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

/// The steps that change a graph.
const WRITING_STEPS: [&str; 6] = ["addE", "addV", "drop", "mergeE", "mergeV", "property"];

impl Bytecode {
    /// Whether the traversal, or one nested in it, has a step that changes the graph. `O(size)`.
    pub fn writes(&self) -> bool {
        self.sources.iter().chain(&self.steps).any(|instruction| {
            WRITING_STEPS.contains(&&*instruction.name) || instruction.arguments.iter().any(holds_writes)
        })
    }
}

/// Whether a value holds a traversal that writes.
fn holds_writes(value: &Value) -> bool {
    match value {
        Value::Traversal(bytecode) => bytecode.writes(),
        Value::List(values) => values.iter().any(holds_writes),
        Value::Set(values) => values.iter().any(holds_writes),
        Value::Map(entries) => entries.iter().any(|(key, value)| holds_writes(key) || holds_writes(value)),
        Value::CardinalityValue { value, .. } | Value::Traverser { value, .. } => holds_writes(value),
        Value::Predicate(predicate) => predicate.operands.iter().any(holds_writes),
        _ => false,
    }
}

impl Instruction {
    /// An instruction with this name and these arguments.
    pub fn new(name: impl Into<Arc<str>>, arguments: Vec<Value>) -> Self {
        Self { name: name.into(), arguments }
    }
}

#[cfg(test)]
mod tests {
    use crate::{text, value::Map};

    #[test]
    fn a_traversal_writes_wherever_the_step_is() {
        let writes = |text: &str| {
            let now = chrono::DateTime::UNIX_EPOCH.fixed_offset();
            let inputs = text::Inputs { bindings: &Map::default(), now, entropy: 0 };
            text::parse(text, &inputs).expect("a traversal").bytecode.writes()
        };
        for reads in ["g.V().out('drop').properties()", "g.V().where(__.out().count().is(P.gt(1)))"] {
            assert!(!writes(reads), "{reads}");
        }
        for text in ["g.addV()", "g.V().local(__.union(__.out(), __.drop()))", "g.mergeV([name: 'a'])"] {
            assert!(writes(text), "{text}");
        }
    }
}
