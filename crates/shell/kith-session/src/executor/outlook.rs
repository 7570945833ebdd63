//! The forecast for a fan-out whose keys are not known yet: the controller, the replica policy and the hedging that
//! would decide about it.

use super::{Executor, FanOutCall, plan::asked};
use kith_query::QueryError;
use kith_routing::{
    FanOutLimit, ReplicaPolicy, Selector, fan_out,
    load::{Hedging, RequestKind},
};
use kith_types::FanOutKind;
use std::fmt::{self, Display, Formatter};

/// The controller, the replica policy and the hedging that would decide about the fan-outs of one kind.
pub(crate) struct Outlook {
    kind: FanOutKind,
    purpose: &'static str,
    groups: usize,
    /// The limit that the caller wants; `Auto` leaves it to the controller.
    limit: FanOutLimit,
    /// The controller as written, and its name.
    controller: (String, &'static str),
    selector: Option<Selector>,
    policy: &'static dyn ReplicaPolicy,
    hedging: Hedging,
}

impl Outlook {
    /// Returns the controller, the policy and the hedging that would decide about a fan-out like this, whatever its
    /// keys are. Decides nothing and asks no node.
    ///
    /// # Errors
    /// [`QueryError::UnknownPolicy`].
    pub fn of(executor: &Executor, asking: &FanOutCall<'_>) -> Result<Self, QueryError> {
        let &FanOutCall { topology, pinned, fan_out, options, .. } = asking;
        let availability = executor.fleet.availability_within(&topology.table, &pinned.reach);
        let view = topology.table.view(&availability);
        let keys = fan_out.scope.key_count().unwrap_or_default();
        let query = executor.shape(asking, &view, keys);
        let deciding = executor.controllers.deciding(&query);
        let asked: RequestKind = asked(fan_out);
        Ok(Self {
            kind: query.kind,
            purpose: fan_out.purpose,
            groups: view.group_count(),
            limit: options.fan_out.of(query.kind),
            controller: (deciding.text.to_owned(), deciding.controller.name()),
            selector: deciding.selector,
            policy: executor.policy_for(asked, &query, options)?,
            hedging: options.hedging.unwrap_or(executor.hedging),
        })
    }

    /// The meanings of the names of the controller and the policy, one per line.
    pub fn legend(&self) -> Vec<String> {
        let (_, name) = &self.controller;
        let controller = match self.limit {
            FanOutLimit::Auto => {
                fan_out::summary(name).map(|summary| format!("controller {name}: {summary}"))
            }
            FanOutLimit::Min | FanOutLimit::Max | FanOutLimit::Groups(_) => None,
        };
        let policy = format!("policy {}: {}", self.policy.name(), self.policy.summary());
        controller.into_iter().chain([policy]).collect()
    }
}

impl Display for Outlook {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { kind, purpose, groups, limit, controller: (controller, _), .. } = self;
        write!(f, "{} {purpose}: ", kind.name())?;
        let caller = match *limit {
            FanOutLimit::Min => Some(1),
            FanOutLimit::Max => Some(*groups),
            FanOutLimit::Groups(asked) => Some((asked as usize).clamp(1, (*groups).max(1))),
            FanOutLimit::Auto => None,
        };
        match (caller, self.selector) {
            (Some(allowed), _) => write!(f, "{allowed} of {groups} groups, by the caller's fan_out")?,
            (None, Some(selector)) => {
                write!(
                    f,
                    "of {groups} groups, as {controller} decides, which the settings choose for {selector}"
                )?;
            }
            (None, None) => {
                write!(f, "of {groups} groups, as {controller} decides, the default of this kind")?
            }
        }
        write!(f, "; policy {}; hedging {}", self.policy.name(), self.hedging.name())
    }
}
