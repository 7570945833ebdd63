//! The meaning of a name for a traverser.

use super::{context::Context, traverser::Traverser};
use crate::{
    error::{GremlinError, Result},
    value::{Pop, Value},
};

/// The meaning of a key for a traverser: an entry of its map, a side effect, or the values with this label, of which `pop` says
/// which. `None` if it means nothing.
pub(super) fn value(
    pop: Pop,
    key: &Value,
    traverser: &Traverser,
    context: &Context<'_>,
) -> Result<Option<Value>> {
    if let Value::Map(map) = &traverser.value
        && let Some(value) = map.get(key)
    {
        return Ok(Some(value.clone()));
    }
    let Some(label) = key.as_text() else { return Ok(None) };
    if let Some(value) = context.side_effects.get(label, &context.work)? {
        return Ok(Some(value));
    }
    let all = traverser.labelled(label);
    let list = || Value::list(all.iter().map(|value| (*value).clone()).collect::<Vec<_>>());
    Ok(match (pop, &all[..]) {
        (_, []) => None,
        (Pop::All, _) | (Pop::Mixed, [_, _, ..]) => Some(list()),
        (Pop::First, [first, ..]) => Some((*first).clone()),
        (_, [.., last]) => Some((*last).clone()),
    })
}

/// As [`value`], the last value with the label.
///
/// # Errors
/// The label means nothing.
pub(super) fn last(label: &str, traverser: &Traverser, context: &Context<'_>) -> Result<Value> {
    value(Pop::Last, &label.into(), traverser, context)?.ok_or_else(|| {
        GremlinError::bad(format!(
            "neither the map, sideEffects, nor path has a {label}-key: no step before this one has the label {label:?}"
        ))
    })
}
