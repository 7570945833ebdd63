//! What a session is configured with. The same document configures a router.

use crate::{steering::Steering, transport::TransportKind};
use kith_api::{ANSWER_BYTES_MAX, BATCH_KEYS_MAX};
use kith_net::security::Dialer;
use kith_routing::{
    Controllers, FanOutController, ReplicaPolicy, Selector,
    fan_out::{ControllerConfig, SelectorError},
    load::Hedging,
    policy,
};
use kith_types::FanOutKind;
use kith_wire::millis;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
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
    /// Fan-out controllers by [`Selector`] (`"network@background" = "static(2)"`). The most specific selector of a fan-out
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

    /// The same settings with a controller that the program brings. It decides about the fan-outs of `selector`, written as in
    /// `controllers`, whose entry of the same selector it replaces.
    ///
    /// # Errors
    /// [`SettingsError::Selector`].
    pub fn with_controller(
        mut self,
        selector: &str,
        controller: Arc<dyn FanOutController>,
    ) -> Result<Self, SettingsError> {
        let selector: Selector = selector.parse().map_err(SettingsError::Selector)?;
        self.own_controllers.0.insert(selector, controller);
        Ok(self)
    }

    /// The controllers.
    ///
    /// # Errors
    /// [`SettingsError::Selector`], [`SettingsError::Controller`].
    pub fn controllers(&self) -> Result<Controllers, SettingsError> {
        let mut controllers = Controllers::default();
        for kind in FanOutKind::ALL {
            if let Some(text) = steered_by_default(kind) {
                controllers.set_default(kind, self.controller(kind.name(), text)?.1);
            }
        }
        for (selector, text) in &self.controllers {
            let selects: Selector = selector.parse().map_err(SettingsError::Selector)?;
            let (text, controller) = self.controller(selector, text)?;
            controllers.choose(selects, &text, controller);
        }
        for (selector, controller) in &self.own_controllers.0 {
            controllers.choose(*selector, controller.name(), Arc::clone(controller));
        }
        Ok(controllers)
    }

    /// A controller as it is written, and the same with the numbers that it steers by.
    fn controller(
        &self,
        selector: &str,
        text: &str,
    ) -> Result<(String, Arc<dyn FanOutController>), SettingsError> {
        let built = text.parse().and_then(|config: ControllerConfig| {
            let config = self.steering.complete(config);
            Ok((config.to_string(), config.build()?))
        });
        built.map_err(|error| SettingsError::Controller {
            selector: selector.to_owned(),
            text: text.to_owned(),
            detail: error.to_string(),
        })
    }
}

/// Controllers that a program brings, each with what it decides about.
#[derive(Clone, Debug, Default)]
pub struct OwnControllers(BTreeMap<Selector, Arc<dyn FanOutController>>);

impl OwnControllers {
    /// Whether the program brings none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Equal if they are the same objects.
impl PartialEq for OwnControllers {
    fn eq(&self, other: &Self) -> bool {
        let same = |((one, of_one), (two, of_two)): ((&Selector, &Arc<_>), (&Selector, &Arc<_>))| {
            one == two && Arc::ptr_eq(of_one, of_two)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

fn policy_named(name: &str) -> Result<&'static dyn ReplicaPolicy, SettingsError> {
    policy::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = policy::ALL.iter().map(|policy| policy.name()).collect();
        SettingsError::Policy { name: name.to_owned(), known: names.join(", ") }
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use kith_routing::{LoadSnapshot, QueryShape, fan_out::ControllerState};
    use kith_types::{OperationName, Timestamp, Workflow};

    fn with(controllers: &[(&str, &str)]) -> SessionSettings {
        let owned = controllers.iter().map(|(selector, text)| ((*selector).to_owned(), (*text).to_owned()));
        SessionSettings { controllers: owned.collect(), ..Default::default() }
    }

    fn query(operation: OperationName, kind: FanOutKind, workflow: Workflow) -> QueryShape {
        QueryShape { operation, kind, workflow, keys: 9, groups: 5, nodes_per_group: 2, now: Timestamp::ZERO }
    }

    /// The controller of an interactive network query, as it was written.
    fn shown(settings: &SessionSettings, kind: FanOutKind) -> String {
        let controllers = settings.controllers().unwrap();
        let query = query(OperationName::Network, kind, Workflow::Interactive);
        controllers.deciding(&query).text.to_owned()
    }

    #[test]
    fn without_settings_the_controllers_are_the_default_ones() {
        let ours = SessionSettings::default().controllers().unwrap();
        assert_eq!(format!("{ours:?}"), format!("{:?}", Controllers::default()));
    }

    #[test]
    fn a_controller_is_chosen_by_operation_kind_and_workflow() {
        let settings = with(&[
            ("sync-union", "static(3)"),
            ("network@background", "static(4)"),
            ("network:single-key", "maximum"),
        ]);
        assert_eq!(shown(&settings, FanOutKind::SyncUnion), "static(3)");
        assert_eq!(shown(&settings, FanOutKind::SingleKey), "maximum");
        assert_eq!(shown(&settings, FanOutKind::NonUnion), "minimum");
        let controllers = settings.controllers().unwrap();
        let text = |operation, kind, workflow| controllers.deciding(&query(operation, kind, workflow)).text;
        let (single, union) = (FanOutKind::SingleKey, FanOutKind::AsyncUnion);
        assert_eq!(text(OperationName::Network, union, Workflow::Background), "static(4)");
        assert_eq!(text(OperationName::Network, single, Workflow::Background), "maximum", "the kind first");
        assert_eq!(text(OperationName::Path, union, Workflow::Background), "async-union");
    }

    #[test]
    fn controllers_steer_by_the_measured_numbers() {
        let mut settings = with(&[("early-terminable", "early-terminating")]);
        settings.steering.node_requests_per_second = 1_234.0;
        settings.steering.penalty_server = 0.25;
        assert!(shown(&settings, FanOutKind::EarlyTerminable).contains("node=1234"));
        let controllers = settings.controllers().unwrap();
        let background = query(OperationName::Network, FanOutKind::AsyncUnion, Workflow::Background);
        let by_default = controllers.deciding(&background).controller;
        assert!(format!("{by_default:?}").contains("server: 0.25"), "{by_default:?}");
    }

    #[derive(Debug)]
    struct Own;

    impl FanOutController for Own {
        fn name(&self) -> &'static str {
            "own"
        }

        fn groups(&self, _: &QueryShape, _: &LoadSnapshot, _: &mut ControllerState) -> u32 {
            4
        }
    }

    #[test]
    fn a_program_brings_controllers_of_its_own() {
        let settings = with(&[("network", "static(3)"), ("sync-union", "static(2)")]);
        let own: Arc<dyn FanOutController> = Arc::new(Own);
        let brought = settings.clone().with_controller("network", Arc::clone(&own)).unwrap();
        assert_eq!(shown(&brought, FanOutKind::SyncUnion), "own");
        assert_ne!(brought, settings);
        assert_eq!(brought, settings.clone().with_controller("network", own).unwrap());
        assert_ne!(brought, settings.clone().with_controller("network", Arc::new(Own)).unwrap());
        let error = settings.with_controller("netwrk", Arc::new(Own)).unwrap_err().to_string();
        assert!(error.contains("operations: connections"), "{error}");
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
        for (selector, text, told) in [
            ("sync-onion", "minimum", "sync-union"),
            ("sync-onion", "minimum", "operations: connections"),
            ("network@nightly", "minimum", "workflows: interactive, background"),
            ("sync-union", "minimal", "minimum"),
            ("sync-union", "static(0)", "static"),
            ("sync-union", "static(", "expected"),
        ] {
            let error = with(&[(selector, text)]).controllers().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
