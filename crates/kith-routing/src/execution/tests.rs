//! One behaviour, one test. The layout of all of them:
//!
//! ```text
//! g0: n0[0 2] n1[1 3]
//! g1: n2[0 1] n3[2 3]
//! g2: n4[0 3] n5[1 2]
//! ```

use super::*;
use crate::{Assignment, Availability, GroupEntry, GroupRole, NodeEntry, RoutingTable, TableParts};
use kith_types::{ErrorCode, PartitionCount, StoreVersion};
use std::time::Duration;

fn table() -> RoutingTable {
    table_of(&[&[0, 1, 0, 1], &[2, 2, 3, 3], &[4, 5, 5, 4]])
}

/// The owners of each partition in each group; all groups have as many nodes.
fn table_of(owners: &[&[u32]]) -> RoutingTable {
    let nodes = 1 + owners.iter().flat_map(|owners| owners.iter().copied()).max().unwrap();
    let groups = owners.len() as u32;
    let group_of = |node: u32| GroupId(node / (nodes / groups));
    RoutingTable::new(TableParts {
        epoch: Epoch(7),
        strategy: crate::Strategy::ReplicaGroups,
        partition_count: PartitionCount::new(owners[0].len() as u32).unwrap(),
        groups: (0..groups).map(|id| GroupEntry { id: GroupId(id), role: GroupRole::Serving }).collect(),
        nodes: (0..nodes)
            .map(|id| NodeEntry { id: NodeId(id), group: group_of(id), ..NodeEntry::default() })
            .collect(),
        owners: owners.iter().map(|owners| owners.iter().copied().map(NodeId).collect()).collect(),
        partition_epochs: vec![],
    })
    .unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp(Duration::from_millis(millis))
}

/// An execution of four keys, one in each partition, planned on group 0.
struct Fixture {
    table: RoutingTable,
    availability: Availability,
    execution: Execution,
    budgets: Budgets,
}

impl Fixture {
    fn new(options: ExecutionOptions) -> Self {
        let assignments = [(0, [0, 2]), (1, [1, 3])];
        let assignments =
            assignments.map(|(node, keys)| Assignment { node: NodeId(node), keys: keys.to_vec() });
        Self::with(options, assignments.to_vec())
    }

    fn with(options: ExecutionOptions, assignments: Vec<Assignment>) -> Self {
        Self::over(table(), options, assignments)
    }

    /// The first three partitions of a table, a key each, asked of the nodes 0, 1 and 2, and late.
    fn late(table: RoutingTable) -> Self {
        let rule = HedgeRule::fixed(Duration::from_millis(1), Duration::ZERO);
        let options = ExecutionOptions { hedging: Some(rule), ..ExecutionOptions::default() };
        let assignments = (0..3).map(|key| Assignment { node: NodeId(key), keys: vec![key] }).collect();
        let mut fixture = Self::over(table, options, assignments);
        fixture.next();
        fixture
    }

    fn over(table: RoutingTable, options: ExecutionOptions, assignments: Vec<Assignment>) -> Self {
        let plan = FanOutPlan { policy: "test", groups: vec![GroupId(0)], assignments, spilled_keys: 0 };
        let partitions: Vec<PartitionId> = table.partition_count().iter().collect();
        let availability = Availability::all(&table);
        let execution = Execution::new(&plan, &partitions, options, at(0));
        Self { availability, table, execution, budgets: Budgets::unlimited() }
    }

    /// No node is up any more; each may be asked all the same.
    fn all_seem_down(&mut self) {
        let all: Vec<NodeId> = (0..6).map(NodeId).collect();
        self.availability = Availability::all_but(&self.table, &all);
        self.availability.rescue(&self.table);
    }

    /// What is done now, in words.
    fn next(&mut self) -> Vec<String> {
        let actions = self.execution.next(&self.table.view(&self.availability), &mut self.budgets);
        actions.into_iter().map(|action| say(&action)).collect()
    }

    fn on(&mut self, event: Event) -> Vec<String> {
        assert_eq!(self.execution.on(event, at(1)), Disposition::Accepted);
        self.next()
    }

    fn fail(&mut self, request: u32, class: FailureClass) -> Vec<String> {
        self.on(Event::Failed { request: RequestId(request), class })
    }

    fn reply(&mut self, request: u32) -> Vec<String> {
        self.on(Event::Reply { request: RequestId(request) })
    }
}

fn say(action: &Action) -> String {
    match action {
        Action::Send { request, node, keys, .. } => format!("r{}: {node}{keys:?}", request.0),
        Action::Cancel { request, .. } => format!("cancel r{}", request.0),
        Action::Use { request } => format!("use r{}", request.0),
        Action::Refresh { epoch } => format!("refresh {epoch}"),
        Action::Finish(outcome) => {
            let missing = outcome.missing.iter().map(|missing| {
                let tried: Vec<String> = missing.tried.iter().map(NodeId::to_string).collect();
                format!(" {}×{} {} [{}]", missing.partition, missing.keys, missing.reason, tried.join(" "))
            });
            let early = if outcome.stopped_early { " early" } else { "" };
            let sums = format!("{}+{}+{}", outcome.answered, outcome.missing_keys(), outcome.abandoned);
            format!("{:?}{early} {sums}{}", outcome.verdict, missing.collect::<String>())
        }
    }
}

#[test]
fn all_replies_complete_it() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    assert_eq!(fixture.next(), ["r0: n0[0, 2]", "r1: n1[1, 3]"]);
    assert_eq!(fixture.reply(1), [""; 0]);
    assert_eq!(fixture.reply(0), ["Complete 4+0+0"]);
    assert!(fixture.execution.is_finished());
}

#[test]
fn a_lost_nodes_keys_are_asked_of_another_group_all_of_them() {
    // The predecessor sent only the first key of each node again.
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    assert_eq!(fixture.fail(0, FailureClass::Connection), ["r2: n2[0]", "r3: n3[2]"]);
    fixture.reply(1);
    fixture.reply(2);
    assert_eq!(fixture.reply(3), ["Complete 4+0+0"]);
}

#[test]
fn retries_of_different_queries_go_to_different_groups() {
    let mut fixture = Fixture::new(ExecutionOptions { seed: 1, ..ExecutionOptions::default() });
    fixture.next();
    assert_eq!(fixture.fail(0, FailureClass::Connection), ["r2: n4[0]", "r3: n5[2]"]);
}

#[test]
fn a_second_replica_that_is_lost_too_is_followed_by_the_third_and_then_by_none() {
    let mut fixture = Fixture::new(ExecutionOptions { partial: true, ..ExecutionOptions::default() });
    fixture.next();
    fixture.fail(0, FailureClass::Connection);
    assert_eq!(fixture.fail(2, FailureClass::Damaged), ["r4: n4[0]"]);
    assert_eq!(fixture.fail(4, FailureClass::Connection), [""; 0]);
    fixture.reply(1);
    assert_eq!(fixture.reply(3), ["Incomplete 3+1+0 p0×1 connection [n0 n2 n4]"]);
}

#[test]
fn retries_are_bounded() {
    let mut fixture = Fixture::new(ExecutionOptions { retries_max: 1, ..ExecutionOptions::default() });
    fixture.next();
    fixture.fail(0, FailureClass::Connection);
    let actions = fixture.fail(2, FailureClass::Connection);
    assert_eq!(actions, ["cancel r1", "cancel r3", "Failed 0+1+3 p0×1 connection [n0 n2]"]);
}

#[test]
fn a_node_that_is_found_down_is_replaced_at_once() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    let actions = fixture.on(Event::NodeDown { node: NodeId(1) });
    assert_eq!(actions, ["cancel r1", "r2: n2[1]", "r3: n3[3]"]);
    let late = fixture.execution.on(Event::Reply { request: RequestId(1) }, at(2));
    assert_eq!(late, Disposition::Ignored, "its answer comes too late and must not be merged");
    let again = fixture.execution.on(Event::NodeDown { node: NodeId(1) }, at(2));
    assert_eq!(again, Disposition::Ignored, "it owes nothing any more");
}

#[test]
fn a_node_that_seems_down_is_waited_for_while_no_other_replica_is_up() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    fixture.all_seem_down();
    assert_eq!(fixture.on(Event::NodeDown { node: NodeId(1) }), [""; 0]);
    // Once one is up again, it is asked.
    fixture.availability = Availability::all_but(&fixture.table, &[NodeId(1)]);
    assert_eq!(fixture.next(), ["cancel r1", "r2: n2[1]", "r3: n3[3]"]);
}

#[test]
fn a_node_that_is_back_before_any_other_replica_is_still_waited_for() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    fixture.all_seem_down();
    assert_eq!(fixture.on(Event::NodeDown { node: NodeId(1) }), [""; 0]);
    // It alone is back: what it owes is on its way, and there is nobody else to ask.
    fixture.availability = Availability::all_but(&fixture.table, &[0, 2, 3, 4, 5].map(NodeId));
    assert_eq!(fixture.next(), [""; 0]);
    // Of two that were asked for the same, one after the other, the second is waited for likewise.
    fixture.availability = Availability::all_but(&fixture.table, &[0, 1, 4, 5].map(NodeId));
    assert_eq!(fixture.next(), ["cancel r1", "r2: n2[1]", "r3: n3[3]"]);
    fixture.all_seem_down();
    assert_eq!(fixture.on(Event::NodeDown { node: NodeId(2) }), [""; 0]);
    fixture.availability = Availability::all_but(&fixture.table, &[0, 1, 4, 5].map(NodeId));
    assert_eq!(fixture.next(), [""; 0]);
    [0, 2].into_iter().for_each(|request| assert_eq!(fixture.reply(request), [""; 0]));
    assert_eq!(fixture.reply(3), ["Complete 4+0+0"]);
}

#[test]
fn a_node_that_seems_down_is_waited_for_where_nothing_may_be_asked_twice() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.budgets = Budgets::nothing();
    fixture.next();
    assert_eq!(fixture.on(Event::NodeDown { node: NodeId(1) }), [""; 0]);
    fixture.reply(0);
    assert_eq!(fixture.reply(1), ["Complete 4+0+0"]);
}

#[test]
fn what_a_doubted_node_owes_moves_at_one_price() {
    // Enough for its two keys and not for more, of whoever is asked for them.
    let exactly = Budget::new(BudgetOptions { share: 0.5, floor_per_second: 0 });
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.budgets = Budgets { retries: exactly, ..Budgets::nothing() };
    fixture.next();
    assert_eq!(fixture.on(Event::NodeDown { node: NodeId(1) }), ["cancel r1", "r2: n2[1]", "r3: n3[3]"]);
    assert_eq!(fixture.on(Event::NodeDown { node: NodeId(0) }), [""; 0], "it is waited for");
    assert_eq!(fixture.fail(0, FailureClass::Connection)[..2], ["cancel r2", "cancel r3"], "nothing is left");
}

#[test]
fn nodes_known_to_be_down_are_not_asked() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    fixture.availability = Availability::all_but(&fixture.table, &[NodeId(0), NodeId(2), NodeId(3)]);
    assert_eq!(fixture.fail(0, FailureClass::Connection), ["r2: n4[0]", "r3: n5[2]"]);
}

#[test]
fn without_another_replica_a_query_fails_and_says_which_partitions_and_why() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    fixture.availability =
        Availability::all_but(&fixture.table, &[NodeId(0), NodeId(2), NodeId(4), NodeId(5)]);
    let actions = fixture.fail(0, FailureClass::Connection);
    assert_eq!(actions, ["cancel r1", "Failed 0+1+3 p0×1 connection [n0]"]);
}

#[test]
fn a_reply_may_lack_some_keys() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    let failed = vec![(2, FailureClass::Damaged), (3, FailureClass::Damaged)];
    let actions = fixture.on(Event::ReplyInPart { request: RequestId(0), failed });
    assert_eq!(actions, ["r2: n3[2]"], "key 3 was not asked of this node");
    fixture.reply(1);
    assert_eq!(fixture.reply(2), ["Complete 4+0+0"]);
}

#[test]
fn each_class_of_failure_is_met_in_its_way() {
    let version = StoreVersion(3);
    for class in [
        FailureClass::Connection,
        FailureClass::Timeout,
        FailureClass::VersionUnavailable { version },
        FailureClass::Damaged,
        FailureClass::Unsupported,
        FailureClass::Internal,
    ] {
        let mut fixture = Fixture::new(ExecutionOptions::default());
        fixture.next();
        assert_eq!(fixture.fail(0, class), ["r2: n2[0]", "r3: n3[2]"], "{class}");
    }
    for class in [FailureClass::Overloaded, FailureClass::DeadlineExceeded, FailureClass::Cancelled] {
        let mut fixture = Fixture::new(ExecutionOptions { partial: true, ..ExecutionOptions::default() });
        fixture.next();
        assert_eq!(fixture.fail(0, class), [""; 0], "{class} is not tried again");
        let outcome = format!("Incomplete 2+2+0 p0×1 {class} [n0] p2×1 {class} [n0]");
        assert_eq!(fixture.reply(1), [outcome]);
    }
    let mut fixture = Fixture::new(ExecutionOptions { partial: true, ..ExecutionOptions::default() });
    fixture.next();
    let actions = fixture.fail(0, FailureClass::BadRequest);
    let outcome = "Failed 0+2+2 p0×1 bad_request [n0] p2×1 bad_request [n0]";
    assert_eq!(actions, ["cancel r1", outcome], "a part of the answer would be no better");
}

#[test]
fn a_node_with_a_newer_table_makes_the_shell_fetch_it_once() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    let class = FailureClass::NotOwner { epoch: Epoch(9) };
    assert_eq!(fixture.fail(0, class), ["refresh e9", "r2: n2[0]", "r3: n3[2]"]);
    assert_eq!(fixture.fail(1, class), ["r4: n2[1]", "r5: n3[3]"]);
}

#[test]
fn a_settled_query_cancels_the_rest() {
    let mut fixture = Fixture::new(ExecutionOptions { stop_early: true, ..ExecutionOptions::default() });
    fixture.next();
    fixture.reply(1);
    assert_eq!(fixture.on(Event::Satisfied), ["cancel r0", "Complete early 2+0+2"]);
    let late = fixture.execution.on(Event::Reply { request: RequestId(0) }, at(5));
    assert_eq!(late, Disposition::Ignored);
    assert_eq!(fixture.next(), [""; 0]);
}

#[test]
fn a_query_that_needs_every_answer_cannot_be_settled_early() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    assert_eq!(fixture.execution.on(Event::Satisfied, at(1)), Disposition::Ignored);
    assert_eq!(fixture.next(), [""; 0]);
}

#[test]
fn at_the_deadline_what_is_missing_is_named() {
    for (partial, verdict) in [(true, "Incomplete"), (false, "Failed")] {
        let deadline = Some(at(50));
        let mut fixture = Fixture::new(ExecutionOptions { deadline, partial, ..ExecutionOptions::default() });
        fixture.next();
        fixture.reply(1);
        assert_eq!(fixture.execution.on(Event::Deadline, at(49)), Disposition::Ignored, "not yet");
        assert_eq!(fixture.execution.on(Event::Deadline, at(50)), Disposition::Accepted);
        let outcome = format!("{verdict} 2+2+0 p0×1 deadline [n0] p2×1 deadline [n0]");
        assert_eq!(fixture.next(), ["cancel r0".to_owned(), outcome]);
    }
}

#[test]
fn nothing_is_sent_again_after_the_deadline() {
    let deadline = Some(at(50));
    let mut fixture = Fixture::new(ExecutionOptions { deadline, ..ExecutionOptions::default() });
    fixture.next();
    let failed = Event::Failed { request: RequestId(0), class: FailureClass::Connection };
    assert_eq!(fixture.execution.on(failed, at(60)), Disposition::Accepted);
    assert_eq!(fixture.next(), ["cancel r1", "Failed 0+2+2 p0×1 deadline [n0] p2×1 deadline [n0]"]);
}

#[test]
fn a_reply_just_after_the_deadline_counts_if_it_is_seen_first() {
    let deadline = Some(at(50));
    let mut fixture = Fixture::new(ExecutionOptions { deadline, ..ExecutionOptions::default() });
    fixture.next();
    fixture.reply(0);
    assert_eq!(fixture.execution.on(Event::Reply { request: RequestId(1) }, at(51)), Disposition::Accepted);
    assert_eq!(fixture.next(), ["Complete 4+0+0"]);
}

#[test]
fn a_caller_that_leaves_ends_it() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    fixture.reply(0);
    assert_eq!(fixture.on(Event::Cancelled), ["cancel r1", "Cancelled 2+0+2"]);
}

#[test]
fn keys_that_the_plan_leaves_out_are_tried_and_else_missing() {
    let plan = || {
        vec![Assignment { node: NodeId(0), keys: vec![0, 2] }, Assignment { node: NodeId(1), keys: vec![1] }]
    };
    let mut fixture =
        Fixture::with(ExecutionOptions { partial: true, ..ExecutionOptions::default() }, plan());
    fixture.availability = Availability::all_but(&fixture.table, &[NodeId(1), NodeId(3), NodeId(4)]);
    fixture.next();
    fixture.reply(0);
    assert_eq!(fixture.reply(1), ["Incomplete 3+1+0 p3×1 no replica can serve []"]);

    let mut fixture = Fixture::with(ExecutionOptions::default(), plan());
    assert_eq!(fixture.next().last().unwrap(), "r2: n1[3]", "a replica has come up since");
}

#[test]
fn a_query_without_keys_is_over_at_once() {
    let plan = FanOutPlan::default();
    let mut execution = Execution::new(&plan, &[], ExecutionOptions::default(), at(0));
    let table = table();
    let availability = Availability::all(&table);
    let actions = execution.next(&table.view(&availability), &mut Budgets::unlimited());
    assert_eq!(actions.iter().map(say).collect::<Vec<_>>(), ["Complete 0+0+0"]);
}

fn so_far(request: u32, keys: u32, failed: &[u32]) -> Event {
    let failed = failed.iter().map(|key| (*key, FailureClass::Damaged)).collect();
    Event::ReplySoFar { request: RequestId(request), keys, failed }
}

#[test]
fn what_was_answered_before_a_failure_is_not_asked_again() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    assert_eq!(fixture.on(so_far(0, 1, &[])), [""; 0]);
    assert_eq!(fixture.fail(0, FailureClass::Connection), ["r2: n3[2]"]);
    assert_eq!(fixture.reply(2), [""; 0]);
    assert_eq!(fixture.on(so_far(1, 1, &[])), [""; 0]);
    assert_eq!(fixture.reply(1), ["Complete 4+0+0"], "the last part is the rest of it");
}

#[test]
fn a_key_that_a_part_lacks_is_asked_elsewhere_while_the_rest_comes() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    assert_eq!(fixture.on(so_far(0, 1, &[0])), ["r2: n2[0]"]);
    // A node speaks of keys that it is asked for and has not spoken of.
    let late = Event::ReplyInPart { request: RequestId(0), failed: vec![(0, FailureClass::Damaged)] };
    assert_eq!(fixture.on(late), [""; 0]);
    assert_eq!(fixture.reply(1), [""; 0]);
    assert_eq!(fixture.reply(2), ["Complete 4+0+0"]);
}

#[test]
fn a_late_request_is_hedged_for_what_it_still_owes() {
    let rule = HedgeRule::fixed(Duration::from_millis(10), Duration::ZERO);
    let mut fixture = Fixture::new(ExecutionOptions { hedging: Some(rule), ..ExecutionOptions::default() });
    fixture.next();
    fixture.on(so_far(0, 1, &[]));
    fixture.reply(1);
    let due = Event::HedgeDue { caught_up: Timestamp::ZERO };
    assert_eq!(fixture.execution.on(due, at(10)), Disposition::Accepted);
    assert_eq!(fixture.next(), ["r2: n3[2]"]);
    assert_eq!(fixture.reply(2), ["cancel r0", "Complete 4+0+0"]);
}

#[test]
fn parts_that_make_no_sense_are_ignored() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    for event in [so_far(0, 2, &[]), so_far(0, 3, &[]), so_far(9, 1, &[])] {
        assert_eq!(fixture.execution.on(event, at(1)), Disposition::Ignored, "the last part is a reply");
    }
    let together = ExecutionOptions { answers: Answers::Together, ..ExecutionOptions::default() };
    let mut sums = Fixture::new(together);
    sums.next();
    assert_eq!(sums.execution.on(so_far(0, 1, &[]), at(1)), Disposition::Ignored, "sums have no parts");
}

#[test]
fn what_failed_alike_is_told_together() {
    let missing = |partition, reason, tried: &[u32]| Missing {
        partition: PartitionId(partition),
        keys: 2,
        reason,
        tried: tried.iter().copied().map(NodeId).collect(),
    };
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    assert_eq!(fixture.execution.on(Event::Cancelled, at(1)), Disposition::Accepted);
    let Some(Action::Finish(mut outcome)) =
        fixture.execution.next(&fixture.table.view(&fixture.availability), &mut fixture.budgets).pop()
    else {
        panic!("it has ended")
    };
    let timeout = MissingReason::Failed(FailureClass::Timeout);
    outcome.missing = vec![
        missing(0, MissingReason::Deadline, &[3]),
        missing(1, MissingReason::NoReplica, &[]),
        missing(2, timeout, &[3]),
        missing(3, timeout, &[3, 5]),
    ];
    let told: Vec<_> = outcome
        .failures()
        .into_iter()
        .map(|failure| (failure.code, failure.partitions.len(), failure.keys, failure.tried.len()))
        .collect();
    assert_eq!(
        told,
        [
            (ErrorCode::DeadlineExceeded, 2, 4, 1),
            (ErrorCode::PartitionsUnavailable, 1, 2, 0),
            (ErrorCode::DeadlineExceeded, 1, 2, 2)
        ]
    );
}

#[test]
fn requests_that_never_were_are_ignored() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    assert_eq!(fixture.execution.on(Event::Reply { request: RequestId(99) }, at(1)), Disposition::Ignored);
    assert_eq!(fixture.execution.outstanding(), 2);
}

/// Even for a client that asks so little that a tenth of its keys is not one.
#[test]
fn a_group_that_is_late_as_a_whole_is_hedged_as_a_whole() {
    for budgets in [Budgets::unlimited(), Budgets::default()] {
        let mut group = Fixture::late(table_of(&[&[0, 1, 2], &[3, 4, 5]]));
        group.budgets = budgets;
        let late = Event::HedgeDue { caught_up: Timestamp::ZERO };
        assert_eq!(group.on(late), ["r3: n3[0]", "r4: n4[1]", "r5: n5[2]"]);
        assert_eq!((group.reply(3), group.reply(4)), (vec!["cancel r0".into()], vec!["cancel r1".into()]));
        assert_eq!(group.reply(5), ["cancel r2", "Complete 3+0+0"], "nobody waits for the group");
    }
}

#[test]
fn nodes_that_are_late_in_a_third_group_are_waited_for() {
    let mut spread = Fixture::late(table_of(&[&[0, 0, 0], &[1, 1, 1], &[2, 2, 2], &[3, 3, 3]]));
    let late = Event::HedgeDue { caught_up: Timestamp::ZERO };
    assert_eq!(spread.on(late), ["r3: n3[0]", "r4: n3[1]"]);
    assert_eq!(spread.execution.hedges.aborted(HedgeAbort::MaxRoute), 1);
}

/// Whatever a node or the connection to it said, the node may have done what it was asked.
#[test]
fn a_key_that_may_be_sent_once_is_neither_retried_nor_hedged() {
    let once = |options| Fixture::new(ExecutionOptions { delivery: Delivery::AtMostOnce, ..options });
    let hedging = Some(HedgeRule::fixed(Duration::from_millis(1), Duration::ZERO));
    for class in [
        FailureClass::Connection,
        FailureClass::Timeout,
        FailureClass::NotOwner { epoch: Epoch(7) },
        FailureClass::Throttled,
        FailureClass::Damaged,
        FailureClass::Internal,
    ] {
        let mut fixture = once(ExecutionOptions { partial: true, hedging, ..ExecutionOptions::default() });
        assert_eq!(fixture.next(), ["r0: n0[0, 2]", "r1: n1[1, 3]"]);
        assert_eq!(fixture.execution.next_hedge(), None, "no request is late");
        assert_eq!(fixture.execution.on(Event::NodeDown { node: NodeId(0) }, at(1)), Disposition::Accepted);
        assert!(fixture.next().is_empty(), "a node that only seems down is waited for");
        let told = fixture.fail(0, class);
        assert!(told.iter().all(|action| action.starts_with("refresh")), "{class}: {told:?}");
        let ended = fixture.reply(1);
        assert_eq!(ended, [format!("Incomplete 2+2+0 p0×1 {class} [n0] p2×1 {class} [n0]")]);
    }
}

#[test]
fn a_key_that_was_never_sent_may_still_be_sent_once() {
    let options = ExecutionOptions { delivery: Delivery::AtMostOnce, ..ExecutionOptions::default() };
    let mut fixture = Fixture::with(options, vec![Assignment { node: NodeId(0), keys: vec![0, 2] }]);
    assert_eq!(fixture.next(), ["r0: n0[0, 2]", "r1: n1[1, 3]"], "the plan left two keys out");
    assert_eq!(
        fixture.fail(1, FailureClass::Connection),
        ["cancel r0", "Failed 0+2+2 p1×1 connection [n1] p3×1 connection [n1]"]
    );
}
