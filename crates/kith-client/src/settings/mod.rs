//! What a session is configured with. The same document configures a router.

mod controllers;
#[cfg(test)]
mod tests;

pub use controllers::OwnControllers;

use crate::steering::Steering;
use kith_api::{ANSWER_BYTES_MAX, BATCH_KEYS_MAX};
use kith_net::security::Dialer;
use kith_net::transport::TransportKind;
use kith_routing::{ReplicaPolicy, fan_out::SelectorError, load::Hedging, policy};
use kith_wire::millis;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};
use thiserror::Error;

/// The most keys of one read, unless the settings say otherwise: twenty of the largest pages there are, and a bound on what one
/// query costs everybody else.
const KEYS_MAX_DEFAULT: usize = 100_000;
/// Up to four nodes a union goes to nearly all of them from six connections on (Moolle, equation 3): the median of real graphs.
const NETWORKS_AT_ONCE_DEFAULT: u32 = 4;
/// The most that `answer-bytes-max` may be: with all that comes beside the values, an answer is one message
/// (`kith_wire::MESSAGE_BYTES_MAX`).
const ANSWER_BYTES_LIMIT: u64 = 192 << 20;

/// How a session routes and how long it waits. Unknown keys are refused, with the ones there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SessionSettings {
    /// Replica policy of queries that name none.
    pub policy: String,
    /// Replica policy of reads by key that name none, nor how many groups may take part.
    pub policy_values: String,
    /// Whether late requests are sent to another node as well, where a query does not say: `on`, `table` or `off`.
    pub hedging: String,
    /// What requests to nodes travel in.
    pub transport: TransportKind,
    /// The zone of this process: equally healthy replicas in it are preferred. Empty: none is.
    pub zone: String,
    /// The region that the zone is in, where nodes are labelled with one.
    pub region: String,
    /// Fan-out controllers by [`kith_routing::Selector`] (`"network@background" = "static(2)"`). The most specific selector of a fan-out
    /// decides; without one, the default of its kind (Moolle §IV-C).
    pub controllers: BTreeMap<String, String>,
    /// Controllers that the program brings: [`SessionSettings::with_controller`].
    #[serde(skip)]
    pub own_controllers: OwnControllers,
    /// What controllers steer by where they are not told themselves; written by `kith bench calibrate`.
    pub steering: Steering,
    /// Deadline of queries that bring none.
    #[serde(with = "millis", rename = "deadline-default-ms")]
    pub deadline_default: Duration,
    /// No query may take longer.
    #[serde(with = "millis", rename = "deadline-max-ms")]
    pub deadline_max: Duration,
    /// The most keys of one read.
    pub keys_max: usize,
    /// The most bytes of the values of one answer.
    pub answer_bytes_max: u64,
    /// If a single group holds everything and has at most this many nodes, a network query asks all of them in one exchange.
    /// 0: never.
    pub networks_at_once: u32,
    /// How it connects to routers and nodes. Set by the program, which reads the certificates and tokens.
    #[serde(skip)]
    pub dialer: Dialer,
    /// Profile every query: the slow log needs plans. Set by routers.
    #[serde(skip)]
    pub trace_all: bool,
    /// It reads only what was taken from read quotas already. Set by routers.
    #[serde(skip)]
    pub admits: bool,
    /// It tells nodes how long it waits for them, so that their fetches give way. Set by routers: nodes listen to nobody else.
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
            dialer: Dialer::default(),
            trace_all: false,
            admits: false,
            tells_waits: false,
        }
    }
}

/// Settings name something that does not exist.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SettingsError {
    /// There is no such policy.
    #[error("there is no policy {name:?}; policies: {known}")]
    Policy {
        /// As written.
        name: String,
        /// Those there are.
        known: String,
    },
    /// There is no such way to hedge.
    #[error("hedging {text:?} is none of on, table, off")]
    Hedging {
        /// As written.
        text: String,
    },
    /// A bound is none, or above what any may be.
    #[error("{what} is {got}, but must be from 1 to {max}")]
    Bound {
        what: &'static str,
        /// As written.
        got: u64,
        /// The most it may be.
        max: u64,
    },
    /// A controller is for fan-outs that there are not.
    #[error("controllers: {0}")]
    Selector(SelectorError),
    /// There is no such controller, or its parameters make no sense.
    #[error("controller {text:?} of {selector}: {detail}")]
    Controller {
        /// What it is for.
        selector: String,
        /// As written.
        text: String,
        /// What is wrong.
        detail: String,
    },
}

impl SessionSettings {
    /// The policy of queries that name none.
    ///
    /// # Errors
    /// [`SettingsError::Policy`].
    pub fn policy(&self) -> Result<&'static dyn ReplicaPolicy, SettingsError> {
        policy_named(&self.policy)
    }

    /// The policy of reads by key that name none.
    ///
    /// # Errors
    /// [`SettingsError::Policy`].
    pub fn policy_values(&self) -> Result<&'static dyn ReplicaPolicy, SettingsError> {
        policy_named(&self.policy_values)
    }

    /// Whether late requests are hedged where a query does not say.
    ///
    /// # Errors
    /// [`SettingsError::Hedging`].
    pub fn hedging(&self) -> Result<Hedging, SettingsError> {
        Hedging::by_name(&self.hedging).ok_or_else(|| SettingsError::Hedging { text: self.hedging.clone() })
    }

    /// Whether the bounds of queries are ones.
    ///
    /// # Errors
    /// [`SettingsError::Bound`].
    pub fn check_bounds(&self) -> Result<(), SettingsError> {
        for (what, got, max) in [
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
