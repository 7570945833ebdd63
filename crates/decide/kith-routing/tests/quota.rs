//! Read quotas under random schedules. Never more passes than the rate plus one second's worth. A refusal takes
//! nothing, and a caller who returns after the time in the refusal is admitted.

use kith_routing::{
    AdmittedBy, Assignment, Availability, Booking, BookingStep, Execution, FanOutPlan, GroupIndex,
    QuotaRates, ReadQuota, ReservationId, ReservationReply, RoutingTable,
    execution::{Action, Budgets, Event, ExecutionOptions, FailureClass, MissingReason, Verdict},
    placement,
};
use kith_types::{GroupId, NodeId, PartitionCount, PartitionId, Timestamp};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    time::Duration,
};

#[derive(Clone, Debug)]
enum Step {
    /// This many milliseconds pass.
    Pass(u64),
    /// A query with this many keys, and the bytes of its answer.
    Ask(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..1_500u64).prop_map(Step::Pass),
        (0..400u64, 0..4_000u64).prop_map(|(keys, bytes)| Step::Ask(keys, bytes)),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn what_passes_is_bounded_and_what_is_refused_passes_at_the_advised_time(
        steps in steps(),
        keys_rate in 1..300u64,
        bytes_rate in 1..3_000u64,
    ) {
        let rates = QuotaRates { keys: NonZeroU64::new(keys_rate), bytes: NonZeroU64::new(bytes_rate) };
        let mut quota = ReadQuota::new(rates);
        let mut now = Duration::ZERO;
        // The times at which keys passed, and their numbers.
        let mut passed: Vec<(Duration, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Pass(millis) => now += Duration::from_millis(millis),
                Step::Ask(keys, bytes) => match quota.admit(keys, Timestamp(now)) {
                    Ok(()) => {
                        quota.charge_bytes(bytes, AdmittedBy::Here, Timestamp(now));
                        passed.push((now, keys));
                    }
                    Err(refused) => {
                        prop_assert!(refused.retry_after > Duration::ZERO);
                        let mut later = quota.clone();
                        let early = now + refused.retry_after.saturating_sub(Duration::from_millis(1));
                        if Duration::from_millis(1) < refused.retry_after {
                            prop_assert!(later.admit(keys, Timestamp(early)).is_err(), "the advice is too late");
                        }
                        let then = now + refused.retry_after;
                        prop_assert!(later.admit(keys, Timestamp(then)).is_ok(), "the advice is too early");
                    }
                },
            }
        }
        for (at, (from, _)) in passed.iter().enumerate() {
            let largest = passed[at..].iter().map(|(_, keys)| *keys).max().unwrap_or(0);
            let mut sum = 0;
            for (to, keys) in &passed[at..] {
                sum += keys;
                let window = (*to - *from).as_secs_f64();
                let allowed = keys_rate as f64 * (window + 1.0) + largest as f64;
                prop_assert!(sum as f64 <= allowed + 1.0, "{sum} keys in {window} s at {keys_rate}/s");
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Reserving {
    Pass(u64),
    Reserve(u64, u64),
    Redeem(u64, u64),
    GiveBack(u64),
    Ask(u64),
    Routed(u64),
}

fn reserving() -> impl Strategy<Value = Vec<Reserving>> {
    let step = prop_oneof![
        (0..700u64).prop_map(Reserving::Pass),
        (0..5u64, 0..200u64).prop_map(|(id, keys)| Reserving::Reserve(id, keys)),
        (0..5u64, 0..200u64).prop_map(|(id, keys)| Reserving::Redeem(id, keys)),
        (0..5u64).prop_map(Reserving::GiveBack),
        (0..200u64).prop_map(Reserving::Ask),
        (0..400u64).prop_map(Reserving::Routed),
    ];
    prop::collection::vec(step, 0..80)
}

proptest! {
    #[test]
    fn reservations_let_no_more_in_than_the_rate(steps in reserving(), rate in 1..300u64) {
        let mut quota = ReadQuota::new(QuotaRates { keys: NonZeroU64::new(rate), bytes: None });
        let mut now = Duration::ZERO;
        let mut passed: Vec<(Duration, u64)> = Vec::new();
        for step in steps {
            let at = Timestamp(now);
            match step {
                Reserving::Pass(millis) => now += Duration::from_millis(millis),
                Reserving::Reserve(id, keys) => drop(quota.reserve(ReservationId { client: 1, id }, keys, at)),
                Reserving::GiveBack(id) => quota.give_back(ReservationId { client: 1, id }, at),
                Reserving::Routed(keys) => quota.charge_keys(keys, at),
                Reserving::Redeem(id, keys) => {
                    if quota.redeem(ReservationId { client: 1, id }, keys, at).is_ok() {
                        passed.push((now, keys));
                    }
                }
                Reserving::Ask(keys) => {
                    if quota.admit(keys, at).is_ok() {
                        passed.push((now, keys));
                    }
                }
            }
        }
        for (at, (from, _)) in passed.iter().enumerate() {
            let largest = passed[at..].iter().map(|(_, keys)| *keys).max().unwrap_or(0);
            let mut sum = 0;
            for (to, keys) in &passed[at..] {
                sum += keys;
                let window = (*to - *from).as_secs_f64();
                let allowed = rate as f64 * (window + 1.0) + largest as f64;
                prop_assert!(sum as f64 <= allowed + 1.0, "{sum} keys in {window} s at {rate}/s");
            }
        }
        // Nothing is held forever: a second after the last event, the whole bucket is available again.
        let later = Timestamp(now + Duration::from_secs(10_000));
        prop_assert!(quota.admit(rate, later).is_ok());
    }

    #[test]
    fn a_booking_reads_every_key_once_or_gives_everything_back(
        keys in prop::collection::vec(0..24u32, 1..40),
        groups in 1..4u32,
        nodes in 1..4u32,
        seed: u64,
        replies in prop::collection::vec(0..4u32, 1..30),
    ) {
        let count = PartitionCount::new(24).expect("a valid count");
        let table = placement::uniform_table(groups, nodes, count, seed).expect("a table");
        let up = Availability::all(&table);
        let partitions: Vec<PartitionId> = keys.into_iter().map(PartitionId).collect();
        let mut booking = Booking::new(&of_first_group(&table, &partitions), &partitions, seed);
        let mut replies = replies.into_iter().cycle();
        let (mut held, mut refused) = (BTreeMap::new(), BTreeSet::new());
        loop {
            match booking.next(&table.view(&up)) {
                BookingStep::Ask(asks) => {
                    prop_assert!(!asks.is_empty());
                    for ask in asks {
                        prop_assert!(!refused.contains(&ask.node), "who has refused is not asked again");
                        let reply = match replies.next() {
                            Some(0) => ReservationReply::Refused(Duration::from_millis(ask.node.0.into())),
                            Some(1) => ReservationReply::Unheld,
                            Some(2) => ReservationReply::Unknown,
                            _ => ReservationReply::Held,
                        };
                        match reply {
                            ReservationReply::Refused(_) => drop(refused.insert(ask.node)),
                            ReservationReply::Held | ReservationReply::Unknown => {
                                held.insert(ask.part, ask);
                            }
                            ReservationReply::Unheld => {}
                        }
                        booking.on(ask.part, reply);
                    }
                }
                BookingStep::Read(plan, reservations) => {
                    let mut read = vec![0; partitions.len()];
                    for (assignment, part) in plan.assignments.iter().zip(&reservations) {
                        assignment.keys.iter().for_each(|key| read[*key as usize] += 1);
                        let node = part.map(|part| held.remove(&part).expect("it was held"));
                        if let Some(ask) = node {
                            prop_assert_eq!(ask.node, assignment.node);
                            prop_assert_eq!(ask.keys, assignment.keys.len() as u64);
                        }
                        let index = table.node_index(assignment.node).expect("of the table");
                        let group = table.group_of(index);
                        prop_assert!(plan.groups.contains(&GroupId(group.0)));
                        let holds = |key: &u32| table.replicas(partitions[*key as usize]).contains(&index);
                        prop_assert!(assignment.keys.iter().all(holds));
                    }
                    prop_assert!(read.iter().all(|count| *count == 1) && held.is_empty());
                    break;
                }
                BookingStep::Refused { by, give_back } => {
                    prop_assert!(refused.contains(&by));
                    prop_assert_eq!(give_back.len(), held.len());
                    prop_assert!(give_back.iter().all(|ask| held.get(&ask.part) == Some(ask)));
                    break;
                }
            }
        }
    }
}

fn of_first_group(table: &RoutingTable, partitions: &[PartitionId]) -> FanOutPlan {
    let mut parts: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
    for (key, partition) in partitions.iter().enumerate() {
        let node = table.replicas(*partition)[GroupIndex(0).index()];
        parts.entry(table.node_at(node).id).or_default().push(key as u32);
    }
    let assignments = parts.into_iter().map(|(node, keys)| Assignment { node, keys }).collect();
    FanOutPlan { policy: "first", groups: vec![GroupId(0)], assignments, spilled_keys: 0 }
}

/// Each replica has its own share of a quota: when one refuses, another may have room. There are at most as many refusals as
/// replicas, and they do not use the budget of retries.
#[test]
fn what_a_quota_refuses_is_asked_of_other_replicas_and_then_fails() {
    let count = PartitionCount::new(4).expect("a valid count");
    let table = placement::uniform_table(3, 1, count, 1).expect("a table");
    let (up, now) = (Availability::all(&table), Timestamp::ZERO);
    let partitions: Vec<PartitionId> = count.iter().collect();
    let plan = of_first_group(&table, &partitions);
    let mut execution = Execution::new(&plan, &partitions, ExecutionOptions::default(), now);
    let mut budgets = Budgets::nothing();
    let mut asked = BTreeSet::new();
    loop {
        let actions = execution.next(&table.view(&up), &mut budgets);
        match actions.as_slice() {
            [Action::Send { request, node, keys, .. }] => {
                assert!(asked.insert(*node) && keys.len() == 4, "{node} is asked for all of it, once");
                let class = FailureClass::Throttled;
                let _ = execution.on(Event::Failed { request: *request, class }, now);
            }
            [Action::Finish(outcome)] => {
                assert_eq!((outcome.verdict, asked.len()), (Verdict::Failed, 3));
                let reason = MissingReason::Failed(FailureClass::Throttled);
                assert!(outcome.missing.iter().all(|missing| missing.reason == reason));
                return;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Six nodes in three groups have a sixth of a quota each. For a quarter of a minute, routers read eight tenths of it, a
/// thousand keys at a time, from the two nodes of a randomly drawn group. Each node sees every read that it answers.
#[test]
fn reads_that_routers_let_in_make_nobody_wait_who_has_not_read() {
    let quota = QuotaRates { keys: NonZeroU64::new(10_000), bytes: None };
    for seed in 1..50u64 {
        let mut nodes: Vec<ReadQuota> = (0..6).map(|_| ReadQuota::new(quota.part(8, 48))).collect();
        let mut lot = seed;
        for read in 0..120u64 {
            let now = Timestamp(Duration::from_millis(125 * read));
            lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let group = (lot >> 33) as usize % 3;
            nodes[2 * group..2 * group + 2].iter_mut().for_each(|node| node.charge_keys(500, now));
        }
        let now = Timestamp(Duration::from_secs(15));
        for node in &mut nodes {
            // The content of the bucket is available, whatever routers have read.
            (0..3).for_each(|_| assert_eq!(node.admit(500, now), Ok(()), "seed {seed}"));
            let wait = node.admit(500, now).unwrap_err().retry_after;
            assert!(wait <= Duration::from_millis(3_500), "seed {seed}: {wait:?}");
        }
    }
}
