//! What is known of vertices that a `has` in a `repeat` has tested.

use super::{meter::Meter, weight};
use crate::{error::Result, value::ElementId};
use parking_lot::Mutex;
use std::collections::HashMap;

/// The most verdicts that are remembered.
const VERDICTS_MAX: usize = 64 << 10;

/// Whether vertices have passed the tests of steps. A step is named by its address in the plan.
#[derive(Debug, Default)]
pub(super) struct Verdicts(Mutex<HashMap<(usize, ElementId), bool>>);

impl Verdicts {
    /// What is known of these vertices.
    pub fn of(&self, step: usize, ids: &[ElementId]) -> HashMap<ElementId, bool> {
        let known = self.0.lock();
        let verdict = |id: &ElementId| Some((id.clone(), *known.get(&(step, id.clone()))?));
        ids.iter().filter_map(verdict).collect()
    }

    /// Remembers verdicts, as long as there is room.
    ///
    /// # Errors
    /// The traversal has no memory left.
    pub fn remember<'v>(
        &self,
        step: usize,
        verdicts: impl Iterator<Item = (&'v ElementId, &'v bool)>,
        meter: &Meter,
    ) -> Result<()> {
        let mut known = self.0.lock();
        for (id, passes) in verdicts {
            if VERDICTS_MAX <= known.len() {
                break;
            }
            meter.charge(weight::of_kept(id).saturating_add(weight::up_to(id, VERDICTS_MAX as u64)))?;
            known.insert((step, id.clone()), *passes);
        }
        Ok(())
    }
}
