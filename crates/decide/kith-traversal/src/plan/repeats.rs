//! Rules about `repeat`: a few passes of hops become hops, and the search for one path becomes a search from both ends.

use super::{
    ByArgument, Condition, EdgeEnd, HasTest, Hop, Kind, NamedIds, PathEnd, PathPart, Reduction, Repeat,
    RepeatEnd, ShortestPath, Step, TestedPart, Traversal, sought::search, step::traversal,
};
use crate::{
    semantics::Test,
    value::{Direction, Token, Value},
};
use std::sync::Arc;

/// The most steps that the passes of a `repeat` may become.
const STEPS_MAX: usize = 8;

impl Hop {
    /// Whether an end of the edges of this hop is the other one.
    pub(super) fn is_passed(&self, end: EdgeEnd) -> bool {
        match end {
            EdgeEnd::In => self.direction == Direction::Out,
            EdgeEnd::Out => self.direction == Direction::In,
            EdgeEnd::Other => true,
            EdgeEnd::Both => false,
        }
    }
}

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
    let at = traversal.iter().position(|step| matches!(step.kind, Kind::Repeat(_)))?;
    let (begin, [repeat, after @ ..]) = traversal.split_at(at) else { return None };
    let [first, filters @ ..] = begin else { return None };
    let is_named = match &first.kind {
        Kind::Vertices { ids } => !ids.is_empty(),
        Kind::SoughtVertices(_) => true,
        _ => false,
    };
    if !is_named || !filters.iter().all(is_test) {
        return None;
    }
    let Kind::Repeat(parts) = &repeat.kind else { return None };
    let (hop, is_simple) = repeated(&parts.body)?;
    let to = end(parts, after)?;
    // Up to the limit, each path has one result.
    let shown = after.iter().position(|step| matches!(step.kind, Kind::Range { low: 0, high: 1 }))?;
    let mut search = ShortestPath { hop, to, is_simple, vertices: None, edges: None };
    // What follows `emit()` is the end of the path.
    let is_emitted = matches!(parts.emit, Some(None));
    let mut kept = after[..shown].iter().skip_while(|step| is_emitted && is_test(step));
    if !kept.all(|step| is_kept(&step.kind, &mut search)) {
        return None;
    }
    let (kind, labels) = (Kind::ShortestPath(search), repeat.labels.clone());
    let search = Arc::new(Step { kind, labels, instruction: repeat.instruction.clone() });
    Some(begin.iter().cloned().chain([search]).chain(after.iter().cloned()).collect())
}

/// The hop of a repeated traversal that consists of it, and whether the path must be simple.
fn repeated(body: &Traversal) -> Option<(Hop, bool)> {
    if body.iter().any(|step| !step.labels.is_empty()) {
        return None;
    }
    let (body, is_simple) = match &body[..] {
        [body @ .., last] if is_simple_path(&last.kind) => (body, true),
        body => (body, false),
    };
    let hop = match body {
        [hop] => match &hop.kind {
            Kind::Hop(hop) if !hop.to_edges => hop,
            _ => return None,
        },
        [hop, end] => match (&hop.kind, &end.kind) {
            (Kind::Hop(hop), Kind::EdgeVertex(end)) if hop.to_edges && hop.is_passed(*end) => hop,
            _ => return None,
        },
        _ => return None,
    };
    Some((hop.clone(), is_simple))
}

/// Where the first result of a `repeat` ends, if tests say so: those of `until` or of `emit`, or those that follow `emit()`.
fn end(parts: &Repeat, after: &[Arc<Step>]) -> Option<PathEnd> {
    let tests = match (&parts.until, &parts.emit) {
        (Some(RepeatEnd::Traversal(until)), None) if !parts.until_first => Arc::clone(until),
        (None, Some(Some(emit))) if !parts.emit_first => Arc::clone(emit),
        (None, Some(None)) if !parts.emit_first => {
            after.iter().take_while(|step| is_test(step)).cloned().collect()
        }
        _ => return None,
    };
    if tests.is_empty() || !tests.iter().all(is_test) {
        return None;
    }
    if let [one] = &tests[..]
        && let Some(named) = named_ids(one)
    {
        return Some(PathEnd::Named(named));
    }
    let sought = search(tests.iter().flat_map(|step| step.kind.has_tests()));
    Some(PathEnd::Tested { tests, sought })
}

/// Whether a step tests a vertex by itself.
fn is_test(step: &Arc<Step>) -> bool {
    let is_plain = |test: &HasTest| matches!(test.condition, Condition::Test(_));
    let tests = step.kind.has_tests();
    matches!(step.kind, Kind::HasKey { .. }) || (!tests.is_empty() && tests.iter().all(is_plain))
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

/// Whether a step has one result for each path, so that it makes no difference whether `limit(1)` comes before or after it. A path
/// without a property that is shown has none, so the search leaves such vertices and edges out.
fn is_kept(kind: &Kind, search: &mut ShortestPath) -> bool {
    let (between, by) = match kind {
        Kind::Path { between, by } => (between, by),
        Kind::ReduceLocal(Reduction::Count) => return true,
        _ => return false,
    };
    let (vertices, edges) = match (&by[..], search.hop.to_edges) {
        (by, _) if by.iter().all(|by| matches!(by, ByArgument::Identity | ByArgument::Token(_))) => {
            return true;
        }
        ([vertices], false) => (vertices, &ByArgument::Identity),
        ([both], true) => (both, both),
        ([vertices, edges], true) => (vertices, edges),
        _ => return false,
    };
    for (by, needed) in [(vertices, &mut search.vertices), (edges, &mut search.edges)] {
        match by {
            ByArgument::Identity | ByArgument::Token(_) => {}
            ByArgument::Key(key) if needed.is_none() => {
                *needed = Some(traversal(vec![Kind::HasKey { key: Arc::clone(key), is_present: true }]));
            }
            _ => return false,
        }
    }
    matches!(between, PathPart { from: None, to: None })
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
