//! The modulators of calls: `by`, `from` and `to`.

use super::{
    ByArgument, PathPart,
    arguments::{Arguments, by},
    calls::Call,
};
use crate::error::{GremlinError, Result};

/// All `by` of a call.
pub(super) fn all_by(call: &Call<'_>) -> Result<Vec<ByArgument>> {
    call.modulators("by").map(|it| by("by", it.instruction.arguments.first())).collect()
}

/// The only `by` of a call, if there is one.
pub(super) fn one_by(call: &Call<'_>) -> Result<Option<ByArgument>> {
    let mut all = all_by(call)?;
    match all.len() {
        0 | 1 => Ok(all.pop()),
        _ => Err(GremlinError::bad(format!("the {} step can only have one by modulator", call.name()))),
    }
}

/// The labels of `from` and `to`.
pub(super) fn between(call: &Call<'_>) -> Result<PathPart> {
    let label = |name| match call.modulators(name).next() {
        None => Ok(None),
        Some(modulator) => Arguments::of(modulator.instruction)?.text("a label").map(Some),
    };
    Ok(PathPart { from: label("from")?, to: label("to")? })
}
