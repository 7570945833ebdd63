//! The rules that make a plan cheaper: which are used, and why others are not.

use super::asks::{is_test, properties};
use crate::{
    evaluate::reads_own_side_effects,
    plan::{EdgeEnd, Kind, Label, Step, Traversal, TraversalPlan, all_steps, needs_all_input, nested},
    value::Direction,
};
use std::collections::BTreeSet;

/// Each rule that concerns the plan, with what came of it.
pub(super) fn of(plan: &TraversalPlan) -> Vec<(&'static str, String)> {
    let rules = [
        ("look-up by id", by_id(&plan.traversal)),
        ("look-up by an index", by_index(&plan.traversal)),
        ("merging of equal traversers", Some(merging(plan))),
        ("edges that are only passed", passed(plan)),
        ("edges that are only counted", counted(plan)),
        ("elements that are only counted", counted_where_they_are(&plan.traversal)),
        ("edges with a property", restricted(plan)),
        ("edges to named vertices", named_ends(plan)),
        ("one path to named vertices", shortest(plan)),
        ("vertices that are only distinguished", sets(plan)),
        ("early end", early_end(&plan.traversal)),
        ("properties by key", by_key(plan)),
        ("nested traversals by batch", by_batch(plan)),
    ];
    rules.into_iter().filter_map(|(name, finding)| Some((name, finding?))).collect()
}

fn by_id(traversal: &Traversal) -> Option<String> {
    let first = traversal.first()?;
    match &first.kind {
        Kind::NamedVertices { .. } => {
            Some(format!("used; only the edges of {first} are wanted, so it is not read at all"))
        }
        Kind::Vertices { ids } | Kind::Edges { ids } if !ids.is_empty() => {
            Some(format!("used; {first} reads no more than the elements that it names"))
        }
        Kind::Vertices { .. } | Kind::Edges { .. } => {
            let test = traversal.get(1).filter(|step| is_test(&step.kind));
            let afterwards = test.map_or(String::new(), |test| format!(", and {test} is tested afterwards"));
            Some(format!("not used; {first} names no ids, so all elements are read{afterwards}"))
        }
        _ => None,
    }
}

/// `None` if the traversal does not begin with the vertices that have a property.
fn by_index(traversal: &Traversal) -> Option<String> {
    let first = traversal.first()?;
    let Kind::SoughtVertices(sought) = &first.kind else { return None };
    let keys: Vec<&str> = sought.properties.iter().map(|(key, _)| &**key).collect();
    Some(format!(
        "used if the graph has an index on {}; otherwise, {first} reads all vertices",
        keys.join(" or ")
    ))
}

fn merging(plan: &TraversalPlan) -> String {
    if plan.source.with_paths {
        return "not used; withPath() keeps the path of each traverser".to_owned();
    }
    if plan.source.sack.is_some() {
        return "not used; each traverser has a sack of its own".to_owned();
    }
    match all_steps(&plan.traversal).into_iter().find(|step| step.kind.needs_path()) {
        Some(step) => format!("not used; {step} needs the path of each traverser"),
        None => "used; equal traversers become one with a count before and after each hop".to_owned(),
    }
}

/// `None` if no step goes from a vertex to an edge, and on to its other end.
fn passed(plan: &TraversalPlan) -> Option<String> {
    let steps = all_steps(&plan.traversal);
    let is_of_edges = |step: &&&Step| matches!(&*step.instruction.name, "outE" | "inE" | "bothE");
    let mut hops = steps.iter().filter(is_of_edges);
    let is_of_vertices = |kind: &Kind| match kind {
        Kind::Hop(hop) | Kind::Degree(hop) => !hop.to_edges,
        Kind::Reach(_) | Kind::CountReached(_) => true,
        _ => false,
    };
    if let Some(step) = hops.find(|step| is_of_vertices(&step.kind)) {
        return Some(format!("used; after {step} the vertices at the other ends are asked for at once"));
    }
    let pair = steps.windows(2).find(|pair| match (&pair[0].kind, &pair[1].kind) {
        (Kind::Hop(hop), Kind::EdgeVertex(end)) if hop.to_edges => {
            matches!((hop.direction, end), (Direction::Out, EdgeEnd::In) | (Direction::In, EdgeEnd::Out))
        }
        _ => false,
    })?;
    Some(format!(
        "not used; a later step reads paths or the label of {}, or its traversal is nested",
        pair[0]
    ))
}

/// `None` if no hop is followed by `count()`, and no nested traversal ends with one that only has to exist.
fn counted(plan: &TraversalPlan) -> Option<String> {
    let steps = all_steps(&plan.traversal);
    let step = steps.iter().find(|step| matches!(step.kind, Kind::Degree(_)))?;
    Some(format!("used; nodes answer {step} with numbers of edges"))
}

/// `None` if the traversal does not begin with the number of all elements.
fn counted_where_they_are(traversal: &Traversal) -> Option<String> {
    let first = traversal.first()?;
    matches!(first.kind, Kind::CountAll { .. })
        .then(|| format!("used; nodes count what {first} means without reading it"))
}

/// `None` if no filter by a property follows a hop to edges, or none has bounds.
fn restricted(plan: &TraversalPlan) -> Option<String> {
    let steps = all_steps(&plan.traversal);
    let step = steps.iter().find(|step| matches!(&step.kind, Kind::Hop(hop) if !hop.tests.is_empty()))?;
    Some(format!(
        "used; nodes leave out other edges of {step}, of loaded graphs where the property is a column with a range"
    ))
}

/// `None` if no filter asks for edges to named vertices.
fn named_ends(plan: &TraversalPlan) -> Option<String> {
    let steps = all_steps(&plan.traversal);
    let step = steps.iter().find(|step| matches!(step.kind, Kind::LeadsTo(_)))?;
    Some(format!(
        "used; {step} follows the edges from the vertices that it names, if the graph keeps that direction"
    ))
}

/// `None` if the traversal does not search for a path.
fn shortest(plan: &TraversalPlan) -> Option<String> {
    let steps = all_steps(&plan.traversal);
    let step = steps.iter().find(|step| matches!(step.kind, Kind::ShortestPath(_)))?;
    Some(format!(
        "used; {step} searches for one shortest path, from both ends where its end is known and the edges can be followed backwards"
    ))
}

/// `None` if no hop is followed by `dedup()`.
fn sets(plan: &TraversalPlan) -> Option<String> {
    let steps = all_steps(&plan.traversal);
    if let Some(step) = steps.iter().find(|step| matches!(step.kind, Kind::Reach(_) | Kind::CountReached(_)))
    {
        return Some(format!("used; nodes unite what {step} reaches"));
    }
    let is_pair = |pair: &&[&Step]| {
        matches!(&pair[0].kind, Kind::Hop(hop) if !hop.to_edges) && matches!(pair[1].kind, Kind::Dedup { .. })
    };
    let pair = steps.windows(2).find(is_pair)?;
    Some(format!(
        "not used; labels or paths of traversers after {} are read, they have sacks or are nested, or a limit ends the hop early",
        pair[0]
    ))
}

/// `None` if nothing limits the number of traversers.
fn early_end(traversal: &Traversal) -> Option<String> {
    let is_limit = |step: &Step| matches!(step.kind, Kind::Range { high, .. } if high != -1);
    let at = traversal.iter().position(|step| is_limit(step))?;
    let limit = &traversal[at];
    match traversal[..at].iter().rev().find(|step| needs_all_input(&step.kind)) {
        Some(step) => Some(format!("not used; {step} comes before {limit} and needs all of its input first")),
        None => Some(format!(
            "used; {limit} ends the steps before it after the batch that satisfies it; hops read few edges of few vertices first"
        )),
    }
}

/// `None` if no step needs properties.
fn by_key(plan: &TraversalPlan) -> Option<String> {
    let mut keys: BTreeSet<Label> = BTreeSet::new();
    let mut is_needed = false;
    for step in all_steps(&plan.traversal) {
        match properties(&step.kind) {
            Some(named) if named.is_empty() => {
                return Some(format!("not used; {step} asks for all properties"));
            }
            Some(named) => {
                is_needed = true;
                keys.extend(named);
            }
            None => {}
        }
    }
    let keys: Vec<Label> = keys.into_iter().collect();
    is_needed.then(|| format!("used; no other properties are fetched than {}", keys.join(", ")))
}

/// `None` if there are no nested traversals.
fn by_batch(plan: &TraversalPlan) -> Option<String> {
    let steps = all_steps(&plan.traversal);
    let mut outer = steps.iter().filter(|step| !nested(&step.kind).is_empty()).peekable();
    outer.peek()?;
    let own = outer.find(|step| nested(&step.kind).into_iter().any(reads_own_side_effects));
    Some(match own {
        Some(step) => {
            format!("not used; {step} reads what it puts aside, so traversers enter it one after the other")
        }
        None => "used; all traversers of a batch enter a nested traversal together".to_owned(),
    })
}
