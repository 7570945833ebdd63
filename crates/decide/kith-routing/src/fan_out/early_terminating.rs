//! For fan-outs that end with the first positive answer (Moolle §IV-C4). If most of them end early, it chooses many groups,
//! because each node then has less to do. If not, it chooses one group, because every node must then be waited for. It never
//! exceeds what another controller allows.

use crate::LoadSnapshot;
use crate::fan_out::{Build, ControllerState, FanOutController, GlobalRps, QueryShape};
use std::sync::Arc;

/// Chooses between one group and the largest number allowed.
#[derive(Clone, Debug)]
pub struct EarlyTerminating {
    /// The controller that decides how many groups are allowed.
    pub allowed: Arc<dyn FanOutController>,
    /// The share of early ends from which the largest allowed number of groups is used.
    pub threshold: f64,
}

impl Default for EarlyTerminating {
    fn default() -> Self {
        Self { allowed: Arc::new(GlobalRps::default()), threshold: THRESHOLD }
    }
}

/// The default threshold is one half, so that the more likely end decides.
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
        // Ask it in any case, so that a controller with state keeps up.
        let allowed = self.allowed.groups(query, load, state.inner());
        // Before the first such query has ended, nothing is known, so be careful.
        let ends_early = load.termination_share.is_some_and(|share| self.threshold <= share);
        if ends_early { allowed } else { 1 }
    }
}
