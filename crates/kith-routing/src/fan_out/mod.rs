//! Fan-out controllers: how many groups may take part in a query (Moolle §III-D, §IV).
//!
//! A new controller is one file here and one line in `ALL`. A program may bring its own: [`FanOutController`] is the
//! contract, [`Controllers::choose`] the way in.

mod async_union;
mod client_qps;
pub mod config;
mod controllers;
mod early_terminating;
pub mod equations;
mod global_rps;
mod limits;
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
pub use controllers::{ControllerStates, Controllers, Deciding, Decision};
pub use early_terminating::EarlyTerminating;
pub use global_rps::GlobalRps;
pub use limits::{FanOutLimit, FanOutLimits, LimitError};
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
    /// One line on what it decides.
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

/// One line on what a controller decides; `None` of one that a program brought itself.
pub fn summary(name: &str) -> Option<&'static str> {
    ALL.iter().find(|named| named.name == name).map(|named| named.summary)
}

/// What a controller knows of the query at hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryShape {
    /// The operation that makes the fan-out.
    pub operation: OperationName,
    /// What kind of fan-out it is.
    pub kind: FanOutKind,
    /// How many keys it has: `k` of Moolle's equations.
    pub keys: u32,
    /// Who waits for it.
    pub workflow: Workflow,
    /// Groups there are: `c`. At least 1.
    pub groups: u32,
    /// Nodes in each: `n`. At least 1.
    pub nodes_per_group: u32,
    /// The time.
    pub now: Timestamp,
}

/// Decides how many groups may take part in a query.
///
/// Implementors may assume that calls with one `state` come one after another and
/// that [`QueryShape::now`] does not run backwards by much. The caller clamps the
/// result to `1..=query.groups`. What must be kept between queries goes into
/// `state`, of which there is one for each kind of fan-out that a selector gives to
/// the controller, so that equal inputs give equal decisions. A controller is asked
/// while others wait: it answers from its arguments, without I/O or locks.
pub trait FanOutController: fmt::Debug + Send + Sync {
    /// What users type and read in profiles, without parameters.
    fn name(&self) -> &'static str;

    /// How many groups may take part.
    fn groups(&self, query: &QueryShape, load: &LoadSnapshot, state: &mut ControllerState) -> u32;
}

/// What a controller keeps between queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControllerState {
    /// The last answer, before rounding; `None` before the first.
    pub output: Option<f64>,
    /// The value last aimed at.
    pub target: f64,
    /// When that was.
    pub updated: Timestamp,
    inner: Option<Box<ControllerState>>,
}

impl ControllerState {
    /// The state of a controller that this one wraps.
    pub fn inner(&mut self) -> &mut ControllerState {
        self.inner.get_or_insert_default()
    }
}

/// Rounds down, so that a limit is kept, within `1..=query.groups`.
fn whole_groups(groups: f64, query: &QueryShape) -> u32 {
    (groups as u32).clamp(1, query.groups.max(1))
}
