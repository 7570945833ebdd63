//! Chooses always the same number of groups. `static(3)` is "Moolle (3)" in the paper's figures (§V-A).

use crate::LoadSnapshot;
use crate::fan_out::{Build, ControllerState, FanOutController, QueryShape};
use std::sync::Arc;

/// Chooses a fixed number of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Static {
    /// The number of groups. If it is greater than the number of existing groups, all of them are used.
    pub groups: u32,
}

pub(super) const BUILD: Build = |parameters| {
    let groups = parameters.main_number("groups", 1.0)?;
    parameters.check("groups", groups, 1.0 <= groups && groups.fract() == 0.0, "a whole number from 1 up")?;
    Ok(Arc::new(Static { groups: groups as u32 }))
};

impl FanOutController for Static {
    fn name(&self) -> &'static str {
        "static"
    }

    fn groups(&self, _query: &QueryShape, _load: &LoadSnapshot, _state: &mut ControllerState) -> u32 {
        self.groups
    }
}
