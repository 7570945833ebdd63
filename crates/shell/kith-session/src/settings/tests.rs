//! Settings: the controllers that they choose, and the bounds that they refuse.

use super::*;
use kith_query::{NetworkQuery, PathQuery};
use kith_routing::{Controllers, FanOutController, LoadSnapshot, QueryShape, fan_out::ControllerState};
use kith_types::{FanOutKind, OperationName, Timestamp, Workflow};
use std::sync::Arc;

fn with(controllers: &[(&str, &str)]) -> SessionSettings {
    let owned = controllers.iter().map(|(selector, text)| ((*selector).to_owned(), (*text).to_owned()));
    SessionSettings { controllers: owned.collect(), ..Default::default() }
}

fn query(operation: OperationName, kind: FanOutKind, workflow: Workflow) -> QueryShape {
    QueryShape { operation, kind, workflow, keys: 9, groups: 5, nodes_per_group: 2, now: Timestamp::ZERO }
}

/// The text of the controller of an interactive network query.
fn shown(settings: &SessionSettings, kind: FanOutKind) -> String {
    let controllers = settings.controllers().unwrap();
    let query = query(NetworkQuery::NAME, kind, Workflow::Interactive);
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
    assert_eq!(text(NetworkQuery::NAME, union, Workflow::Background), "static(4)");
    assert_eq!(text(NetworkQuery::NAME, single, Workflow::Background), "maximum", "the kind first");
    assert_eq!(text(PathQuery::NAME, union, Workflow::Background), "async-union");
}

#[test]
fn controllers_steer_by_the_measured_numbers() {
    let mut settings = with(&[("early-terminable", "early-terminating")]);
    settings.steering.node_requests_per_second = 1_234.0;
    settings.steering.penalty_server = 0.25;
    assert!(shown(&settings, FanOutKind::EarlyTerminable).contains("node=1234"));
    let controllers = settings.controllers().unwrap();
    let background = query(NetworkQuery::NAME, FanOutKind::AsyncUnion, Workflow::Background);
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
    for (keys_max, answer_bytes_max, expected) in [
        (0, 1, "keys-max is 0"),
        (BATCH_KEYS_MAX + 1, 1, "must be from 1 to"),
        (1, 0, "answer-bytes-max is 0"),
        (1, u64::MAX, "answer-bytes-max is 18446744073709551615"),
    ] {
        let settings = SessionSettings { keys_max, answer_bytes_max, ..Default::default() };
        assert!(settings.check_bounds().unwrap_err().to_string().contains(expected));
    }
}

#[test]
fn what_does_not_exist_is_refused_with_what_there_is() {
    let settings = SessionSettings { hedging: "always".to_owned(), ..Default::default() };
    assert!(settings.hedging().unwrap_err().to_string().contains("table"));
    let settings = SessionSettings { policy_values: "nearest".to_owned(), ..Default::default() };
    assert!(settings.policy_values().is_err_and(|error| error.to_string().contains("least-loaded")));
    for (selector, text, expected) in [
        ("sync-onion", "minimum", "sync-union"),
        ("sync-onion", "minimum", "operations: connections"),
        ("network@nightly", "minimum", "workflows: interactive, background"),
        ("sync-union", "minimal", "minimum"),
        ("sync-union", "static(0)", "static"),
        ("sync-union", "static(", "expected"),
    ] {
        let error = with(&[(selector, text)]).controllers().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
