//! The labels and side effects that steps read by name, and the removal of labels that no step reads.

use super::{Function, Kind, Label, Step, StepArgument, Traversal, WherePredicate, all_steps, nested};
use crate::{
    bytecode::{Bytecode, Instruction},
    functions::Part,
    value::Value,
};
use std::{collections::HashSet, sync::Arc};

/// The names that steps read.
#[derive(Debug, Default)]
pub(super) struct Reads {
    names: HashSet<Label>,
    /// Whether they may read any name: they show whole paths, or choose the names when they are evaluated.
    is_any: bool,
}

impl Reads {
    /// What these steps and their nested traversals read.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Arc<Step>>) -> Self {
        let mut reads = Self::default();
        for step in steps {
            reads.add(&step.kind);
            let inner = nested(&step.kind).into_iter().flat_map(all_steps);
            inner.for_each(|step| reads.add(&step.kind));
        }
        reads
    }

    /// As [`Reads::of`], without what is only compared with the values of traversers.
    pub fn but_for_comparisons<'a>(steps: impl IntoIterator<Item = &'a Arc<Step>>) -> Self {
        let mut reads = Self::default();
        let each = steps.into_iter().flat_map(|step| {
            std::iter::once(&**step).chain(nested(&step.kind).into_iter().flat_map(all_steps))
        });
        let compares = |kind: &Kind| match kind {
            Kind::Where(wanted) => wanted.by.is_empty(),
            Kind::WhereEnd(_) => true,
            _ => false,
        };
        each.filter(|step| !compares(&step.kind)).for_each(|step| reads.add(&step.kind));
        reads
    }

    /// Whether a name is read.
    pub fn has(&self, name: &str) -> bool {
        self.is_any || self.names.contains(name)
    }

    fn add(&mut self, kind: &Kind) {
        match kind {
            Kind::Select { labels, .. } | Kind::Dedup { labels, .. } | Kind::Cap(labels) => {
                self.names.extend(labels.iter().cloned());
            }
            Kind::WhereStart(label) | Kind::WhereEnd(label) => drop(self.names.insert(label.clone())),
            Kind::Where(wanted) => {
                self.names.extend(wanted.start.iter().cloned());
                self.add_predicate(&wanted.predicate);
            }
            Kind::SimplePath { between, .. } => {
                self.names.extend(between.from.iter().chain(&between.to).cloned());
            }
            Kind::Math { expression, .. } => self.names.extend(expression.variables().iter().cloned()),
            Kind::Function(Function::Format { template, .. }) => {
                let names = template.parts.iter().filter_map(|part| match part {
                    Part::Variable(name) => Some(name.clone()),
                    _ => None,
                });
                self.names.extend(names);
            }
            Kind::AddEdge { from, to, .. } => {
                for end in [from, to].into_iter().flatten() {
                    if let StepArgument::Label(label) = end {
                        self.names.insert(label.clone());
                    }
                }
            }
            Kind::Path { .. } | Kind::SelectKeys { .. } => self.is_any = true,
            _ => {}
        }
    }

    fn add_predicate(&mut self, predicate: &WherePredicate) {
        match predicate {
            WherePredicate::Compare { labels, .. } => self.names.extend(labels.iter().cloned()),
            WherePredicate::And(all) | WherePredicate::Or(all) => {
                all.iter().for_each(|one| self.add_predicate(one));
            }
            WherePredicate::Not(one) => self.add_predicate(one),
        }
    }
}

/// The same traversal without `as` for labels that none of its steps reads. `None` if it has no such label.
pub(super) fn without_unread(bytecode: &Bytecode, traversal: &Traversal) -> Option<Bytecode> {
    let reads = Reads::of(traversal.iter());
    let is_unread = |step: &Step| step.labels.iter().any(|label| !reads.has(label));
    all_steps(traversal).iter().any(|step| is_unread(step)).then(|| kept(bytecode, &reads))
}

fn kept(bytecode: &Bytecode, reads: &Reads) -> Bytecode {
    let steps = bytecode.steps.iter().enumerate().filter_map(|(at, step)| {
        let arguments = match &*step.name {
            // A condition that begins with `as` begins at the value of the label.
            "as" if 0 < at => {
                let is_read = |label: &&Value| label.as_text().is_none_or(|label| reads.has(label));
                let arguments: Vec<Value> = step.arguments.iter().filter(is_read).cloned().collect();
                if arguments.is_empty() {
                    return None;
                }
                arguments
            }
            _ => step.arguments.iter().map(|argument| kept_within(argument, reads)).collect(),
        };
        Some(Instruction::new(Arc::clone(&step.name), arguments))
    });
    Bytecode { sources: bytecode.sources.clone(), steps: steps.collect() }
}

fn kept_within(argument: &Value, reads: &Reads) -> Value {
    match argument {
        Value::Traversal(bytecode) => Value::Traversal(Arc::new(kept(bytecode, reads))),
        Value::List(values) => {
            Value::list(values.iter().map(|value| kept_within(value, reads)).collect::<Vec<_>>())
        }
        other => other.clone(),
    }
}
