//! Tests of executions, one behaviour each. All of them use this layout:
//!
//! ```text
//! g0: n0[0 2] n1[1 3]
//! g1: n2[0 1] n3[2 3]
//! g2: n4[0 3] n5[1 2]
//! ```

mod failures;
mod parts;

use super::*;
use crate::{Assignment, Availability, GroupEntry, GroupRole, NodeEntry, RoutingTable, TableParts};
use kith_types::{Epoch, ErrorCode, GroupId, NodeId, PartitionCount, StoreVersion};
use std::time::Duration;

fn table() -> RoutingTable {
    table_of(&[&[0, 1, 0, 1], &[2, 2, 3, 3], &[4, 5, 5, 4]])
}

/// Returns a table with these owners of each partition in each group. All groups have the same number of nodes.
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

    /// Returns an execution of one key in each of the first three partitions. The nodes 0, 1 and 2 were asked, and are late.
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

    /// Marks every node as down. Each may be asked nevertheless.
    fn all_seem_down(&mut self) {
        let all: Vec<NodeId> = (0..6).map(NodeId).collect();
        self.availability = Availability::all_but(&self.table, &all);
        self.availability.rescue(&self.table);
    }

    /// Returns the actions to carry out now, as text.
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

#[test]
fn what_failed_alike_is_reported_together() {
    let missing = |partition, reason, tried: &[u32]| MissingPart {
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
    let failures: Vec<_> = outcome
        .failures()
        .into_iter()
        .map(|failure| (failure.code, failure.partitions.len(), failure.keys, failure.tried.len()))
        .collect();
    assert_eq!(
        failures,
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
