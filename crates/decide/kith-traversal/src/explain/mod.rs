//! `explain`: what a plan will do, as a text for people.
//!
//! The plan does not know how a graph answers. The caller therefore describes the fan-outs behind each question
//! ([`StepQuestion`]), and this module describes the steps, what is folded into the questions, and which rules apply.

mod asks;
mod rules;

pub use asks::{StepQuestion, TraverserKind};

use crate::{
    plan::{Kind, Step, Traversal, TraversalPlan, nested},
    value::ElementId,
};
use std::fmt::Write;

/// The width of the column of steps.
const WIDTH: usize = 48;
/// The width of the table.
const TABLE_WIDTH: usize = 110;

/// A description of a plan: each step with its questions to the graph, with nested traversals indented, and then the rules that
/// make it cheaper, each with the reason where it is not used. `fan_outs` says how the graph answers a question; an empty
/// text adds no line, and says of [`StepQuestion::Ids`] that the graph need not be asked.
pub fn explain(plan: &TraversalPlan, fan_outs: &dyn Fn(&StepQuestion) -> String) -> String {
    let mut text = format!("{:<WIDTH$} Asks the graph for\n{}\n", "Step", "=".repeat(TABLE_WIDTH));
    Steps { fan_outs, text: &mut text }.write(&plan.traversal, TraverserKind::Unknown, 0);
    text.push_str("\nRules\n");
    for (name, finding) in rules::of(plan) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name}: {finding}");
    }
    text
}

/// Everything that a plan asks of any graph, in the order of its steps.
pub fn asked(plan: &TraversalPlan) -> Vec<StepQuestion> {
    let mut all = Vec::new();
    walk(&plan.traversal, TraverserKind::Unknown, 0, &mut |step, before, _| {
        all.extend(asks::of(&step.kind, before).filter(|asks| *asks != StepQuestion::Ids))
    });
    all
}

/// The vertices that a plan names at its beginning, and the first question about them. `None` if it begins otherwise.
pub fn first(plan: &TraversalPlan) -> Option<(&[ElementId], StepQuestion)> {
    let begin = plan.traversal.first()?;
    let (ids, asking) = match &begin.kind {
        Kind::Vertices { ids } if !ids.is_empty() => (ids, begin),
        Kind::NamedVertices { ids } => (ids, plan.traversal.get(1)?),
        _ => return None,
    };
    Some((ids, asks::of(&asking.kind, TraverserKind::Vertices)?))
}

/// Calls `each` with every step, what its traversers hold, and how deep it is nested. Returns what the traversers hold in the
/// end.
fn walk(
    traversal: &Traversal,
    holds: TraverserKind,
    depth: usize,
    each: &mut dyn FnMut(&Step, TraverserKind, usize),
) -> TraverserKind {
    traversal.iter().fold(holds, |before, step| {
        each(step, before, depth);
        let mut inner = Vec::new();
        // What is nested in this step is evaluated only if the graph cannot answer the step itself.
        let nested = if matches!(step.kind, Kind::LeadsTo(_)) { Vec::new() } else { nested(&step.kind) };
        for traversal in nested {
            inner.push(walk(traversal, before, depth + 1, each));
        }
        before.after(&step.kind, &inner)
    })
}

struct Steps<'a> {
    fan_outs: &'a dyn Fn(&StepQuestion) -> String,
    text: &'a mut String,
}

impl Steps<'_> {
    fn write(&mut self, traversal: &Traversal, holds: TraverserKind, depth: usize) {
        walk(traversal, holds, depth, &mut |step, before, depth| self.step(step, before, depth));
    }

    fn step(&mut self, step: &Step, before: TraverserKind, depth: usize) {
        let name = format!("{:indent$}{step}", "", indent = 2 * depth);
        // Most graphs calculate with the ids that users see.
        let is_asked = |asks: &StepQuestion| *asks != StepQuestion::Ids || !(self.fan_outs)(asks).is_empty();
        let all = asks::of(&step.kind, before).filter(is_asked);
        let asked = match &all {
            Some(asks) => asks.to_string(),
            None => asks::at_hand(&step.kind, before).to_owned(),
        };
        self.row(&name, &asked);
        let Some(asks) = all else { return };
        for line in [(self.fan_outs)(&asks), folded(&step.kind)] {
            if !line.is_empty() {
                self.row("", &line);
            }
        }
    }

    fn row(&mut self, step: &str, asked: &str) {
        let _ = writeln!(self.text, "{}", format!("{step:<WIDTH$} {asked}").trim_end());
    }
}

/// The part of a question beyond the step's own need, so that no further question has to be asked for it.
fn folded(kind: &Kind) -> String {
    match kind {
        Kind::Hop(hop) if hop.to_edges => {
            "folded in: the properties and both ends of the edges; each vertex of a batch is asked about once"
                .to_owned()
        }
        Kind::Hop(_) | Kind::Degree(_) => {
            "folded in: equal vertices of a batch, which are asked about once".to_owned()
        }
        Kind::Reach(_) => "folded in: dedup(), here or after the hops that follow".to_owned(),
        Kind::LeadsTo(_) => {
            "folded in: the hop and hasId(); a batch with no more vertices than are named makes the hop instead".to_owned()
        }
        Kind::ShortestPath(_) => "folded in: until(), and simplePath() if there is one; no other path is completed".to_owned(),
        Kind::CountAll { .. } => "folded in: hasLabel() and count()".to_owned(),
        Kind::CountReached(_) => "folded in: dedup() and count()".to_owned(),
        Kind::Edges { .. } => "folded in: the properties and both ends of the edges".to_owned(),
        _ => String::new(),
    }
}
