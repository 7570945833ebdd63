//! The behaviour that Venice's own tests require of retries and hedges. Each test is named after its entry in the list
//! distilled from them (RT, RF, OV; RO and CO are in `replicas.rs`, HH and RO-4 beside `LoadMeter`, PT-1 is `schedules.rs`).

mod support;

use kith_routing::execution::{
    Action, Answers, Budgets, Disposition, Event, ExecutionOptions, FailureClass, HedgeAbort, HedgeCounts,
    HedgeRule, MissingReason, Outcome, RequestId, Verdict,
};
use kith_routing::{
    Assignment, Availability, Execution, FanOutPlan, GroupLimit, LoadSnapshot, PolicyInputs, PolicyState,
    RoutingTable, Strategy, policy,
};
use kith_types::{NodeId, PartitionId, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::time::Duration;
use support::{owned_by, table};

fn at(millis: u64) -> Timestamp {
    Timestamp(Duration::from_millis(millis))
}

/// Three groups of two nodes and four partitions, with a query of one key in each partition, planned on group 0.
///
/// ```text
/// g0: n0[0 2] n1[1 3]
/// g1: n2[0 1] n3[2 3]
/// g2: n4[0 3] n5[1 2]
/// ```
struct Fixture {
    table: RoutingTable,
    availability: Availability,
    execution: Execution,
    budgets: Budgets,
    outcome: Option<Outcome>,
}

const LATE: Duration = Duration::from_millis(10);

fn hedged() -> ExecutionOptions {
    let rule = HedgeRule::fixed(LATE, Duration::from_millis(4));
    ExecutionOptions { hedging: Some(rule), deadline: Some(at(100)), ..ExecutionOptions::default() }
}

impl Fixture {
    fn new(options: ExecutionOptions) -> Self {
        let owners: &[&[u32]] = &[&[0, 1, 0, 1], &[2, 2, 3, 3], &[4, 5, 5, 4]];
        Self::over(owned_by(owners, &|node| node / 2, Strategy::ReplicaGroups), options)
    }

    fn over(table: RoutingTable, options: ExecutionOptions) -> Self {
        let partitions: Vec<PartitionId> = table.partition_count().iter().collect();
        let first = table.groups()[0].id;
        let assignments = table.nodes().iter().filter(|node| node.group == first).map(|node| Assignment {
            node: node.id,
            keys: table.partitions_of(node.id).iter().map(|partition| partition.0).collect(),
        });
        let plan = FanOutPlan {
            policy: "test",
            groups: vec![first],
            assignments: assignments.collect(),
            spilled_keys: 0,
        };
        let execution = Execution::new(&plan, &partitions, options, at(0));
        let availability = Availability::all(&table);
        let mut fixture =
            Self { table, availability, execution, budgets: Budgets::unlimited(), outcome: None };
        fixture.next();
        fixture
    }

    fn next(&mut self) -> Vec<String> {
        let view = self.table.view(&self.availability);
        let actions = self.execution.next(&view, &mut self.budgets);
        let say = |action: Action| match action {
            Action::Send { request, node, keys, cause } => {
                format!("r{}: {} {node}{keys:?}", request.0, cause.name())
            }
            Action::Cancel { request, end } => format!("cancel r{} {end:?}", request.0),
            Action::Use { request } => format!("use r{}", request.0),
            Action::Refresh { epoch } => format!("refresh {epoch}"),
            Action::Finish(outcome) => {
                let said = format!("{:?}", outcome.verdict);
                assert!(self.outcome.replace(outcome).is_none(), "it ends once");
                said
            }
        };
        actions.into_iter().map(say).collect()
    }

    fn on(&mut self, event: Event, now: u64) -> Vec<String> {
        let disposition = self.execution.on(event, at(now));
        assert_ne!(disposition, Disposition::Ignored);
        self.next()
    }

    fn reply(&mut self, request: u32, now: u64) -> Vec<String> {
        self.on(Event::Reply { request: RequestId(request) }, now)
    }

    fn fail(&mut self, request: u32, class: FailureClass, now: u64) -> Vec<String> {
        self.on(Event::Failed { request: RequestId(request), class }, now)
    }

    /// Fires the hedge timer.
    fn late(&mut self, now: u64) -> Vec<String> {
        self.on(Event::HedgeDue { caught_up: Timestamp::ZERO }, now)
    }

    fn down(&mut self, nodes: &[u32]) {
        let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
        self.availability = Availability::all_but(&self.table, &nodes);
    }

    fn hedges(&self) -> HedgeCounts {
        self.outcome.as_ref().expect("it is over").hedges
    }
}

const OVER: FailureClass = FailureClass::Overloaded;
const BROKEN: FailureClass = FailureClass::Connection;
const NONE: [&str; 0] = [];

/// RT-1: one server of two is stopped, and every round is answered. Hedges without another replica are counted as aborted,
/// not as failed.
#[test]
fn rt_1_with_one_server_of_two_stopped_every_round_is_answered() {
    for round in 0..100u64 {
        let table = owned_by(&[&[0, 0], &[1, 1]], &|node| node, Strategy::ReplicaGroups);
        let mut fixture = Fixture::over(table, ExecutionOptions { seed: round, ..hedged() });
        if round % 2 == 0 {
            // It was not known that n0 is dead.
            assert_eq!(fixture.fail(0, BROKEN, 1), ["r1: retry n1[0, 1]"]);
            assert_eq!(fixture.execution.next_hedge(), None, "a retry is not retried");
            assert_eq!(fixture.reply(1, 30), ["Complete"]);
            assert_eq!(fixture.hedges(), HedgeCounts::default());
        } else {
            fixture.down(&[1]);
            assert_eq!(fixture.late(10), NONE);
            assert_eq!(fixture.reply(0, 30), ["Complete"]);
            assert_eq!(fixture.hedges().aborted(HedgeAbort::SlowRoute), 1);
        }
    }
}

/// RT-2: an overloaded node is not asked again, and no other node is asked for its keys. The caller sees the error.
#[test]
fn rt_2_overloaded_is_never_retried() {
    let mut fixture = Fixture::new(hedged());
    assert_eq!(fixture.fail(0, OVER, 1), ["cancel r1 Cancelled", "Failed"]);
    let outcome = fixture.outcome.unwrap();
    assert_eq!((outcome.retries, outcome.hedges.sent), (0, 0));
    assert!(outcome.missing.iter().all(|missing| missing.reason == MissingReason::Failed(OVER)));
}

/// RT-3: a request uses only the budget of its own kind.
#[test]
fn rt_3_hedges_and_retries_have_budgets_of_their_own() {
    let mut fixture = Fixture::new(hedged());
    fixture.budgets = Budgets { hedges: Budgets::nothing().hedges, retries: Budgets::unlimited().retries };
    assert_eq!(fixture.fail(0, BROKEN, 1), ["r2: retry n2[0]", "r3: retry n3[2]"]);
    assert_eq!(fixture.late(10), NONE, "r1 is late");
    assert_eq!(fixture.execution.next_hedge(), Some(at(20)), "the budget may have it then");

    let mut fixture = Fixture::new(ExecutionOptions { partial: true, ..hedged() });
    fixture.budgets = Budgets { hedges: Budgets::unlimited().hedges, retries: Budgets::nothing().retries };
    fixture.reply(1, 1);
    assert_eq!(fixture.late(10), ["r2: hedge n2[0]", "r3: hedge n3[2]"]);
    fixture.fail(2, BROKEN, 11);
    fixture.reply(3, 12);
    assert_eq!(fixture.fail(0, BROKEN, 13), ["Incomplete"], "a denied retry ends the key, not the query");
}

/// RT-4: no hedge to a node that owes this query an answer itself, although an error may be retried there. No hedge if we
/// are late ourselves, or if both are true.
#[test]
fn rt_4_a_hedge_is_aborted_where_the_others_are_slow_or_we_are_late() {
    // In one group, p0 and p1 are on n0 and n1; in the other it is the other way round. Both nodes of the plan are the only
    // replicas.
    let crossed = || {
        let table = owned_by(&[&[0, 1], &[1, 0]], &|_| 0, Strategy::Ring);
        let plan = FanOutPlan {
            policy: "test",
            groups: vec![],
            assignments: vec![
                Assignment { node: NodeId(0), keys: vec![0] },
                Assignment { node: NodeId(1), keys: vec![1] },
            ],
            spilled_keys: 0,
        };
        let partitions = [PartitionId(0), PartitionId(1)];
        let execution = Execution::new(&plan, &partitions, hedged(), at(0));
        let availability = Availability::all(&table);
        let mut fixture =
            Fixture { table, availability, execution, budgets: Budgets::unlimited(), outcome: None };
        fixture.next();
        fixture
    };
    let mut slow = crossed();
    assert_eq!(slow.late(10), NONE, "n1 is late as well");
    assert_eq!((slow.reply(0, 11), slow.reply(1, 12)), (vec![], vec!["Complete".to_owned()]));
    assert_eq!(slow.hedges().aborted(HedgeAbort::SlowRoute), 2);

    let mut broken = crossed();
    assert_eq!(broken.fail(0, FailureClass::Internal, 5), ["r2: retry n1[0]"], "slow is better than broken");

    let mut late = crossed();
    late.reply(1, 1);
    assert_eq!(late.late(16), NONE, "5 ms is the slack of 10 ms");
    late.reply(0, 17);
    assert_eq!(late.hedges().aborted(HedgeAbort::DelayConstraint), 1);

    let mut in_time = crossed();
    in_time.reply(1, 1);
    assert_eq!(in_time.late(15), ["r2: hedge n1[0]"]);

    let mut both = crossed();
    both.late(16);
    both.reply(0, 17);
    both.reply(1, 18);
    assert_eq!(both.hedges().aborted(HedgeAbort::DelayConstraint), 2, "that we are late is looked at first");
}

/// RT-5: the original wins, the hedge wins, both fail, the original's error comes after the hedge's, an overload comes
/// first, the budget denies.
#[test]
fn rt_5_every_race_ends_once_with_the_originals_error() {
    let race = |answers: Answers| {
        let mut fixture = Fixture::new(ExecutionOptions { retries_max: 1, answers, ..hedged() });
        fixture.reply(1, 1);
        assert_eq!(fixture.late(10), ["r2: hedge n2[0]", "r3: hedge n3[2]"]);
        fixture
    };
    for answers in [Answers::ByKey, Answers::Together] {
        let mut original = race(answers);
        let ends = ["cancel r2 Cancelled", "cancel r3 Cancelled", "Complete"];
        assert_eq!(original.reply(0, 12), ends);
        assert_eq!((original.hedges().keys, original.hedges().keys_wasted()), (2, 2));

        let mut both_fail = race(answers);
        both_fail.fail(2, FailureClass::Internal, 11);
        both_fail.fail(3, FailureClass::Internal, 12);
        assert_eq!(both_fail.fail(0, FailureClass::Damaged, 13), ["Failed"]);
        for missing in both_fail.outcome.unwrap().missing {
            assert_eq!(missing.reason, MissingReason::Failed(FailureClass::Damaged), "not the hedge's");
        }

        let mut original_first = race(answers);
        assert_eq!(original_first.fail(0, BROKEN, 11), NONE, "the hedges may still answer");
        assert_eq!(original_first.reply(2, 12), NONE);
        assert_eq!(original_first.reply(3, 13), ["Complete"]);

        let mut overloaded = race(answers);
        assert_eq!(overloaded.fail(0, OVER, 11), NONE);
        overloaded.reply(3, 12);
        assert_eq!(overloaded.fail(2, BROKEN, 13), ["Failed"]);
        assert_eq!(overloaded.outcome.unwrap().missing[0].reason, MissingReason::Failed(OVER));
    }
    let mut by_key = race(Answers::ByKey);
    assert_eq!(by_key.reply(2, 11), NONE, "key 2 is still open");
    assert_eq!(by_key.reply(3, 12), ["cancel r0 Overtaken", "Complete"]);
    assert_eq!((by_key.hedges().won, by_key.hedges().keys_wasted()), (2, 0));

    let mut together = race(Answers::Together);
    assert_eq!(together.execution.on(Event::Reply { request: RequestId(2) }, at(11)), Disposition::Held);
    assert_eq!(together.next(), NONE);
    assert_eq!(together.reply(3, 12), ["cancel r0 Overtaken", "use r2", "use r3", "Complete"]);

    let mut denied = Fixture::new(ExecutionOptions { retries_max: 1, ..hedged() });
    denied.reply(1, 1);
    denied.budgets = Budgets::nothing();
    assert_eq!(denied.late(10), NONE);
    assert_eq!(denied.fail(0, BROKEN, 13), ["Failed"], "the error that came after a denied hedge ends it");
    assert_eq!(denied.hedges().aborted(HedgeAbort::Budget), 1);
}

/// 9.5: "first complete answer per key wins": a key that a hedge answered does not also count from the original.
#[test]
fn keys_may_be_answered_partly_by_the_original_and_partly_by_the_hedge() {
    let mut fixture = Fixture::new(hedged());
    fixture.reply(1, 1);
    fixture.late(10);
    assert_eq!(fixture.reply(2, 11), NONE);
    let late = fixture.execution.on(Event::Reply { request: RequestId(0) }, at(12));
    assert_eq!(late, Disposition::AcceptedInPart { late: vec![0] });
    assert_eq!(fixture.next(), ["cancel r3 Cancelled", "Complete"]);
    assert_eq!((fixture.hedges().keys_won, fixture.hedges().keys_wasted()), (1, 1));
}

/// 9.5, checks 3 and 1. Check 5 is in `src/execution/tests/parts.rs`.
#[test]
fn there_must_be_time_for_a_hedge_and_something_to_ask() {
    let mut short = Fixture::new(ExecutionOptions { deadline: Some(at(14)), ..hedged() });
    assert_eq!(short.late(10), NONE, "the answer would take 4 ms");
    short.reply(0, 11);
    short.reply(1, 11);
    assert_eq!(short.hedges().aborted(HedgeAbort::NoTime), 2);

    let owners: &[&[u32]] = &[&[0, 1, 2], &[3, 4, 5]];
    let table = owned_by(owners, &|node| node / 3, Strategy::ReplicaGroups);
    let mut answered = Fixture::over(table, hedged());
    answered.reply(0, 9);
    answered.late(10);
    answered.reply(1, 11);
    answered.reply(2, 11);
    assert_eq!((answered.hedges().aborted(HedgeAbort::Answered), answered.hedges().sent), (1, 2));
}

/// 9.5, check 2: after this process was suspended for 300 ms, nothing is hedged, whether its timers fire late or just in
/// time.
#[test]
fn after_a_pause_of_our_own_nothing_is_hedged() {
    for (due_seen_at, caught_up) in [(310, 0), (311, 309), (15, 13)] {
        let mut fixture = Fixture::new(ExecutionOptions { deadline: None, ..hedged() });
        let due = Event::HedgeDue { caught_up: at(caught_up) };
        assert_eq!(fixture.on(due, due_seen_at), NONE);
        fixture.reply(0, 320);
        fixture.reply(1, 320);
        assert_eq!(fixture.hedges().aborted(HedgeAbort::DelayConstraint), 2);
    }
}

/// RF-3: a request that could not be hedged temporarily, because we were late or the budget was used up, is checked again
/// after as long again.
#[test]
fn rf_3_what_could_not_be_hedged_for_the_moment_is_looked_at_again() {
    let fixture = || {
        let mut fixture = Fixture::new(ExecutionOptions { deadline: None, ..hedged() });
        fixture.reply(1, 1);
        fixture
    };
    let hedges = ["r2: hedge n2[0]", "r3: hedge n3[2]"];
    let mut late = fixture();
    assert_eq!((late.late(20), late.execution.next_hedge()), (vec![], Some(at(40))), "5 is the slack of 10");
    assert_eq!((late.late(51), late.execution.next_hedge()), (vec![], Some(at(102))), "10 that of 20");
    assert_eq!(late.late(110), hedges);
    let mut poor = fixture();
    poor.budgets = Budgets::nothing();
    assert_eq!((poor.late(10), poor.execution.next_hedge()), (vec![], Some(at(20))));
    poor.budgets = Budgets::unlimited();
    assert_eq!(poor.late(20), hedges);
    let mut paused = fixture();
    let caught_up = || Event::HedgeDue { caught_up: at(13) };
    assert_eq!((paused.on(caught_up(), 14), paused.execution.next_hedge()), (vec![], Some(at(28))));
    assert_eq!(paused.on(caught_up(), 28), hedges, "that was before");
    assert_eq!((paused.reply(2, 29), paused.reply(3, 30)).1, ["cancel r0 Overtaken", "Complete"]);
    assert_eq!(paused.hedges().aborted(HedgeAbort::DelayConstraint), 1);
}

/// OV-1: while nodes answer `overloaded`, callers get this error and nothing is repeated. Afterwards everything works
/// again.
#[test]
fn ov_1_overload_is_reported_and_passes() {
    let table = table(2, 1, 4, 1);
    let policy = policy::by_name("least-loaded").expect("a registered policy");
    let keys: Vec<PartitionId> = table.partition_count().iter().collect();
    let mut budgets = Budgets::default();
    for round in 0..200u64 {
        let up = Availability::all(&table);
        let (view, load) = (table.view(&up), LoadSnapshot::default());
        let inputs = PolicyInputs { view, keys: &keys, limit: GroupLimit(1), load: &load };
        let (mut state, mut rng) = (PolicyState::new(round), StdRng::seed_from_u64(round));
        let plan = policy.plan(&inputs, &mut state, &mut rng).expect("all is up");
        let mut execution = Execution::new(&plan, &keys, ExecutionOptions::default(), at(round));
        let sent = execution.next(&table.view(&up), &mut budgets).len();
        let request = RequestId(0);
        let overloaded = (50..100).contains(&round);
        let event =
            if overloaded { Event::Failed { request, class: OVER } } else { Event::Reply { request } };
        assert_eq!(execution.on(event, at(round + 1)), Disposition::Accepted);
        let actions = execution.next(&table.view(&up), &mut budgets);
        let [Action::Finish(outcome)] = actions.as_slice() else { panic!("{actions:?}") };
        let verdict = if overloaded { Verdict::Failed } else { Verdict::Complete };
        assert_eq!((outcome.verdict, outcome.requests as usize), (verdict, sent));
    }
}
