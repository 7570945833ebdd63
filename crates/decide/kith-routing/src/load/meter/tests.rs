//! Tests of charges, the pending limit, pace and pauses, one behaviour each.

use super::*;
use crate::load::{COOL_OFF, KeyClass, NodeTally};
use crate::placement::uniform_table;
use kith_types::PartitionCount;

const WORK: Work = Work { asked: crate::load::RequestKind::Values, kind: FanOutKind::NonUnion };
const NODE: NodeId = NodeId(3);

fn at(millis: u64) -> Timestamp {
    Timestamp(Duration::from_millis(millis))
}

/// Sends a request at one time and ends it at another.
fn request(meter: &mut LoadMeter, keys: usize, end: RequestEnd, from: u64, to: u64) {
    let charge = meter.on_send(WORK, NODE, keys, at(from));
    meter.on_end(charge, end, at(to));
}

fn load(meter: &LoadMeter, now: u64) -> NodeLoad {
    meter.snapshot(at(now)).node(NODE).copied().unwrap_or_default()
}

fn owed(meter: &LoadMeter, now: u64) -> (u64, u32) {
    let load = load(meter, now);
    (load.outstanding_keys, load.outstanding_requests)
}

#[test]
fn rates_are_kept_by_kind() {
    let mut meter = LoadMeter::default();
    let work = Work::graph(FanOutKind::EarlyTerminable);
    for step in 0..400 {
        meter.on_query(FanOutKind::EarlyTerminable, at(step * 10));
        for node in 0..6 {
            let charge = meter.on_send(work, NodeId(node), 4, at(step * 10));
            meter.on_end(charge, RequestEnd::Answered, at(step * 10));
        }
    }
    let load = meter.snapshot(at(4_000));
    assert!((load.kind(FanOutKind::EarlyTerminable).qps - 100.0).abs() < 5.0, "{load:?}");
    assert!((load.client_rps() - 600.0).abs() < 30.0, "{load:?}");
    assert_eq!(load.kind(FanOutKind::SyncUnion), KindLoad::default());
}

#[test]
fn what_a_node_was_asked_is_added_up() {
    let mut meter = LoadMeter::default();
    request(&mut meter, 7, RequestEnd::Answered, 0, 5);
    request(&mut meter, 3, RequestEnd::Failed, 5, 9);
    request(&mut meter, 2, RequestEnd::TimedOut, 9, 10);
    let hedge = meter.on_send(WORK, NODE, 4, at(10));
    meter.on_hedge(&hedge);
    meter.on_end(hedge, RequestEnd::Overtaken, at(11));
    let expected = NodeTally { requests: 4, keys: 16, hedges: 1, keys_hedged: 4, failed: 2, overtaken: 1 };
    assert_eq!(load(&meter, 12).tally, expected);
}

#[test]
fn a_wait_of_this_process_is_not_a_nodes() {
    let pace = |wait: u64| {
        let mut meter = LoadMeter::default();
        meter.keep_waits();
        let mut charge = meter.on_send(WORK, NODE, 36, at(0));
        charge.leave_out(Duration::from_millis(wait));
        meter.on_end(charge, RequestEnd::Answered, at(100 + wait));
        let waits = meter.take_waits().remove(&NODE).expect("it answered");
        (load(&meter, 100 + wait).seconds_per_key, waits.per_mille(500))
    };
    assert_eq!(pace(900), pace(0));
}

/// RO-4: counters return to zero after success, error, cancellation and lost completion.
#[test]
fn ro_4_what_a_node_owes_is_released_on_every_path() {
    for end in [RequestEnd::Answered, RequestEnd::Failed, RequestEnd::Cancelled, RequestEnd::Overtaken] {
        let mut meter = LoadMeter::default();
        let charge = meter.on_send(WORK, NODE, 7, at(0));
        assert_eq!(owed(&meter, 0), (7, 1));
        meter.on_end(charge, end, at(5));
        assert_eq!(owed(&meter, 5), (0, 0), "{end:?}");
    }
    let mut meter = LoadMeter::default();
    request(&mut meter, 7, RequestEnd::TimedOut, 0, 100);
    request(&mut meter, 5, RequestEnd::TimedOut, 0, 140);
    assert_eq!(owed(&meter, 9_000), (12, 2), "a node that hangs does not look idle");
    assert_eq!(owed(&meter, 140 + COOL_OFF.as_millis() as u64), (0, 0));
}

#[test]
fn a_hung_node_cools_off_in_bounded_room() {
    let mut meter = LoadMeter::default();
    (0..100_000u64).for_each(|n| request(&mut meter, 1, RequestEnd::TimedOut, n, n + 1));
    assert_eq!(owed(&meter, 100_000).1 / 100, 100, "those of the last ten seconds");
    assert_eq!(owed(&meter, 120_000), (0, 0));
}

#[test]
fn pace_is_time_per_key_and_forgets() {
    let mut meter = LoadMeter::default();
    assert_eq!(load(&meter, 0).seconds_per_key, None);
    // A request counts as 64 keys in addition to its own.
    request(&mut meter, 36, RequestEnd::Answered, 0, 20);
    assert!((load(&meter, 20).seconds_per_key.unwrap() - 200e-6).abs() < 1e-9);
    request(&mut meter, 136, RequestEnd::Answered, 20, 40);
    assert!((load(&meter, 40).seconds_per_key.unwrap() - 190e-6).abs() < 1e-9, "a tenth of the way to 100");
    assert_eq!(load(&meter, 10_041).seconds_per_key, None, "nothing has confirmed it for ten seconds");
}

#[test]
fn an_overtaken_request_makes_its_node_look_slower_each_time() {
    let mut meter = LoadMeter::default();
    request(&mut meter, 36, RequestEnd::Answered, 0, 20);
    request(&mut meter, 36, RequestEnd::Overtaken, 20, 25);
    assert!(
        (load(&meter, 25).seconds_per_key.unwrap() - 225e-6).abs() < 1e-9,
        "half of the 5 ms beside the 20"
    );
    request(&mut meter, 36, RequestEnd::Overtaken, 30, 130);
    request(&mut meter, 36, RequestEnd::Overtaken, 130, 230);
    assert!((load(&meter, 230).seconds_per_key.unwrap() - 1_225e-6).abs() < 1e-9);
    request(&mut meter, 36, RequestEnd::Answered, 230, 250);
    assert!((load(&meter, 250).seconds_per_key.unwrap() - 1_122.5e-6).abs() < 1e-9, "answers bring it back");
}

/// HH-1: a node above the limit is out, and stays out until the low mark is reached. The minimum time out is kept.
#[test]
fn hh_1_a_node_with_too_many_requests_is_out_until_few_are_left() {
    let pending = PendingLimit { out: 5, back: 2, out_min: Duration::from_secs(1) };
    let mut meter = LoadMeter::new(LoadMeterOptions { pending, ..LoadMeterOptions::default() });
    let mut charges: Vec<Charge> = (0..5).map(|_| meter.on_send(WORK, NODE, 1, at(0))).collect();
    assert_eq!(meter.newly_avoided(6), None, "five are allowed");
    charges.push(meter.on_send(WORK, NODE, 1, at(0)));
    assert_eq!(meter.newly_avoided(6), Some(vec![NODE]));
    let end = |meter: &mut LoadMeter, charges: &mut Vec<Charge>, now: u64| {
        meter.on_end(charges.pop().unwrap(), RequestEnd::Answered, at(now));
        meter.newly_avoided(6)
    };
    assert_eq!((0..3).find_map(|_| end(&mut meter, &mut charges, 10)), None, "three are left: not yet");
    assert_eq!(end(&mut meter, &mut charges, 20), None, "two are left, but it was out for 20 ms");
    meter.on_tick(at(999));
    assert_eq!(meter.newly_avoided(6), None);
    meter.on_tick(at(1_000));
    assert_eq!(meter.newly_avoided(6), Some(vec![]));
    charges.drain(..).for_each(|charge| meter.on_end(charge, RequestEnd::Answered, at(1_001)));
}

#[test]
fn at_most_half_of_the_nodes_are_avoided() {
    let pending = PendingLimit { out: 0, ..PendingLimit::default() };
    let mut meter = LoadMeter::new(LoadMeterOptions { pending, ..LoadMeterOptions::default() });
    let charges: Vec<Charge> =
        (0..6u64).map(|node| meter.on_send(WORK, NodeId(5 - node as u32), 1, at(node))).collect();
    assert_eq!(meter.newly_avoided(6), Some(vec![NodeId(5), NodeId(4), NodeId(3)]), "the first that were");
    charges.into_iter().for_each(|charge| meter.on_end(charge, RequestEnd::Answered, at(9)));
    assert_eq!(meter.newly_avoided(6), Some(vec![]));
}

/// HH-2: a host that left the fleet is forgotten. If it returns, it starts clean, and a late reply cannot bring it back.
#[test]
fn hh_2_a_node_that_left_is_forgotten_and_starts_clean() {
    let partitions = PartitionCount::new(24).unwrap();
    let (with, without) =
        (uniform_table(2, 2, partitions, 1).unwrap(), uniform_table(1, 2, partitions, 1).unwrap());
    let mut meter = LoadMeter::default();
    request(&mut meter, 4, RequestEnd::Answered, 0, 10);
    let late = meter.on_send(WORK, NODE, 9, at(10));
    meter.follow(&without);
    assert_eq!(meter.snapshot(at(10)).node(NODE), None);
    meter.on_report(NODE, NodeReport { rps: 1.0, clients: 1 }, at(11));
    assert_eq!(meter.snapshot(at(11)).node(NODE), None, "a late reply does not re-add it");
    meter.follow(&with);
    let fresh = meter.on_send(WORK, NODE, 2, at(12));
    meter.on_end(late, RequestEnd::Answered, at(13));
    assert_eq!(owed(&meter, 13), (2, 1), "a charge of its former life has no effect");
    assert_eq!(load(&meter, 13).seconds_per_key, None);
    meter.on_end(fresh, RequestEnd::Answered, at(14));
    assert_eq!(owed(&meter, 14), (0, 0));
}

#[test]
fn a_node_that_returns_is_unknown_and_owes_nothing() {
    let mut meter = LoadMeter::default();
    request(&mut meter, 4, RequestEnd::TimedOut, 0, 900);
    meter.on_return(NODE);
    assert_eq!((owed(&meter, 901), load(&meter, 901).seconds_per_key), ((0, 0), None));
}

#[test]
fn what_was_under_way_while_this_process_stood_still_tells_nothing() {
    let mut meter = LoadMeter::default();
    (0..20u64).for_each(|tick| meter.on_tick(at(tick * 50)));
    request(&mut meter, 10, RequestEnd::Answered, 900, 910);
    let pace = load(&meter, 910).seconds_per_key;
    let (seen_before, seen_after) =
        (meter.on_send(WORK, NODE, 10, at(960)), meter.on_send(WORK, NODE, 10, at(961)));
    // 300 ms pass without a tick. One reply is read before the next tick, and one after it.
    meter.on_end(seen_before, RequestEnd::Answered, at(1_260));
    assert_eq!(meter.stood_still(at(1_260)), at(1_260));
    meter.on_tick(at(1_261));
    meter.on_end(seen_after, RequestEnd::Answered, at(1_262));
    assert_eq!(load(&meter, 1_262).seconds_per_key, pace);
    assert_eq!((owed(&meter, 1_262), meter.stood_still(at(1_290))), ((0, 0), at(1_261)));
}

#[test]
fn a_process_that_stood_still_catches_up_for_as_long_half_a_second_at_the_most() {
    let mut meter = LoadMeter::default();
    [0, 50, 100, 200].into_iter().for_each(|tick| meter.on_tick(at(tick)));
    assert_eq!(meter.caught_up(at(350)), Timestamp::ZERO, "no pause");
    // 300 ms pass without a tick. The pause is seen both before and after the next tick.
    assert_eq!(meter.caught_up(at(500)), at(800));
    meter.on_tick(at(500));
    (1..20u64).for_each(|tick| meter.on_tick(at(500 + tick * 50)));
    assert_eq!((meter.caught_up(at(1_460)), meter.stood_still(at(1_460))), (at(800), at(500)));
    meter.on_tick(at(9_450));
    assert_eq!(meter.caught_up(at(9_460)), at(9_950));
}

#[test]
fn requests_that_hedges_overtook_keep_the_percentile_where_it_is() {
    let mut meter = LoadMeter::default();
    for n in 0..2_000u64 {
        // One request in two hundred hangs, and its hedge overtakes it after 2 ms.
        let rule = meter.hedge_rule(Hedging::Live, WORK, 10, at(n * 100)).unwrap();
        let after = rule.times[KeyClass::of(10).index()].unwrap().after.as_millis() as u64;
        let (took, end) =
            if n % 200 == 199 { (after + 2, RequestEnd::Overtaken) } else { (3, RequestEnd::Answered) };
        request(&mut meter, 10, end, n * 100, n * 100 + took);
    }
    let rule = meter.hedge_rule(Hedging::Live, WORK, 10, at(300_000)).unwrap();
    let after = rule.times[KeyClass::of(10).index()].unwrap().after;
    assert!((3..5).contains(&after.as_millis()), "{after:?}: it neither grows nor shrinks");
}

#[test]
fn reports_age_out() {
    let mut meter = LoadMeter::default();
    for node in [0, 1] {
        let charge = meter.on_send(WORK, NodeId(node), 1, at(0));
        meter.on_end(charge, RequestEnd::Answered, at(0));
    }
    meter.on_report(NodeId(0), NodeReport { rps: 900.0, clients: 4 }, at(0));
    meter.on_report(NodeId(1), NodeReport { rps: 1_100.0, clients: 5 }, at(9_000));
    let load = meter.snapshot(at(9_000));
    assert_eq!((load.clients, load.node_rps_mean()), (5, 1_000.0));
    let load = meter.snapshot(at(15_000));
    assert_eq!((load.clients, load.node_rps_mean()), (5, 1_100.0));
    assert_eq!(meter.snapshot(at(60_000)).clients, 0);
}

#[test]
fn the_termination_share_follows_what_happens() {
    let mut meter = LoadMeter::default();
    assert_eq!(meter.snapshot(at(0)).termination_share, None);
    (0..500).for_each(|step| meter.on_terminable_end(step % 10 != 0));
    let share = meter.snapshot(at(0)).termination_share.unwrap();
    assert!((share - 0.9).abs() < 0.1, "nine of ten end early, share is {share}");
    (0..500).for_each(|_| meter.on_terminable_end(false));
    assert!(meter.snapshot(at(0)).termination_share.unwrap() < 0.01);
}
