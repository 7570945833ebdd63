//! Walks over a traversal and all nested ones.

use super::{
    ByArgument, Choice, Condition, Function, Group, Kind, LeadsTo, MergeMaps, OptionKey, PathEnd,
    PropertyGiven, PropertyMap, RepeatEnd, Step, StepArgument, Traversal,
};

/// The first step, of the traversal or of a nested one, for which `wanted` holds.
pub(super) fn find<'a>(traversal: &'a Traversal, wanted: &dyn Fn(&Step) -> bool) -> Option<&'a Step> {
    traversal.iter().find_map(|step| {
        if wanted(step) {
            return Some(&**step);
        }
        nested(&step.kind).into_iter().find_map(|traversal| find(traversal, wanted))
    })
}

/// The traversals that are nested in a step.
pub(crate) fn nested(kind: &Kind) -> Vec<&Traversal> {
    match kind {
        Kind::LeadsTo(LeadsTo { traversal, .. })
        | Kind::Filter { traversal, .. }
        | Kind::Map(traversal)
        | Kind::FlatMap(traversal)
        | Kind::Local(traversal)
        | Kind::Optional(traversal)
        | Kind::SideEffect(traversal) => vec![traversal],
        Kind::Connective { traversals, .. } | Kind::Union(traversals) | Kind::Coalesce(traversals) => {
            traversals.iter().collect()
        }
        Kind::ShortestPath(search) => {
            let tests = match &search.to {
                PathEnd::Tested { tests, .. } => Some(tests),
                PathEnd::Named(_) => None,
            };
            [tests, search.vertices.as_ref(), search.edges.as_ref()].into_iter().flatten().collect()
        }
        Kind::Has(test) => match &test.condition {
            Condition::Traversal(traversal) => vec![traversal],
            Condition::Test(_) => Vec::new(),
        },
        Kind::Choose(choose) => {
            let choice = match &choose.choice {
                Choice::Exists(traversal) | Choice::By(ByArgument::Traversal(traversal)) => Some(traversal),
                Choice::By(_) | Choice::Test(_) => None,
            };
            let keys = choose.options.iter().filter_map(|(key, _)| match key {
                OptionKey::Traversal(traversal) => Some(traversal),
                _ => None,
            });
            choice.into_iter().chain(keys).chain(choose.options.iter().map(|(_, option)| option)).collect()
        }
        Kind::Repeat(repeat) => {
            let until = match &repeat.until {
                Some(RepeatEnd::Traversal(traversal)) => Some(traversal),
                _ => None,
            };
            [Some(&repeat.body), until, repeat.emit.as_ref().and_then(Option::as_ref)]
                .into_iter()
                .flatten()
                .collect()
        }
        kind => modulators(kind),
    }
}

/// The traversals of `by` and of arguments that may be traversals.
fn modulators(kind: &Kind) -> Vec<&Traversal> {
    match kind {
        Kind::SimplePath { by, .. }
        | Kind::Select { by, .. }
        | Kind::Project { by, .. }
        | Kind::Path { by, .. }
        | Kind::Math { by, .. }
        | Kind::Function(Function::Format { by, .. }) => by.iter().filter_map(of_by).collect(),
        Kind::SelectKeys { traversal, by, .. } => {
            std::iter::once(traversal).chain(by.iter().filter_map(of_by)).collect()
        }
        Kind::PropertyMap(PropertyMap { by, .. }) | Kind::Dedup { by, .. } | Kind::Sample { by, .. } => {
            by.iter().filter_map(of_by).collect()
        }
        Kind::Where(wanted) => wanted.by.iter().filter_map(of_by).collect(),
        Kind::Order(by) | Kind::OrderLocal(by) => by.iter().filter_map(|(by, _)| of_by(by)).collect(),
        Kind::SackUpdate { by, .. } | Kind::Aggregate { by, .. } | Kind::GroupCount { by, .. } => {
            of_by(by).into_iter().collect()
        }
        Kind::Group(Group { keys, values, .. }) => of_by(keys).into_iter().chain([values]).collect(),
        Kind::AddVertex { label, properties } => {
            of_given(label).into_iter().chain(of_properties(properties)).collect()
        }
        Kind::AddEdge { label, from, to, properties } => {
            let ends = [Some(label), from.as_ref(), to.as_ref()].into_iter().flatten();
            ends.filter_map(of_given).chain(of_properties(properties)).collect()
        }
        Kind::SetProperty(property) => of_properties(std::slice::from_ref(property)).collect(),
        Kind::MergeVertex(maps) | Kind::MergeEdge(maps) => of_maps(maps),
        Kind::Function(function) => of_function(function).into_iter().flatten().collect(),
        _ => Vec::new(),
    }
}

fn of_by(by: &ByArgument) -> Option<&Traversal> {
    match by {
        ByArgument::Traversal(traversal) => Some(traversal),
        _ => None,
    }
}

fn of_given(given: &StepArgument) -> Option<&Traversal> {
    match given {
        StepArgument::Traversal(traversal) => Some(traversal),
        _ => None,
    }
}

fn of_properties(properties: &[PropertyGiven]) -> impl Iterator<Item = &Traversal> {
    properties.iter().flat_map(|property| [&property.key, &property.value]).filter_map(of_given)
}

fn of_maps(maps: &MergeMaps) -> Vec<&Traversal> {
    let on_match = maps.on_match.as_ref().map(|(given, _)| given);
    let ends = [maps.out_vertex.as_ref(), maps.in_vertex.as_ref()];
    let all = [Some(&maps.search), maps.on_create.as_ref(), on_match].into_iter().chain(ends);
    all.flatten().filter_map(of_given).collect()
}

fn of_function(function: &Function) -> Vec<Option<&Traversal>> {
    match function {
        Function::Concat(all) => all.iter().map(of_given).collect(),
        Function::DateDiff(given) | Function::Lists(_, given) => vec![of_given(given)],
        _ => Vec::new(),
    }
}

/// All steps, of the traversal and of nested ones.
pub(crate) fn all_steps(traversal: &Traversal) -> Vec<&Step> {
    let mut all = Vec::new();
    for step in traversal.iter() {
        all.push(&**step);
        nested(&step.kind).into_iter().for_each(|traversal| all.extend(all_steps(traversal)));
    }
    all
}

/// The number of steps that wait for each other when a traversal is evaluated: those before the deepest step, and those that
/// it is nested in.
pub(crate) fn depth(traversal: &Traversal) -> usize {
    let within = |step: &Step| nested(&step.kind).into_iter().map(depth).max().unwrap_or(0);
    traversal.iter().enumerate().map(|(at, step)| at + 1 + within(step)).max().unwrap_or(0)
}

/// Whether `wanted` holds for any step, of the traversal or of a nested one.
pub(crate) fn any_step(traversal: &Traversal, wanted: &dyn Fn(&Step) -> bool) -> bool {
    find(traversal, wanted).is_some()
}
