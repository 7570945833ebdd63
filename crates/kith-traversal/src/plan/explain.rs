//! `explain`: what a plan will do, as a text.

use super::{Kind, Plan, Step, Traversal, labels::nested};
use crate::value::Direction;
use std::fmt::{self, Display, Formatter, Write};

/// The width of the first column.
const WIDTH: usize = 60;

/// What a plan will do: a line for each step, with what it asks of the graph. Nested traversals are indented.
pub fn explain(plan: &Plan) -> String {
    let mut text = format!("{:<WIDTH$} {}\n{}\n", "Step", "Asks the graph for", "=".repeat(WIDTH + 40));
    lines(&plan.traversal, 0, &mut text);
    text
}

fn lines(traversal: &Traversal, depth: usize, text: &mut String) {
    for step in &**traversal {
        let name = format!("{:indent$}{step}", "", indent = 2 * depth);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", format!("{name:<WIDTH$} {}", asks(&step.kind)).trim_end());
        nested(&step.kind).into_iter().for_each(|traversal| lines(traversal, depth + 1, text));
    }
}

/// What a step asks of the graph.
fn asks(kind: &Kind) -> String {
    match kind {
        Kind::Vertices { ids } if ids.is_empty() => "all vertices, page by page".to_owned(),
        Kind::Edges { ids } if ids.is_empty() => "all edges, page by page".to_owned(),
        Kind::Vertices { ids } => format!("vertices by their ids ({})", ids.len()),
        Kind::NamedVertices { .. } => String::new(),
        Kind::Edges { ids } => format!("edges by their ids ({})", ids.len()),
        Kind::Hop(hop) => format!("{}, batch by batch", edges(hop)),
        Kind::Degree(hop) => format!("the number of {}, batch by batch", edges(hop)),
        Kind::Reach(hop) => format!("the set of vertices at the other ends of {}", edges(hop)),
        Kind::CountReached(hop) => format!("the number of vertices at the other ends of {}", edges(hop)),
        Kind::Properties { keys, .. } | Kind::ElementMap { keys } => properties(keys),
        Kind::PropertyMap(map) => properties(&map.keys),
        Kind::Has(test) => match &test.subject {
            super::Subject::Property(key) => properties(std::slice::from_ref(key)),
            super::Subject::Token(_) | super::Subject::IdText => String::new(),
        },
        Kind::HasKey { key, .. } => properties(std::slice::from_ref(key)),
        Kind::MergeVertex(_) | Kind::MergeEdge(_) => "a search and a write for each traverser".to_owned(),
        kind if kind.is_change() => "a write for each traverser".to_owned(),
        _ => String::new(),
    }
}

fn edges(hop: &super::Hop) -> String {
    let which = match hop.direction {
        Direction::Out => "outgoing edges",
        Direction::In => "incoming edges",
        Direction::Both => "edges",
    };
    match &*hop.labels {
        [] => format!("{which} of all labels"),
        labels => format!("{which} labelled {}", labels.join(" or ")),
    }
}

fn properties(keys: &[super::Label]) -> String {
    match keys {
        [] => "all properties, batch by batch".to_owned(),
        keys => format!("the properties {}, batch by batch", keys.join(", ")),
    }
}

impl Display for Step {
    /// The instruction that the step was compiled from. A step that only stands for a part of another has the name of its kind.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.instruction.name.is_empty() {
            return write!(f, "{}", self.instruction);
        }
        let kind = format!("{:?}", self.kind);
        f.write_str(kind.split(|part: char| !part.is_alphanumeric()).next().unwrap_or_default())
    }
}
