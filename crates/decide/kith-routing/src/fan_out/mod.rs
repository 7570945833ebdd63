//! Fan-out controllers: how many groups may take part in a query (Moolle §III-D, §IV).
//!
//! A new controller is one file here and one line in `ALL`. A program may provide its own: it implements
//! [`FanOutController`] and passes it to [`Controllers::choose`].

mod async_union;
mod client_qps;
pub mod config;
mod controllers;
mod early_terminating;
pub mod equations;
mod global_rps;
mod maximum;
mod minimum;
mod pd;
mod selector;
mod static_groups;
#[cfg(test)]
mod tests;

pub use async_union::{AsyncUnion, Penalty};
pub use client_qps::ClientQps;
pub use config::{Argument, ConfigError, ControllerConfig};
pub use controllers::{ControllerStates, Controllers, DecidingController, Decision};
pub use early_terminating::EarlyTerminating;
pub use global_rps::GlobalRps;
pub use kith_types::{FanOutLimit, FanOutLimits, LimitError};
pub use maximum::Maximum;
pub use minimum::Minimum;
pub use pd::Pd;
pub use selector::{Selector, SelectorError};
pub use static_groups::Static;

use crate::LoadSnapshot;
use kith_types::{FanOutKind, OperationName, Timestamp, Workflow};
use std::fmt;
use std::sync::Arc;

/// Makes a controller from its parameters.
type Build = fn(&mut config::Parameters<'_>) -> Result<Arc<dyn FanOutController>, ConfigError>;

/// A controller that users can name.
struct Named {
    name: &'static str,
    /// One line about what the controller decides.
    summary: &'static str,
    build: Build,
}

/// Every controller that users can name.
static ALL: &[Named] = &[
    Named { name: "static", summary: "always the same number of groups", build: static_groups::BUILD },
    Named { name: "minimum", summary: "one group", build: minimum::BUILD },
    Named { name: "maximum", summary: "every group", build: maximum::BUILD },
    Named {
        name: "async-union",
        summary: "as many groups as make the work of client and nodes together least",
        build: async_union::BUILD,
    },
    Named {
        name: "client-qps",
        summary: "as many groups as keep this client within its requests per second",
        build: client_qps::BUILD,
    },
    Named {
        name: "global-rps",
        summary: "as many groups as keep this client and the nodes within their requests per second",
        build: global_rps::BUILD,
    },
    Named { name: "pd", summary: "another controller, smoothed over time", build: pd::BUILD },
    Named {
        name: "early-terminating",
        summary: "what another controller allows while most such queries end early, else one group",
        build: early_terminating::BUILD,
    },
];

/// The names of all controllers.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|named| named.name)
}

/// Returns one line about what a controller decides; `None` for a controller that a program provides.
pub fn summary(name: &str) -> Option<&'static str> {
    ALL.iter().find(|named| named.name == name).map(|named| named.summary)
}

/// The facts about a query that a controller knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryShape {
    /// The operation that makes the fan-out.
    pub operation: OperationName,
    /// The kind of fan-out.
    pub kind: FanOutKind,
    /// The number of keys: `k` in Moolle's equations.
    pub keys: u32,
    /// The workflow, which says who waits for the result.
    pub workflow: Workflow,
    /// The number of groups: `c`. At least 1.
    pub groups: u32,
    /// The number of nodes in each group: `n`. At least 1.
    pub nodes_per_group: u32,
    /// The current time.
    pub now: Timestamp,
}

/// Decides how many groups may take part in a query.
///
/// Implementors may assume that calls with one `state` are sequential and that [`QueryShape::now`] never goes back by much.
/// The caller clamps the result to `1..=query.groups`. State between queries must be kept in `state`, so that equal inputs
/// give equal decisions. There is one `state` for each kind of fan-out for which a selector chooses the controller. Other
/// queries wait while a controller decides, so it must answer from its arguments, without I/O or locks.
pub trait FanOutController: fmt::Debug + Send + Sync {
    /// The name, without parameters, that users type and see in profiles.
    fn name(&self) -> &'static str;

    /// Returns how many groups may take part.
    fn groups(&self, query: &QueryShape, load: &LoadSnapshot, state: &mut ControllerState) -> u32;
}

/// The state that a controller keeps between queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControllerState {
    /// The last answer before rounding; `None` before the first answer.
    pub output: Option<f64>,
    /// The last target.
    pub target: f64,
    /// The time of the last answer.
    pub updated: Timestamp,
    inner: Option<Box<ControllerState>>,
}

impl ControllerState {
    /// Returns the state of the wrapped controller.
    pub fn inner(&mut self) -> &mut ControllerState {
        self.inner.get_or_insert_default()
    }
}

/// Rounds down, so that a limit is kept, and clamps to `1..=query.groups`.
fn whole_groups(groups: f64, query: &QueryShape) -> u32 {
    (groups as u32).clamp(1, query.groups.max(1))
}
