//! Chooses every group for every query, which gives the least work per request.

use crate::LoadSnapshot;
use crate::fan_out::{Build, ControllerState, FanOutController, QueryShape};
use std::sync::Arc;

/// Chooses all groups.
#[derive(Clone, Copy, Debug, Default)]
pub struct Maximum;

pub(super) const BUILD: Build = |_| Ok(Arc::new(Maximum));

impl FanOutController for Maximum {
    fn name(&self) -> &'static str {
        "maximum"
    }

    fn groups(&self, query: &QueryShape, _load: &LoadSnapshot, _state: &mut ControllerState) -> u32 {
        query.groups
    }
}
