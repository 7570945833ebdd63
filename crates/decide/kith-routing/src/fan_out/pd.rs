//! Smooths another controller with a PD rule that has the paper's gains (Moolle §V-C). The output follows the target of the
//! wrapped controller with d(output)/dt = proportional · error + derivative · d(error)/dt, where error = target − output.
//!
//! The equation is solved exactly between calls, so the result does not depend on how often queries arrive. A share
//! derivative ÷ (1 + derivative) of each change of the target takes effect at once, the rest with the time constant (1 +
//! derivative) ÷ proportional seconds. This is stable for all gains, settles without a remaining error and never overshoots.

use crate::LoadSnapshot;
use crate::fan_out::{Build, ControllerState, FanOutController, GlobalRps, QueryShape};
use std::sync::Arc;

/// Smooths another controller.
#[derive(Clone, Debug)]
pub struct Pd {
    /// The controller whose answers are smoothed.
    pub inner: Arc<dyn FanOutController>,
    /// The proportional gain per second; greater than 0.
    pub proportional: f64,
    /// The derivative gain; at least 0.
    pub derivative: f64,
}

impl Pd {
    /// Returns a controller that smooths `inner` with the paper's gains.
    pub fn new(inner: Arc<dyn FanOutController>) -> Self {
        Self { inner, proportional: 1.0, derivative: 0.5 }
    }
}

pub(super) const BUILD: Build = |parameters| {
    let inner = parameters.controller()?.unwrap_or_else(|| Arc::new(GlobalRps::default()));
    let proportional = parameters.number("proportional", 1.0)?;
    parameters.check("proportional", proportional, 0.0 < proportional, "more than 0")?;
    let derivative = parameters.number("derivative", 0.5)?;
    Ok(Arc::new(Pd { inner, proportional, derivative }))
};

impl FanOutController for Pd {
    fn name(&self) -> &'static str {
        "pd"
    }

    fn groups(&self, query: &QueryShape, load: &LoadSnapshot, state: &mut ControllerState) -> u32 {
        let target = self.inner.groups(query, load, state.inner()).clamp(1, query.groups.max(1));
        let target = f64::from(target);
        let output = match state.output {
            None => target,
            Some(output) => {
                let elapsed = query.now.since(state.updated).as_secs_f64();
                let kept = (-elapsed * self.proportional / (1.0 + self.derivative)).exp();
                let settled = state.target + (output - state.target) * kept;
                settled + (target - state.target) * self.derivative / (1.0 + self.derivative)
            }
        };
        state.output = Some(output);
        state.target = target;
        state.updated = state.updated.max(query.now);
        // Round to the nearest number: the target is already a whole number, rounded down by its controller.
        (output.round() as u32).clamp(1, query.groups.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fan_out::{Static, tests::query};
    use kith_types::{FanOutKind, Timestamp};
    use std::time::Duration;

    fn groups_at(groups: u32, state: &mut ControllerState, millis: u64) -> u32 {
        let now = Timestamp(Duration::from_millis(millis));
        let shape = QueryShape { now, ..query(FanOutKind::EarlyTerminable, 1_000) };
        Pd::new(Arc::new(Static { groups })).groups(&shape, &LoadSnapshot::default(), state)
    }

    #[test]
    fn a_step_is_followed_a_third_at_once_and_the_rest_within_seconds() {
        let mut state = ControllerState::default();
        assert_eq!(groups_at(10, &mut state, 0), 10, "the first answer is not smoothed");
        assert_eq!(groups_at(1, &mut state, 1_000), 7);
        let trace: Vec<u32> = (1..=12).map(|step| groups_at(1, &mut state, 1_000 + step * 500)).collect();
        assert!(trace.windows(2).all(|pair| pair[1] <= pair[0]), "it never overshoots: {trace:?}");
        assert_eq!(trace.last(), Some(&1), "{trace:?}");
        assert_eq!(trace[2], 3, "1.5 s after the step a third of it is left: {trace:?}");
    }

    #[test]
    fn how_often_it_is_asked_does_not_matter() {
        let (mut often, mut seldom) = (ControllerState::default(), ControllerState::default());
        for state in [&mut often, &mut seldom] {
            groups_at(10, state, 0);
            groups_at(2, state, 100);
        }
        (0..20).for_each(|step| {
            groups_at(2, &mut often, 100 + step * 50);
        });
        assert_eq!(groups_at(2, &mut often, 1_100), groups_at(2, &mut seldom, 1_100));
        assert!((often.output.unwrap() - seldom.output.unwrap()).abs() < 1e-9);
    }
}
