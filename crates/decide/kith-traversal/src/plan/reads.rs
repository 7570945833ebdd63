//! The labels and side effects that steps read by name.

use super::{Function, Kind, Label, Step, StepArgument, WherePredicate, all_steps, nested};
use crate::functions::Part;
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
