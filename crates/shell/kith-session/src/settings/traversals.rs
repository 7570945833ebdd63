//! The bounds of traversals in Gremlin.

use kith_traversal::evaluate::Limits;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The bounds of a traversal, unless it asks for others (`kith.budget`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TraversalSettings {
    /// The most elements that the graph returns.
    pub elements_max: u64,
    /// The most traversers that steps return.
    pub traversers_max: u64,
    /// The most bytes of properties that the graph returns, of values that functions make, and of results.
    pub bytes_max: u64,
    /// The most passes of one `repeat`.
    pub passes_max: u32,
    /// The most bytes that all traversals of this process take together.
    pub memory: u64,
    /// The time that a traversal may take if it does not say how long.
    #[serde(with = "super::millis", rename = "deadline-default-ms")]
    pub deadline_default: Duration,
    /// The highest multiple of each of the bounds of one traversal that `kith.budget` may ask for. With 1, it can only lower them.
    pub budget_factor_max: u64,
}

impl Default for TraversalSettings {
    fn default() -> Self {
        let Limits { elements, traversers, bytes, passes, seed: _ } = Limits::default();
        Self {
            elements_max: elements,
            traversers_max: traversers,
            bytes_max: bytes,
            passes_max: passes,
            memory: 1 << 30,
            // As in Gremlin Server.
            deadline_default: Duration::from_secs(30),
            budget_factor_max: 100,
        }
    }
}

impl TraversalSettings {
    /// The highest limits that a traversal can ask for.
    pub(crate) fn limits_max(self) -> Limits {
        let raised = |bound: u64| bound.saturating_mul(self.budget_factor_max);
        Limits {
            elements: raised(self.elements_max),
            traversers: raised(self.traversers_max),
            bytes: raised(self.bytes_max),
            passes: u32::try_from(raised(self.passes_max.into())).unwrap_or(u32::MAX),
            seed: 0,
        }
    }

    /// The limits of one traversal, with a random seed.
    pub(crate) fn limits(self) -> Limits {
        Limits {
            elements: self.elements_max,
            traversers: self.traversers_max,
            bytes: self.bytes_max,
            passes: self.passes_max,
            seed: rand::random(),
        }
    }
}
