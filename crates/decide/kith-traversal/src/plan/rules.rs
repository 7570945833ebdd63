//! Rules that replace steps by others, which have the same results and ask less of the graph.
//!
//! | rule | before | after |
//! |---|---|---|
//! | edges that are only passed | `outE().inV()` | `out()` |
//! | edges that are only counted | `out().count()` | the numbers of edges, without the edges |
//! | edges that only need to exist | `where(out())` | the same |
//! | edges with a property | `outE().has("since", gt(5))` | the same, from nodes that leave out other edges |
//! | the first edges in an order | `outE().order().by("since").limit(5)` | the same, of the first five edges of each vertex |
//! | filters that follow one another | `has("age", 7).has("city", "Ulm")` | one look-up |
//! | edges to named vertices | `where(out().hasId(7))` | the vertices from which edges lead to 7 |
//! | vertices that are only distinguished | `out().out().dedup()` | the set of vertices that each hop reaches |
//! | vertices of which only the number matters | `out().dedup().count()` | the size of that set |
//! | all elements of which only the number matters | `V().hasLabel("person").count()` | the number, from a graph that counts them where they are |
//! | vertices with a property | `V().has("name", "Ada")` | the same, from an index if the graph has one |
//! | vertices of which only the edges matter | `V(1).out()` | the same, without asking whether the vertex exists |
//! | a few passes of hops | `repeat(out()).times(2)` | `out().out()` |
//! | one path to certain vertices | `V(1).repeat(out().simplePath()).until(hasId(7)).path().limit(1)` | a shortest path, sought from both ends |
//!
//! Edges are only passed where no later step looks at paths, and vertices of which only the edges matter need a traversal without
//! paths. The two rules about sets need traversers that nothing but the vertex itself tells apart: they are not nested, no later
//! step looks at paths or reads labels, and there are no sacks.

use super::{
    ByArgument, Condition, HasTest, Hop, Kind, Label, LeadsTo, Reduction, Step, TestedPart, Traversal,
    TraversalPlan, all_steps, any_step, nested,
    reads::Reads,
    repeats::{named_ids, shortest, unrolled},
    sought::search,
};
use crate::{
    bytecode::Instruction,
    graph::{CountedLabels, ElementTest, PropertyOrder},
    value::{Order, Token, Value},
};
use std::{collections::HashSet, sync::Arc};

/// Applies the rules that hold in all traversals.
pub(super) fn everywhere(steps: Vec<Arc<Step>>) -> Vec<Arc<Step>> {
    let steps = unrolled(steps).into_iter();
    let mut steps: Vec<Arc<Step>> = steps.map(|step| tested(&step).unwrap_or(step)).collect();
    for at in 0..steps.len() {
        if let Some(restricted) = restricted(&steps[at..]) {
            steps[at] = restricted;
        }
    }
    for at in 1..steps.len() {
        if matches!(steps[at].kind, Kind::Reduce(Reduction::Count))
            && let Some(counted) = degree(&steps[at - 1])
        {
            steps[at - 1] = counted;
        }
    }
    super::singles::nested(together(steps))
}

/// `outE().has("since", gt(5)).order().by("since").limit(3)`: the hop says which edges are wanted. The steps that follow stay,
/// because a graph may return others.
fn restricted(steps: &[Arc<Step>]) -> Option<Arc<Step>> {
    let (first, rest) = steps.split_first()?;
    let Kind::Hop(hop) = &first.kind else { return None };
    let filters = rest.iter().take_while(|step| !step.kind.has_tests().is_empty()).count();
    let (filters, after) = rest.split_at(filters);
    let all = filters.iter().flat_map(|step| step.kind.has_tests());
    let tests: Vec<Option<ElementTest>> = all.map(HasTest::element_test).collect();
    let is_complete = tests.iter().all(Option::is_some);
    let tests: Arc<[_]> = tests.into_iter().flatten().collect();
    let top = first_in_order(after).filter(|_| is_complete);
    (hop.to_edges && (!tests.is_empty() || top.is_some())).then(|| {
        let kind = Kind::Hop(Hop { tests, top, ..hop.clone() });
        Arc::new(Step { kind, labels: first.labels.clone(), instruction: first.instruction.clone() })
    })
}

/// `order().by("since").limit(3)`.
fn first_in_order(steps: &[Arc<Step>]) -> Option<(PropertyOrder, usize)> {
    let [order, range, ..] = steps else { return None };
    let (Kind::Order(by), Kind::Range { high, .. }) = (&order.kind, &range.kind) else { return None };
    let [(ByArgument::Key(key), order @ (Order::Ascending | Order::Descending))] = &by[..] else {
        return None;
    };
    let count = usize::try_from(*high).ok().filter(|count| (1..=TOP_MAX).contains(count))?;
    Some((PropertyOrder { key: Arc::clone(key), descending: *order == Order::Descending }, count))
}

/// The most edges of a vertex that a graph is asked to sort out.
const TOP_MAX: usize = 10_000;

/// Neighbouring `has` become one step, which looks vertices up once.
fn together(steps: Vec<Arc<Step>>) -> Vec<Arc<Step>> {
    let is_alike = |step: &Step| {
        let tests = step.kind.has_tests();
        !tests.is_empty() && tests.iter().all(|test| test.element_test().is_some())
    };
    let mut merged: Vec<Arc<Step>> = Vec::with_capacity(steps.len());
    for step in steps {
        match merged.last_mut() {
            Some(last) if is_alike(last) && is_alike(&step) => {
                let tests = last.kind.has_tests().iter().chain(step.kind.has_tests()).cloned().collect();
                let arguments = last.instruction.arguments.iter().chain(&step.instruction.arguments);
                let instruction = Instruction::new("has", arguments.cloned().collect());
                // The two tests of `has(label, key, value)` come from one call.
                let is_same = last.instruction == step.instruction;
                let instruction = if is_same { last.instruction.clone() } else { instruction };
                let labels = last.labels.iter().chain(&step.labels).cloned().collect();
                *last = Arc::new(Step { kind: Kind::HasAll(tests), labels, instruction });
            }
            _ => merged.push(step),
        }
    }
    merged
}

/// A step that returns what its nested traversals have a result for, if one of these ends with a hop.
fn tested(step: &Arc<Step>) -> Option<Arc<Step>> {
    let kind = match &step.kind {
        Kind::Filter { traversal, is_negated } => match leads_to(traversal, *is_negated) {
            Some(leads_to) => Kind::LeadsTo(leads_to),
            None => Kind::Filter { traversal: existing(traversal)?, is_negated: *is_negated },
        },
        Kind::Connective { traversals, is_and } => {
            let each = |traversal: &Traversal| existing(traversal).unwrap_or_else(|| Arc::clone(traversal));
            Kind::Connective { traversals: traversals.iter().map(each).collect(), is_and: *is_and }
        }
        _ => return None,
    };
    Some(Arc::new(Step { kind, labels: step.labels.clone(), instruction: step.instruction.clone() }))
}

/// `out().hasId(7)` as the condition of a filter: the vertices that pass are those that `in()` reaches from 7.
fn leads_to(traversal: &Traversal, is_negated: bool) -> Option<LeadsTo> {
    let [hop_step, has] = &traversal[..] else { return None };
    let Kind::Hop(hop) = &hop_step.kind else { return None };
    if hop.to_edges {
        return None;
    }
    Some(LeadsTo { back: hop.reversed(), to: named_ids(has)?, traversal: Arc::clone(traversal), is_negated })
}

/// A traversal that only has to have a result, without the edges of its last step.
fn existing(traversal: &Traversal) -> Option<Traversal> {
    let (last, before) = traversal.split_last()?;
    let last = degree(last)?;
    Some(before.iter().cloned().chain([last]).collect())
}

/// A hop that is only counted, or whose results nobody sees. Nobody can read its labels either.
fn degree(step: &Step) -> Option<Arc<Step>> {
    match &step.kind {
        Kind::Hop(hop) => Some(instead(step, Kind::Degree(hop.clone()))),
        _ => None,
    }
}

/// The step with another kind, without labels.
fn instead(step: &Step, kind: Kind) -> Arc<Step> {
    Arc::new(Step { kind, labels: Vec::new(), instruction: step.instruction.clone() })
}

/// Applies the rules about whole traversals.
pub(super) fn whole(plan: TraversalPlan) -> TraversalPlan {
    let plan = match counted(&plan.traversal) {
        Some(traversal) => TraversalPlan { traversal, ..plan },
        None => plan,
    };
    let plan = match sought(&plan.traversal) {
        Some(traversal) => TraversalPlan { traversal, ..plan },
        None => plan,
    };
    let plan = match shortest(&plan.traversal) {
        Some(traversal) => TraversalPlan { traversal, ..plan },
        None => plan,
    };
    let has_paths = plan.with_paths();
    if plan.source.with_paths {
        return plan;
    }
    let mut steps = passed(&plan.traversal);
    if plan.source.sack.is_none() {
        let distinct = [without_paths(&steps), last_read(&steps)].into_iter().max().unwrap_or(0);
        steps = sets(steps, distinct);
    }
    steps = everywhere(steps);
    if !has_paths {
        named(&mut steps);
    }
    let last_read = Some(last_read(&steps)).filter(|after| !has_paths && 0 < *after);
    TraversalPlan { traversal: steps.into(), last_read, ..plan }
}

/// The first step from which on none looks at paths.
fn without_paths(steps: &[Arc<Step>]) -> usize {
    let looks = |step: &Arc<Step>| {
        let inner = nested(&step.kind).into_iter();
        step.kind.needs_path() || inner.into_iter().any(|it| any_step(it, &|step| step.kind.needs_path()))
    };
    steps.iter().rposition(looks).map_or(0, |at| at + 1)
}

/// The first step from which on none reads a label that a step gives.
fn last_read(steps: &[Arc<Step>]) -> usize {
    let given: HashSet<&Label> =
        steps.iter().flat_map(|step| all_of(step)).flat_map(|step| &step.labels).collect();
    let reads = |step: &Arc<Step>| {
        let reads = Reads::of([step]);
        given.iter().any(|label| reads.has(label))
    };
    steps.iter().rposition(reads).map_or(0, |at| at + 1)
}

/// A step and those that are nested in it.
fn all_of(step: &Step) -> impl Iterator<Item = &Step> {
    std::iter::once(step).chain(nested(&step.kind).into_iter().flat_map(all_steps))
}

/// `V().hasLabel("person").count()` and `E().count()`.
fn counted(traversal: &Traversal) -> Option<Traversal> {
    let (first, rest) = traversal.split_first()?;
    let of_edges = match &first.kind {
        Kind::Vertices { ids } if ids.is_empty() => false,
        Kind::Edges { ids } if ids.is_empty() => true,
        _ => return None,
    };
    let filters = rest.iter().take_while(|step| !step.kind.has_tests().is_empty()).count();
    let (filters, after) = rest.split_at(filters);
    let (count, after) = after.split_first()?;
    let are_labelled = std::iter::once(first).chain(filters).any(|step| !step.labels.is_empty());
    if are_labelled || !matches!(count.kind, Kind::Reduce(Reduction::Count)) {
        return None;
    }
    let mut labels = CountedLabels::ALL;
    for test in filters.iter().flat_map(|step| step.kind.has_tests()) {
        labels = labels.among(named_labels(test)?);
    }
    let (kind, instruction) = (Kind::CountAll { of_edges, labels }, first.instruction.clone());
    let begins = Arc::new(Step { kind, labels: count.labels.clone(), instruction });
    Some(std::iter::once(begins).chain(after.iter().cloned()).collect())
}

/// The labels of which an element must have one to pass a test; `None` if the test is about something else.
fn named_labels(test: &HasTest) -> Option<Vec<Arc<str>>> {
    let Condition::Test(condition) = &test.condition else { return None };
    if !matches!(test.subject, TestedPart::Token(Token::Label)) {
        return None;
    }
    let text = |value: &Value| match value {
        Value::String(label) => Some(Arc::clone(label)),
        _ => None,
    };
    // A label is a text, which equals no value of another type.
    Some(condition.equal_values()?.iter().filter_map(text).collect())
}

/// `V().has("name", "Ada")`: the vertices may come from an index. The filters stay, because an index may return more.
fn sought(traversal: &Traversal) -> Option<Traversal> {
    let (first, rest) = traversal.split_first()?;
    if !matches!(&first.kind, Kind::Vertices { ids } if ids.is_empty()) {
        return None;
    }
    let filters = rest.iter().take_while(|step| !step.kind.has_tests().is_empty());
    let sought = search(filters.flat_map(|step| step.kind.has_tests()))?;
    let (kind, labels) = (Kind::SoughtVertices(sought), first.labels.clone());
    let begins = Arc::new(Step { kind, labels, instruction: first.instruction.clone() });
    Some(std::iter::once(begins).chain(rest.iter().cloned()).collect())
}

/// `V(1).out()`: a vertex that does not exist has no edges. Its labels may be compared with vertices, but not be looked at.
fn named(steps: &mut [Arc<Step>]) {
    for at in 1..steps.len() {
        let is_hop =
            matches!(steps[at].kind, Kind::Hop(_) | Kind::Degree(_) | Kind::Reach(_) | Kind::CountReached(_));
        let Kind::Vertices { ids } = &steps[at - 1].kind else { continue };
        let labels = &steps[at - 1].labels;
        let is_shown = || {
            let shown = Reads::but_for_comparisons(&steps[at..]);
            labels.iter().any(|label| shown.has(label))
        };
        if is_hop && !ids.is_empty() && (labels.is_empty() || !is_shown()) {
            let (kind, labels) = (Kind::NamedVertices { ids: ids.clone() }, labels.clone());
            let instruction = steps[at - 1].instruction.clone();
            steps[at - 1] = Arc::new(Step { kind, labels, instruction });
        }
    }
}

/// `outE().inV()` becomes `out()`, and `bothE().otherV()` becomes `both()`, where no later step looks at paths.
fn passed(traversal: &Traversal) -> Vec<Arc<Step>> {
    let mut steps: Vec<Arc<Step>> = Vec::with_capacity(traversal.len());
    let without_paths = without_paths(traversal);
    for (at, step) in traversal.iter().enumerate() {
        let passes = |hop: &Hop| matches!(step.kind, Kind::EdgeVertex(end) if hop.is_passed(end));
        let hop = match steps.last().map(|last| (&last.kind, last.labels.is_empty())) {
            Some((Kind::Hop(hop), true)) if hop.to_edges && without_paths <= at + 1 && passes(hop) => {
                hop.clone()
            }
            _ => {
                steps.push(Arc::clone(step));
                continue;
            }
        };
        let (kind, labels) = (Kind::Hop(Hop { to_edges: false, ..hop }), step.labels.clone());
        if let Some(last) = steps.last_mut() {
            *last = Arc::new(Step { kind, labels, instruction: last.instruction.clone() });
        }
    }
    steps
}

/// Hops before `dedup()` become sets, if only the step `distinct` or a later one follows.
fn sets(mut steps: Vec<Arc<Step>>, distinct: usize) -> Vec<Arc<Step>> {
    let is_dedup =
        |step: &Arc<Step>| matches!(&step.kind, Kind::Dedup { labels, by: None } if labels.is_empty());
    while let Some(dedup) =
        (distinct.max(1)..steps.len()).find(|at| is_dedup(&steps[*at]) && vertices(&steps[at - 1]).is_some())
    {
        let next = steps.get(dedup + 1).map(|step| &step.kind);
        // Where few vertices are wanted, work ends earlier batch by batch.
        if matches!(next, Some(Kind::Range { .. })) {
            break;
        }
        let is_counted = matches!(next, Some(Kind::Reduce(Reduction::Count)));
        steps.drain(dedup..=dedup + usize::from(is_counted));
        for at in (0..dedup).rev() {
            let Some(hop) = vertices(&steps[at]) else { break };
            let kind = if is_counted && at + 1 == dedup { Kind::CountReached(hop) } else { Kind::Reach(hop) };
            steps[at] = instead(&steps[at], kind);
        }
    }
    steps
}

/// The hop of a step that ends at vertices.
fn vertices(step: &Step) -> Option<Hop> {
    match &step.kind {
        Kind::Hop(hop) if !hop.to_edges => Some(hop.clone()),
        _ => None,
    }
}
