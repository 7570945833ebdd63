//! What a session is configured with. The same document configures a router.

use kith_routing::{Controllers, ReplicaPolicy, policy};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};
use thiserror::Error;

/// How a session routes and how long it waits. Unknown keys are refused, with the ones there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SessionSettings {
    /// Replica policy of queries that name none.
    pub policy: String,
    /// Fan-out controller by fan-out kind (`sync-union = "minimum"`); kinds left out keep their default (Moolle §IV-C).
    pub controllers: BTreeMap<String, String>,
    /// What controllers steer by; written by `kith bench calibrate`.
    pub steering: Steering,
    /// Deadline of queries that bring none.
    #[serde(with = "millis", rename = "deadline-default-ms")]
    pub deadline_default: Duration,
    /// No query may take longer.
    #[serde(with = "millis", rename = "deadline-max-ms")]
    pub deadline_max: Duration,
    /// Profile every query: the slow log needs plans. Set by routers.
    #[serde(skip)]
    pub trace_all: bool,
}

/// Measured limits and penalties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Steering {
    /// D_RPS: requests per second that this client sustains (Moolle, equation 7).
    pub client_requests_per_second: f64,
    /// D_SRPS: requests per second that one node sustains (Moolle, equation 10).
    pub node_requests_per_second: f64,
    /// Weight of the client's penalty in equation 5.
    pub penalty_client: f64,
    /// Weight of the nodes' penalty in equation 5.
    pub penalty_server: f64,
}

impl Default for Steering {
    /// The paper's measured rates (Moolle §V-C), and penalties that give its break points.
    fn default() -> Self {
        Self {
            client_requests_per_second: 5_000.0,
            node_requests_per_second: 10_000.0,
            penalty_client: 1.0,
            penalty_server: 1.0,
        }
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            policy: "n-groups".to_owned(),
            controllers: BTreeMap::new(),
            steering: Steering::default(),
            deadline_default: Duration::from_secs(5),
            deadline_max: Duration::from_secs(60),
            trace_all: false,
        }
    }
}

/// Settings name something that does not exist.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// There is no such policy.
    #[error("there is no policy {name:?}; policies: {known}")]
    Policy {
        /// As written.
        name: String,
        /// Those there are.
        known: String,
    },
    /// There is no such controller, or its parameters make no sense.
    #[error("controller {text:?} of {kind}: {detail}")]
    Controller {
        /// The kind of fan-out it is for.
        kind: String,
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
        policy::by_name(&self.policy).ok_or_else(|| {
            let names: Vec<&str> = policy::ALL.iter().map(|policy| policy.name()).collect();
            SettingsError::Policy { name: self.policy.clone(), known: names.join(", ") }
        })
    }

    /// The controllers, by kind.
    ///
    /// # Errors
    /// [`SettingsError::Controller`].
    pub fn controllers(&self) -> Result<Controllers, SettingsError> {
        Ok(Controllers::default())
    }
}

/// Durations as whole milliseconds.
pub mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    /// As a number of milliseconds.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    /// From a number of milliseconds.
    ///
    /// # Errors
    /// If it is not a whole number.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
