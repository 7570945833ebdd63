//! The settings of a session. The same document configures a router.

mod controllers;
#[cfg(test)]
mod tests;
mod traversals;

pub use controllers::OwnControllers;
pub use traversals::TraversalSettings;

use crate::steering::Steering;
use kith_net::security::Dialer;
use kith_net::transport::TransportKind;
use kith_query::{ANSWER_BYTES_MAX, BATCH_KEYS_MAX};
use kith_routing::{ReplicaPolicy, fan_out::SelectorError, load::Hedging, policy};
use kith_wire::millis;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};
use thiserror::Error;

/// The most keys of one read by default. It is twenty times the largest page, and bounds the cost of one query for all
/// others.
const KEYS_MAX_DEFAULT: usize = 100_000;
/// With up to four nodes, a union goes to nearly all of them from six connections on (Moolle, equation 3). Six is the
/// median of real graphs.
const NETWORKS_AT_ONCE_DEFAULT: u32 = 4;
/// The largest possible `answer-bytes-max`. With everything that accompanies the values, an answer is one message
/// (`kith_wire::MESSAGE_BYTES_MAX`).
const ANSWER_BYTES_LIMIT: u64 = 192 << 20;

/// The settings of a session: its routing and its timeouts. Unknown keys are refused with a list of the known ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SessionSettings {
    /// The replica policy of queries that name none.
    pub policy: String,
    /// The replica policy of reads by key that name neither a policy nor a number of groups.
    pub policy_values: String,
    /// Whether late requests are also sent to another node if a query does not say: `on`, `table` or `off`.
    pub hedging: String,
    /// The transport of requests to nodes.
    pub transport: TransportKind,
    /// The zone of this process. Among equally healthy replicas, those in this zone are preferred. If empty, no replica is
    /// preferred.
    pub zone: String,
    /// The region of the zone, if nodes have regions.
    pub region: String,
    /// Fan-out controllers by [`kith_routing::Selector`] (`"network@background" = "static(2)"`). The most specific selector
    /// of a fan-out decides. If none matches, the default of its kind does (Moolle §IV-C).
    pub controllers: BTreeMap<String, String>,
    /// Controllers that the program adds: [`SessionSettings::with_controller`].
    #[serde(skip)]
    pub own_controllers: OwnControllers,
    /// The numbers that controllers steer by if they are not given their own. `kith bench calibrate` writes them.
    pub steering: Steering,
    /// The deadline of queries without one.
    #[serde(with = "millis", rename = "deadline-default-ms")]
    pub deadline_default: Duration,
    /// The longest deadline of a query.
    #[serde(with = "millis", rename = "deadline-max-ms")]
    pub deadline_max: Duration,
    /// The most keys of one read.
    pub keys_max: usize,
    /// The most bytes of the values of one answer.
    pub answer_bytes_max: u64,
    /// If a single group holds everything and has at most this many nodes, a network query asks all of them in one
    /// exchange. 0 disables this.
    pub networks_at_once: u32,
    /// The bounds of traversals in Gremlin.
    pub traversals: TraversalSettings,
    /// The dialer of the connections to routers and nodes. The program sets it, because it reads the certificates and
    /// tokens.
    #[serde(skip)]
    pub dialer: Dialer,
    /// Whether every query is profiled, because the slow log needs plans. Routers set it.
    #[serde(skip)]
    pub trace_all: bool,
    /// Whether this process charges read quotas, so that nodes must not charge them again. Routers set it.
    #[serde(skip)]
    pub admits: bool,
    /// Whether this process tells nodes how long it waits for them, so that their fetches slow down. Routers set it:
    /// nodes ignore reports of other clients.
    #[serde(skip)]
    pub tells_waits: bool,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            policy: "n-groups".to_owned(),
            policy_values: "least-loaded".to_owned(),
            hedging: Hedging::default().name().to_owned(),
            transport: TransportKind::default(),
            zone: String::new(),
            region: String::new(),
            controllers: BTreeMap::new(),
            own_controllers: OwnControllers::default(),
            steering: Steering::default(),
            deadline_default: Duration::from_secs(5),
            deadline_max: Duration::from_secs(60),
            keys_max: KEYS_MAX_DEFAULT,
            answer_bytes_max: ANSWER_BYTES_MAX as u64,
            networks_at_once: NETWORKS_AT_ONCE_DEFAULT,
            traversals: TraversalSettings::default(),
            dialer: Dialer::default(),
            trace_all: false,
            admits: false,
            tells_waits: false,
        }
    }
}

/// The reason why settings are refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SettingsError {
    /// There is no policy of this name.
    #[error("there is no policy {name:?}; policies: {known}")]
    Policy {
        /// The name as written.
        name: String,
        /// The names of all policies.
        known: String,
    },
    /// There is no hedging mode of this name.
    #[error("hedging {text:?} is none of on, table, off")]
    Hedging {
        /// The mode as written.
        text: String,
    },
    /// A bound is 0, or above its maximum.
    #[error("{what} is {got}, but must be from 1 to {max}")]
    Bound {
        what: &'static str,
        /// The value as written.
        got: u64,
        /// The maximum.
        max: u64,
    },
    /// A controller has a selector that matches no fan-outs.
    #[error("controllers: {0}")]
    Selector(SelectorError),
    /// There is no controller of this name, or its parameters are wrong.
    #[error("controller {text:?} of {selector}: {detail}")]
    Controller {
        /// The selector of the controller.
        selector: String,
        /// The controller as written.
        text: String,
        /// A description of its fault.
        detail: String,
    },
}

impl SessionSettings {
    /// Looks up the policy of queries that name none.
    ///
    /// # Errors
    /// [`SettingsError::Policy`] if there is no such policy.
    pub fn policy(&self) -> Result<&'static dyn ReplicaPolicy, SettingsError> {
        policy_named(&self.policy)
    }

    /// Looks up the policy of reads by key that name none.
    ///
    /// # Errors
    /// [`SettingsError::Policy`] if there is no such policy.
    pub fn policy_values(&self) -> Result<&'static dyn ReplicaPolicy, SettingsError> {
        policy_named(&self.policy_values)
    }

    /// Whether late requests are hedged if a query does not say.
    ///
    /// # Errors
    /// [`SettingsError::Hedging`] if the setting is wrong.
    pub fn hedging(&self) -> Result<Hedging, SettingsError> {
        Hedging::by_name(&self.hedging).ok_or_else(|| SettingsError::Hedging { text: self.hedging.clone() })
    }

    /// Checks the bounds of queries.
    ///
    /// # Errors
    /// [`SettingsError::Bound`] if a bound is 0 or above its maximum.
    pub fn check_bounds(&self) -> Result<(), SettingsError> {
        let &TraversalSettings {
            elements_max,
            traversers_max,
            bytes_max,
            passes_max,
            memory,
            deadline_default: _,
            budget_factor_max,
        } = &self.traversals;
        for (what, got, max) in [
            ("traversals.elements-max", elements_max, u64::MAX),
            ("traversals.traversers-max", traversers_max, u64::MAX),
            ("traversals.bytes-max", bytes_max, u64::MAX),
            ("traversals.passes-max", passes_max.into(), u32::MAX.into()),
            ("traversals.memory", memory, u64::MAX),
            ("traversals.budget-factor-max", budget_factor_max, u64::MAX),
            ("keys-max", self.keys_max as u64, BATCH_KEYS_MAX as u64),
            ("answer-bytes-max", self.answer_bytes_max, ANSWER_BYTES_LIMIT),
        ] {
            if got == 0 || max < got {
                return Err(SettingsError::Bound { what, got, max });
            }
        }
        Ok(())
    }
}

fn policy_named(name: &str) -> Result<&'static dyn ReplicaPolicy, SettingsError> {
    policy::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = policy::ALL.iter().map(|policy| policy.name()).collect();
        SettingsError::Policy { name: name.to_owned(), known: names.join(", ") }
    })
}
