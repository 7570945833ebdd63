//! Rules about `repeat`: a few passes of hops become hops, and the search for one path becomes a search from both ends.

use super::{
    ByArgument, Condition, HasTest, Hop, Kind, NamedIds, PathPart, Reduction, Repeat, RepeatEnd,
    ShortestPath, Step, TestedPart, Traversal,
};
use crate::{
    semantics::Test,
    value::{Token, Value},
};
use std::sync::Arc;

/// The most steps that the passes of a `repeat` may become.
const STEPS_MAX: usize = 8;

/// `repeat(out()).times(2)` as `out().out()`, to which more rules apply.
pub(super) fn unrolled(steps: Vec<Arc<Step>>) -> Vec<Arc<Step>> {
    steps.into_iter().flat_map(|step| passes(&step).unwrap_or_else(|| vec![step])).collect()
}

fn passes(step: &Step) -> Option<Vec<Arc<Step>>> {
    let Kind::Repeat(Repeat { body, until: Some(RepeatEnd::Times(times)), emit: None, .. }) = &step.kind
    else {
        return None;
    };
    let is_hop = |step: &Arc<Step>| matches!(step.kind, Kind::Hop(_) | Kind::EdgeVertex(_));
    let count = body.len().saturating_mul(*times as usize);
    if !(1..=STEPS_MAX).contains(&count) || !body.iter().all(is_hop) {
        return None;
    }
    let in_pass = |at: usize| {
        let one = &body[at % body.len()];
        let kind = match &one.kind {
            Kind::Hop(hop) => Kind::Hop(Hop { pass: (at / body.len()) as u32, ..hop.clone() }),
            Kind::EdgeVertex(end) => Kind::EdgeVertex(*end),
            _ => return Arc::clone(one),
        };
        // The labels of `repeat` are those of its results.
        let own = step.labels.iter().filter(|_| at + 1 == count);
        let labels = one.labels.iter().chain(own).cloned().collect();
        Arc::new(Step { kind, labels, instruction: one.instruction.clone() })
    };
    Some((0..count).map(in_pass).collect())
}

/// `V(1).repeat(both().simplePath()).until(hasId(7)).path().limit(1)`: only one path is wanted, and `repeat` would return a
/// shortest one too, because it finishes each pass before the next. `None` for any other traversal.
pub(super) fn shortest(traversal: &Traversal) -> Option<Traversal> {
    let [begin, repeat, after @ ..] = &traversal[..] else { return None };
    let is_one = matches!(&begin.kind, Kind::Vertices { ids } if ids.len() == 1);
    // Up to the limit, each path has one result.
    let mut after = after.iter().map(|step| &step.kind).skip_while(|kind| is_kept(kind));
    if !is_one || !repeat.labels.is_empty() || !matches!(after.next(), Some(Kind::Range { low: 0, high: 1 }))
    {
        return None;
    }
    let Kind::Repeat(Repeat {
        body,
        until: Some(RepeatEnd::Traversal(until)),
        until_first: false,
        emit: None,
        ..
    }) = &repeat.kind
    else {
        return None;
    };
    let ([until], Some((hop, others))) = (&until[..], body.split_first()) else { return None };
    let is_simple = match others {
        [] => false,
        [step] if is_simple_path(&step.kind) => true,
        _ => return None,
    };
    let has_labels = body.iter().chain([until]).any(|step| !step.labels.is_empty());
    let (Kind::Hop(hop @ Hop { to_edges: false, .. }), false) = (&hop.kind, has_labels) else { return None };
    let kind = Kind::ShortestPath(ShortestPath { hop: hop.clone(), to: named_ids(until)?, is_simple });
    let search = Arc::new(Step { kind, labels: Vec::new(), instruction: repeat.instruction.clone() });
    Some([Arc::clone(begin), search].into_iter().chain(traversal[2..].iter().cloned()).collect())
}

/// `simplePath()` of whole paths.
fn is_simple_path(kind: &Kind) -> bool {
    match kind {
        Kind::SimplePath { is_simple, between: PathPart { from: None, to: None }, by } => {
            *is_simple && by.is_empty()
        }
        _ => false,
    }
}

/// Whether a step has one result for each path, so that it makes no difference whether `limit(1)` comes before or after it.
fn is_kept(kind: &Kind) -> bool {
    match kind {
        Kind::Path { by, .. } => {
            by.iter().all(|by| matches!(by, ByArgument::Identity | ByArgument::Token(_)))
        }
        Kind::ReduceLocal(Reduction::Count) => true,
        _ => false,
    }
}

/// The ids of vertices that a step accepts, if it accepts no others.
pub(super) fn named_ids(step: &Step) -> Option<NamedIds> {
    let Kind::Has(HasTest { subject, condition: Condition::Test(test) }) = &step.kind else { return None };
    let is_text = match subject {
        TestedPart::Token(Token::Id) => false,
        TestedPart::IdText => true,
        _ => return None,
    };
    let ids = test.equal_values()?;
    // A graph may not recognize its ids in other types, although these may be equal to them.
    let is_plain = |id: &Value| {
        matches!(id, Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) | Value::String(_))
    };
    ids.iter().all(is_plain).then(|| NamedIds { ids: ids.to_vec(), test: Test::clone(test), is_text })
}
