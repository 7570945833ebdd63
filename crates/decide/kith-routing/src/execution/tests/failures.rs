//! Requests that fail, nodes that seem down, and the nodes that are asked instead.

use super::*;

#[test]
fn a_lost_nodes_keys_are_asked_of_another_group_all_of_them() {
    // The predecessor repeated only the first key of each node.
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
    // Once another replica is up again, it is asked.
    fixture.availability = Availability::all_but(&fixture.table, &[NodeId(1)]);
    assert_eq!(fixture.next(), ["cancel r1", "r2: n2[1]", "r3: n3[3]"]);
}

#[test]
fn a_node_that_is_back_before_any_other_replica_is_still_waited_for() {
    let mut fixture = Fixture::new(ExecutionOptions::default());
    fixture.next();
    fixture.all_seem_down();
    assert_eq!(fixture.on(Event::NodeDown { node: NodeId(1) }), [""; 0]);
    // Only this node is back. It still owes its answer, and there is no other node to ask.
    fixture.availability = Availability::all_but(&fixture.table, &[0, 2, 3, 4, 5].map(NodeId));
    assert_eq!(fixture.next(), [""; 0]);
    // If two nodes were asked for the same keys one after the other, the second one is waited for in the same way.
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
    // The budget allows two keys again and no more, whichever node is asked for them.
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
        FailureClass::OtherPosition,
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
