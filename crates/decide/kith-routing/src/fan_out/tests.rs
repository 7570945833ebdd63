//! Tests of controllers against the sentences of Moolle §IV and §V-C.

use super::*;
use crate::GroupLimit;
use crate::load::{KindLoad, NodeLoad};
use kith_types::NodeId;
use proptest::prelude::*;

const NETWORK: OperationName = OperationName::new("network");
const OPERATIONS: [OperationName; 3] = [OperationName::new("path"), NETWORK, OperationName::MGET];

/// Returns a query in the paper's production layout: 10 groups of 20 nodes.
pub(super) fn query(kind: FanOutKind, keys: u32) -> QueryShape {
    let (operation, workflow, now) = (NETWORK, Workflow::Interactive, Timestamp::ZERO);
    QueryShape { operation, kind, keys, workflow, groups: 10, nodes_per_group: 20, now }
}

fn build(text: &str) -> Arc<dyn FanOutController> {
    text.parse::<ControllerConfig>().unwrap().build().unwrap()
}

fn choose(text: &str, query: &QueryShape, load: &LoadSnapshot) -> u32 {
    build(text).groups(query, load, &mut ControllerState::default())
}

fn early_qps(qps: f64) -> LoadSnapshot {
    let mut load = LoadSnapshot { termination_share: Some(0.9), ..LoadSnapshot::default() };
    load.kinds[FanOutKind::EarlyTerminable as usize].qps = qps;
    load
}

#[test]
fn the_break_points_of_the_paper() {
    let groups = |keys| choose("async-union", &query(FanOutKind::AsyncUnion, keys), &LoadSnapshot::default());
    assert!((1..=450).all(|keys| groups(keys) == 1), "less than 450 keys go to one group");
    assert!((1_700..=1_820).all(|keys| groups(keys) == 5), "about 1,800 keys go to five");
    assert!((3_000..=20_000).step_by(100).all(|keys| groups(keys) == 10), "more than 3,000 keys go to all");
    let all: Vec<u32> = (1..4_000).map(groups).collect();
    assert!(all.windows(2).all(|pair| pair[0] <= pair[1]), "more keys never get fewer groups");
}

#[test]
fn as_printed_equation_5_cannot_give_the_break_points() {
    // For any coefficients: if 450 keys stay in one group, then 3,000 do not reach ten.
    for server in (1..400).map(|step| f64::from(step) * 0.05) {
        let text = format!("async-union(server={server}, growth=0)");
        let groups = |keys| choose(&text, &query(FanOutKind::AsyncUnion, keys), &LoadSnapshot::default());
        assert!(groups(449) != 1 || groups(3_000) < 5, "server={server}");
    }
}

#[test]
fn under_25_queries_a_second_all_groups_take_part_and_at_125_few() {
    // §V-C with D_RPS 5,000: 5,000 / (20 × 25) = 10, 5,000 / (20 × 125) = 2.
    let groups =
        |qps| choose("client-qps(5000)", &query(FanOutKind::EarlyTerminable, 1_536), &early_qps(qps));
    assert_eq!([0.0, 10.0, 25.0].map(groups), [10, 10, 10]);
    assert_eq!([26.0, 50.0, 125.0, 126.0, 1_000.0].map(groups), [9, 5, 2, 1, 1], "rounded down, at least 1");
}

#[test]
fn the_request_rate_stays_within_what_is_desired() {
    for qps in 1..=250 {
        let groups =
            choose("global-rps", &query(FanOutKind::EarlyTerminable, 1_536), &early_qps(f64::from(qps)));
        let rps = equations::client_rps(groups, 20, f64::from(qps));
        assert!(rps <= 5_000.0 || groups == 1, "{qps} queries a second make {rps} requests");
    }
}

#[test]
fn servers_limit_the_fan_out_once_their_limit_is_the_lower_one() {
    // Figure 9d: 30 queries per second, about 100 clients. The client's limit allows 5,000 / (20 × 30) = 8 groups, which is
    // 160 requests. Below 2,500, the limit of the servers is the smaller one.
    let mut load = early_qps(30.0);
    load.clients = 100;
    let shape = query(FanOutKind::EarlyTerminable, 1_536);
    let groups = |node: u32| choose(&format!("global-rps(client=5000, node={node})"), &shape, &load);
    assert_eq!([10_000, 2_700, 2_400, 1_500, 600, 10].map(groups), [8, 8, 8, 5, 2, 1]);
}

#[test]
fn what_other_queries_use_is_not_there_to_be_used() {
    let mut load = early_qps(50.0);
    let shape = query(FanOutKind::EarlyTerminable, 1_536);
    assert_eq!(choose("global-rps", &shape, &load), 5);
    load.kinds[FanOutKind::SyncUnion as usize] = KindLoad { qps: 150.0, rps: 3_000.0 };
    assert_eq!(choose("global-rps", &shape, &load), 2, "2,000 of 5,000 requests are left");

    let mut load = early_qps(10.0);
    load.clients = 50;
    load.nodes = vec![NodeLoad { node: NodeId(0), rps: 9_800.0, ..NodeLoad::default() }];
    assert_eq!(choose("global-rps", &shape, &load), 4, "200 of a node's 10,000 requests are left");
}

#[test]
fn early_terminating_queries_follow_the_share_that_ends_early() {
    let shape = query(FanOutKind::EarlyTerminable, 1_536);
    let groups = |share| {
        let load = LoadSnapshot { termination_share: share, ..early_qps(50.0) };
        choose("early-terminating", &shape, &load)
    };
    assert_eq!(groups(Some(0.9)), 5, "as many as global-rps allows");
    assert_eq!(groups(Some(0.1)), 1);
    assert_eq!(groups(None), 1);
}

#[test]
fn early_terminating_never_exceeds_what_global_rps_allows() {
    let shape = query(FanOutKind::EarlyTerminable, 1_536);
    for qps in (0..200).map(f64::from) {
        for share in [0.0, 0.5, 1.0] {
            let load = LoadSnapshot { termination_share: Some(share), ..early_qps(qps) };
            assert!(choose("early-terminating", &shape, &load) <= choose("global-rps", &shape, &load));
        }
    }
}

#[test]
fn defaults_by_kind() {
    let names = |controllers: &Controllers| {
        FanOutKind::ALL.map(|kind| controllers.deciding(&query(kind, 1)).controller.name())
    };
    let of_moolle = ["minimum", "minimum", "minimum", "async-union", "early-terminating", "minimum"];
    assert_eq!(names(&Controllers::of_moolle()), of_moolle);
    let controllers = Controllers::default();
    assert_eq!(names(&controllers), ["minimum", "minimum", "minimum", "async-union", "minimum", "minimum"]);
}

#[test]
fn a_caller_overrules_the_controller_within_what_there_is() {
    let controllers = Controllers::default();
    let shape = query(FanOutKind::NonUnion, 100);
    let mut states = ControllerStates::default();
    let mut decide = |limits: FanOutLimits| {
        let decision = controllers.decide(limits, &shape, &LoadSnapshot::default(), &mut states);
        (decision.limit.0, decision.groups_asked, decision.by.is_none())
    };
    assert_eq!(decide(FanOutLimit::Auto.into()), (1, 1, false));
    assert_eq!(decide(FanOutLimit::Min.into()), (1, 1, true));
    assert_eq!(decide(FanOutLimit::Max.into()), (10, 10, true));
    let groups = [0, 3, 99].map(|groups| decide(FanOutLimit::Groups(groups).into()));
    assert_eq!(groups, [(1, 0, true), (3, 3, true), (10, 99, true)]);
    let by_kind = FanOutLimits::from(FanOutLimit::Max);
    assert_eq!(decide(by_kind.with(FanOutKind::NonUnion, FanOutLimit::Groups(2))), (2, 2, true));
    assert_eq!(decide(by_kind.with(FanOutKind::NonUnion, FanOutLimit::Auto)), (1, 1, false));
    assert_eq!(decide(by_kind.with(FanOutKind::SyncUnion, FanOutLimit::Min)), (10, 10, true));
}

#[derive(Debug)]
struct ByKeys;

impl FanOutController for ByKeys {
    fn name(&self) -> &'static str {
        "by-keys"
    }

    fn groups(&self, query: &QueryShape, _load: &LoadSnapshot, _state: &mut ControllerState) -> u32 {
        query.keys / 100
    }
}

#[test]
fn a_library_user_can_bring_a_controller() {
    let mut controllers = Controllers::default();
    controllers.choose(FanOutKind::NonUnion.into(), "by-keys", Arc::new(ByKeys));
    let mut states = ControllerStates::default();
    let mut limit = |keys| {
        let (shape, load) = (query(FanOutKind::NonUnion, keys), LoadSnapshot::default());
        let decision = controllers.decide(FanOutLimits::default(), &shape, &load, &mut states);
        assert_eq!(decision.by.unwrap().text, "by-keys");
        decision.limit
    };
    assert_eq!([limit(50), limit(700), limit(5_000)], [GroupLimit(1), GroupLimit(7), GroupLimit(10)]);
}

/// Returns every selector that matches something.
fn selectors() -> Vec<Selector> {
    let operations = OPERATIONS.map(Some).into_iter().chain([None]);
    let parts = operations.flat_map(|operation| {
        let kinds = FanOutKind::ALL.map(Some).into_iter().chain([None]);
        kinds.flat_map(move |kind| {
            [None].into_iter().chain(Workflow::ALL.map(Some)).map(move |workflow| Selector {
                operation,
                kind,
                workflow,
            })
        })
    });
    parts.filter(|selector| *selector != Selector::default()).collect()
}

proptest! {
    #[test]
    fn the_most_specific_of_the_chosen_controllers_decides(
        chosen in prop::collection::btree_set(prop::sample::select(selectors()), 0..40),
        operation in prop::sample::select(&OPERATIONS),
        kind in prop::sample::select(&FanOutKind::ALL),
        workflow in prop::sample::select(&Workflow::ALL),
    ) {
        let mut controllers = Controllers::default();
        for selector in &chosen {
            controllers.choose(*selector, &selector.to_string(), Arc::new(ByKeys));
        }
        let matches = |selector: &&Selector| {
            selector.operation.is_none_or(|it| it == operation)
                && selector.kind.is_none_or(|it| it == kind)
                && selector.workflow.is_none_or(|it| it == workflow)
        };
        let named = |it: &&Selector| (it.operation.is_some(), it.kind.is_some(), it.workflow.is_some());
        let expected = chosen.iter().filter(matches).max_by_key(named);
        let shape = QueryShape { operation, workflow, ..query(kind, 1) };
        let deciding = controllers.deciding(&shape);
        prop_assert_eq!(deciding.selector.as_ref(), expected);
        let by_default = Controllers::default().deciding(&shape).text.to_owned();
        prop_assert_eq!(deciding.text, expected.map_or(by_default, Selector::to_string));
    }
}

#[test]
fn each_kind_of_fan_out_has_a_state_of_its_own_under_one_controller() {
    // If the state were shared between kinds, the second would begin where the first one is.
    let mut controllers = Controllers::default();
    let smoothed = build("pd(client-qps(1000))");
    controllers.choose(Selector { operation: Some(NETWORK), ..Selector::default() }, "pd", smoothed);
    let mut load = early_qps(1_000.0);
    load.kinds[FanOutKind::SyncUnion as usize].qps = 10.0;
    let mut states = ControllerStates::default();
    let mut groups =
        |kind| controllers.decide(FanOutLimits::default(), &query(kind, 1_000), &load, &mut states).limit.0;
    assert_eq!(groups(FanOutKind::EarlyTerminable), 1);
    assert_eq!(groups(FanOutKind::SyncUnion), 5);
}

#[test]
fn every_controller_can_be_named_and_stays_within_bounds() {
    for name in names() {
        let controller = build(name);
        assert_eq!(controller.name(), name);
        assert!(summary(name).is_some_and(|summary| !summary.is_empty()));
        let mut state = ControllerState::default();
        for (keys, qps) in [(0, 0.0), (1, 1e12), (u32::MAX, 3.0), (1_000, f64::MIN_POSITIVE)] {
            for groups in [1, 2, 10] {
                let shape =
                    QueryShape { groups, nodes_per_group: 1, ..query(FanOutKind::EarlyTerminable, keys) };
                let chosen = controller.groups(&shape, &early_qps(qps), &mut state);
                assert!((1..=groups).contains(&chosen), "{name}: {chosen} of {groups} groups");
            }
        }
    }
}

#[test]
fn text_and_configuration_are_one() {
    for text in
        ["minimum", "static(3)", "pd(global-rps)", "pd(early-terminating(client-qps(900)), derivative=0.25)"]
    {
        assert_eq!(text.parse::<ControllerConfig>().unwrap().to_string(), text);
    }
    assert_eq!(
        choose(" static ( groups = 4 ) ", &query(FanOutKind::NonUnion, 1), &LoadSnapshot::default()),
        4
    );
}

#[test]
fn what_is_wrong_with_a_configuration_is_said() {
    let error = |text: &str| {
        let built = text.parse::<ControllerConfig>().and_then(|config| config.build());
        built.expect_err(text).to_string()
    };
    assert!(error("maximal").starts_with("unknown controller \"maximal\"; there are static, minimum"));
    assert_eq!(error("minimum(3)"), "controller \"minimum\" takes no argument \"3\"");
    assert_eq!(error("global-rps(server=3)"), "controller \"global-rps\" takes no argument \"server=3\"");
    assert_eq!(
        error("static(0)"),
        "groups of controller \"static\" is 0, but must be a whole number from 1 up"
    );
    assert_eq!(
        error("pd(proportional=0)"),
        "proportional of controller \"pd\" is 0, but must be more than 0"
    );
    assert!(error("static(3").contains("a comma or a closing parenthesis expected at 8"));
    assert!(error("").contains("a name expected at 0"));
    assert!(error("static(3) 4").contains("the end expected at 10"));
    assert!(error("static(n=x)").contains("a number expected"));
    assert!(error(&"pd(".repeat(40)).contains("at most four"));
}
