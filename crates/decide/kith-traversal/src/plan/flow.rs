//! What a step needs of the traversers before it, and to what it adds.

use super::{Kind, Label, Step, labels};
use std::sync::Arc;

/// Whether a step needs all its input before it returns anything.
pub(crate) fn needs_all_input(kind: &Kind) -> bool {
    match kind {
        Kind::Aggregate { is_local, .. } => !is_local,
        Kind::Group(group) => group.key.is_none(),
        Kind::GroupCount { key, .. } => key.is_none(),
        Kind::Tail(_)
        | Kind::Sample { .. }
        | Kind::Fold(_)
        | Kind::Reduce(_)
        | Kind::Order(_)
        | Kind::Cap(_)
        | Kind::Barrier { .. }
        | Kind::Profile(None)
        | Kind::Reach(_)
        | Kind::CountReached(_)
        | Kind::Discard => true,
        _ => false,
    }
}

/// Whether the steps treat each traverser by itself, so that it makes no difference in which batches they come.
pub(crate) fn is_stateless(steps: &[Arc<Step>]) -> bool {
    let has_state = |step: &Arc<Step>| {
        matches!(
            step.kind,
            Kind::Vertices { .. }
                | Kind::NamedVertices { .. }
                | Kind::SoughtVertices(_)
                | Kind::Edges { .. }
                | Kind::Inject(_)
                | Kind::CountAll { .. }
                | Kind::Range { .. }
                | Kind::TimeLimit(_)
                | Kind::Dedup { .. }
                | Kind::Union(_)
                | Kind::Choose(_)
                | Kind::Repeat(_)
        )
    };
    !steps.iter().any(|step| has_state(step) || needs_all_input(&step.kind))
}

/// The side effect that a step adds to.
pub(crate) fn side_effect_of(kind: &Kind) -> Option<&Label> {
    match kind {
        Kind::Aggregate { key, .. } => Some(key),
        Kind::Group(group) => group.key.as_ref(),
        Kind::GroupCount { key, .. } => key.as_ref(),
        _ => None,
    }
}

/// The side effects to which a step adds as traversers come, not only once all have come.
pub(super) fn added_by(step: &Step) -> Vec<&Label> {
    let inner = labels::nested(&step.kind).into_iter().flat_map(labels::all_steps);
    let is_late = matches!(step.kind, Kind::Aggregate { is_local: false, .. });
    std::iter::once(step)
        .filter(|_| !is_late)
        .chain(inner)
        .filter_map(|step| side_effect_of(&step.kind))
        .collect()
}
