//! What a session is configured with. The same document configures a router.

use crate::{
    ANSWER_BYTES_MAX, BATCH_KEYS_MAX, security::Dialer, steering::Steering, transport::TransportKind,
};
use kith_routing::{Controllers, ReplicaPolicy, fan_out::ControllerConfig, load::Hedging, policy};
use kith_types::FanOutKind;
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
    /// Fan-out controller by fan-out kind (`sync-union = "minimum"`); kinds left out keep their default (Moolle §IV-C).
    pub controllers: BTreeMap<String, String>,
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
    /// Networks are asked of all nodes in one exchange where one group, of at most so many nodes, holds everything. 0: never.
    pub networks_at_once: u32,
    /// How it connects to others. Set by whoever has the files.
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
        /// Its key.
        what: &'static str,
        /// As written.
        got: u64,
        /// The most it may be.
        max: u64,
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

    /// The controllers, by kind.
    ///
    /// # Errors
    /// [`SettingsError::Controller`].
    pub fn controllers(&self) -> Result<Controllers, SettingsError> {
        if let Some((kind, text)) = self.controllers.iter().find(|(kind, _)| !is_kind(kind)) {
            let kinds = FanOutKind::ALL.map(FanOutKind::name).join(", ");
            return Err(bad_controller(
                kind,
                text,
                format!("there is no such kind of fan-out; kinds: {kinds}"),
            ));
        }
        let mut controllers = Controllers::default();
        for kind in FanOutKind::ALL {
            let text = self.controllers.get(kind.name()).map(String::as_str);
            let Some(text) = text.or_else(|| steered_by_default(kind)) else { continue };
            let built =
                text.parse().and_then(|config: ControllerConfig| self.steering.complete(config).build());
            controllers
                .set(kind, built.map_err(|error| bad_controller(kind.name(), text, error.to_string()))?);
        }
        Ok(controllers)
    }
}

fn policy_named(name: &str) -> Result<&'static dyn ReplicaPolicy, SettingsError> {
    policy::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = policy::ALL.iter().map(|policy| policy.name()).collect();
        SettingsError::Policy { name: name.to_owned(), known: names.join(", ") }
    })
}

fn is_kind(name: &str) -> bool {
    FanOutKind::ALL.iter().any(|kind| kind.name() == name)
}

/// Those of the default controllers (`kith_routing::Controllers`) that steer by numbers.
fn steered_by_default(kind: FanOutKind) -> Option<&'static str> {
    match kind {
        FanOutKind::AsyncUnion => Some("async-union"),
        FanOutKind::SingleKey
        | FanOutKind::NonUnion
        | FanOutKind::SyncUnion
        | FanOutKind::EarlyTerminable
        | FanOutKind::Broadcast => None,
    }
}

fn bad_controller(kind: &str, text: &str, detail: String) -> SettingsError {
    SettingsError::Controller { kind: kind.to_owned(), text: text.to_owned(), detail }
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

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::Workflow;

    fn with(kind: &str, text: &str) -> SessionSettings {
        SessionSettings { controllers: [(kind.to_owned(), text.to_owned())].into(), ..Default::default() }
    }

    fn shown(settings: &SessionSettings, kind: FanOutKind) -> String {
        let controllers = settings.controllers().unwrap();
        format!("{:?}", controllers.controller(kind, Workflow::Interactive))
    }

    #[test]
    fn without_settings_the_controllers_are_the_default_ones() {
        let ours = SessionSettings::default().controllers().unwrap();
        assert_eq!(format!("{ours:?}"), format!("{:?}", Controllers::default()));
    }

    #[test]
    fn a_controller_is_chosen_by_kind() {
        let settings = with("sync-union", "static(3)");
        assert!(shown(&settings, FanOutKind::SyncUnion).contains("groups: 3"));
        assert_eq!(shown(&settings, FanOutKind::NonUnion), "Minimum");
    }

    #[test]
    fn controllers_steer_by_the_measured_numbers() {
        let mut settings = with("early-terminable", "early-terminating");
        settings.steering.node_requests_per_second = 1_234.0;
        settings.steering.penalty_server = 0.25;
        assert!(shown(&settings, FanOutKind::EarlyTerminable).contains("node_rps: 1234"));
        let asynchronous = settings.controllers().unwrap();
        let asynchronous = asynchronous.controller(FanOutKind::SyncUnion, Workflow::Background);
        assert!(format!("{asynchronous:?}").contains("server: 0.25"), "{asynchronous:?}");
    }

    #[test]
    fn bounds_that_bound_nothing_are_refused() {
        assert_eq!(SessionSettings::default().check_bounds(), Ok(()));
        for (keys_max, answer_bytes_max, told) in [
            (0, 1, "keys-max is 0"),
            (BATCH_KEYS_MAX + 1, 1, "must be from 1 to"),
            (1, 0, "answer-bytes-max is 0"),
            (1, u64::MAX, "answer-bytes-max is 18446744073709551615"),
        ] {
            let settings = SessionSettings { keys_max, answer_bytes_max, ..Default::default() };
            assert!(settings.check_bounds().unwrap_err().to_string().contains(told));
        }
    }

    #[test]
    fn what_does_not_exist_is_refused_with_what_there_is() {
        let settings = SessionSettings { hedging: "always".to_owned(), ..Default::default() };
        assert!(settings.hedging().unwrap_err().to_string().contains("table"));
        let settings = SessionSettings { policy_values: "nearest".to_owned(), ..Default::default() };
        assert!(settings.policy_values().is_err_and(|error| error.to_string().contains("least-loaded")));
        for (kind, text, told) in [
            ("sync-onion", "minimum", "sync-union"),
            ("sync-union", "minimal", "minimum"),
            ("sync-union", "static(0)", "static"),
            ("sync-union", "static(", "expected"),
        ] {
            let error = with(kind, text).controllers().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
