//! For fan-outs that the first positive answer ends (Moolle §IV-C4): many groups if most
//! of them do end early, because each node then has less to do; one group if not, because
//! then every node must be waited for. Never more than another controller allows.

use crate::LoadSnapshot;
use crate::fan_out::{Build, ControllerState, FanOutController, GlobalRps, QueryShape};
use std::sync::Arc;

/// Chooses between one group and as many as are allowed.
#[derive(Clone, Debug)]
pub struct EarlyTerminating {
    /// Says how many groups are allowed.
    pub allowed: Arc<dyn FanOutController>,
    /// From this share of early ends on, the most groups allowed are used.
    pub threshold: f64,
}

impl Default for EarlyTerminating {
    fn default() -> Self {
        Self { allowed: Arc::new(GlobalRps::default()), threshold: THRESHOLD }
    }
}

/// Half: the more likely end decides.
const THRESHOLD: f64 = 0.5;

pub(super) const BUILD: Build = |parameters| {
    let allowed = parameters.controller()?.unwrap_or_else(|| Arc::new(GlobalRps::default()));
    let threshold = parameters.number("threshold", THRESHOLD)?;
    parameters.check("threshold", threshold, threshold <= 1.0, "a share from 0 to 1")?;
    Ok(Arc::new(EarlyTerminating { allowed, threshold }))
};

impl FanOutController for EarlyTerminating {
    fn name(&self) -> &'static str {
        "early-terminating"
    }

    fn groups(&self, query: &QueryShape, load: &LoadSnapshot, state: &mut ControllerState) -> u32 {
        // Asked in any case, so that a controller with state keeps up.
        let allowed = self.allowed.groups(query, load, state.inner());
        // Nothing is known before the first such query ends: be careful.
        let ends_early = load.termination_share.is_some_and(|share| self.threshold <= share);
        if ends_early { allowed } else { 1 }
    }
}
