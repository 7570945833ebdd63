//! Chooses one group for every query (Moolle §IV-C1, §IV-C2), which gives the fewest requests and the least exposure to the
//! latency tail of single requests.

use crate::LoadSnapshot;
use crate::fan_out::{Build, ControllerState, FanOutController, QueryShape};
use std::sync::Arc;

/// Chooses one group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Minimum;

pub(super) const BUILD: Build = |_| Ok(Arc::new(Minimum));

impl FanOutController for Minimum {
    fn name(&self) -> &'static str {
        "minimum"
    }

    fn groups(&self, _query: &QueryShape, _load: &LoadSnapshot, _state: &mut ControllerState) -> u32 {
        1
    }
}
