//! Tests of what a quota admits, from whom, and what it reserves.

use super::*;
use std::num::NonZeroU64;

fn at(millis: u64) -> Timestamp {
    Timestamp(Duration::from_millis(millis))
}

fn rates(keys: u64, bytes: u64) -> QuotaRates {
    QuotaRates { keys: NonZeroU64::new(keys), bytes: NonZeroU64::new(bytes) }
}

#[test]
fn a_second_of_keys_passes_at_once_and_the_next_key_learns_when() {
    let mut quota = ReadQuota::new(rates(1_000, 0));
    for _ in 0..10 {
        quota.admit(100, at(0)).unwrap();
    }
    let refused = quota.admit(100, at(0)).unwrap_err();
    assert_eq!((refused.kind, refused.per_second.get()), (QuotaKind::Keys, 1_000));
    assert_eq!(refused.retry_after, Duration::from_millis(100));
    assert_eq!(quota.admit(100, at(50)).unwrap_err().retry_after, Duration::from_millis(50));
    quota.admit(100, at(100)).unwrap();
}

#[test]
fn a_refused_query_takes_nothing() {
    let mut quota = ReadQuota::new(rates(10, 0));
    quota.admit(10, at(0)).unwrap();
    for _ in 0..1_000 {
        quota.admit(10, at(0)).unwrap_err();
    }
    quota.admit(10, at(1_000)).unwrap();
}

#[test]
fn a_query_larger_than_the_bucket_passes_when_that_is_full() {
    let mut quota = ReadQuota::new(rates(100, 0));
    quota.admit(500, at(0)).unwrap();
    assert_eq!(quota.admit(1, at(0)).unwrap_err().retry_after, Duration::from_millis(4_010));
    assert!(quota.admit(500, at(4_999)).is_err());
    quota.admit(500, at(5_000)).unwrap();
}

#[test]
fn bytes_are_paid_for_after_they_were_read() {
    let mut quota = ReadQuota::new(rates(0, 1_000));
    quota.admit(1, at(0)).unwrap();
    quota.charge_bytes(3_000, AdmittedBy::Here, at(0));
    let refused = quota.admit(1, at(0)).unwrap_err();
    assert_eq!((refused.kind, refused.retry_after), (QuotaKind::Bytes, Duration::from_secs(2)));
    quota.admit(1, at(2_000)).unwrap();
}

#[test]
fn an_empty_query_passes_whatever_was_read() {
    let mut quota = ReadQuota::new(rates(1, 1));
    quota.admit(100, at(0)).unwrap();
    quota.charge_bytes(100, AdmittedBy::Here, at(0));
    quota.admit(0, at(0)).unwrap();
}

#[test]
fn another_rate_holds_at_once() {
    let mut quota = ReadQuota::new(rates(10, 0));
    quota.admit(10, at(0)).unwrap();
    quota.admit(10, at(0)).unwrap_err();
    quota.follow(rates(1_000, 0), at(0));
    quota.admit(900, at(0)).unwrap();
    quota.follow(QuotaRates::default(), at(0));
    quota.admit(u64::MAX, at(0)).unwrap();
}

#[test]
fn routers_share_a_quota_and_lose_none_of_it() {
    assert_eq!(rates(10, 7).share(3), rates(4, 3));
    assert_eq!(rates(1, 1).share(8), rates(1, 1));
    assert_eq!(rates(9, 0).share(0), rates(9, 0));
}

#[test]
fn nodes_share_a_quota_by_what_they_hold() {
    assert_eq!(rates(1_000, 70).part(12, 48), rates(250, 18));
    assert_eq!(rates(u64::MAX, 1).part(24, 48), rates(u64::MAX / 2 + 1, 1));
    assert_eq!(rates(10, 0).part(0, 48), rates(1, 0), "never nothing");
    assert_eq!(rates(10, 0).part(9, 0), rates(10, 0), "never more than all of it");
}

#[test]
fn an_export_gets_what_reads_leave() {
    // Without reads, the export gets the whole quota, and never a second's worth at once.
    let all = rates(1_000, 0);
    let step = all.export_step().keys;
    let exported = |quota: &mut ReadQuota, from: u64, till: u64, reads: u64| {
        let (mut exported, mut refused) = (0, 0);
        for millis in from..till {
            // Each read takes a tenth of a second's quota, and there are `reads` per second.
            if 0 < reads && millis % (1_000 / reads) == 0 {
                refused += u64::from(quota.admit(100, at(millis)).is_err());
            }
            while quota.admit_export(step, at(millis)).is_ok() {
                exported += step;
            }
        }
        (exported, refused)
    };
    let mut quota = ReadQuota::new(all);
    let (alone, _) = exported(&mut quota, 0, 10_000, 0);
    assert!((9_900..=10_050).contains(&alone), "{alone}");
    assert!(quota.admit(900, at(10_000)).is_ok(), "a read of nearly all passes beside it");
    // With reads that take half of the quota, the export gets the other half, and no read is refused.
    let (half, refused) = exported(&mut ReadQuota::new(all), 0, 10_000, 5);
    assert!((4_900..=5_100).contains(&half) && refused == 0, "{half}, {refused} reads refused");
    // Bytes count too, and a store without a quota has no limit.
    let mut quota = ReadQuota::new(rates(0, 1_000));
    quota.admit_export(1, at(0)).unwrap();
    quota.charge_bytes(500, AdmittedBy::Here, at(0));
    assert_eq!(quota.admit_export(1, at(100)), Err(Duration::from_millis(400)));
    quota.admit_export(1, at(500)).unwrap();
    let mut unlimited = ReadQuota::new(rates(0, 0));
    (0..100).for_each(|_| unlimited.admit_export(u64::MAX, at(0)).unwrap());
    assert_eq!(rates(7, 0).export_step(), crate::ExportStep { keys: 1, bytes: u64::MAX });
}

#[test]
fn what_routers_let_in_slows_the_line_of_those_who_ask_here_and_no_more() {
    let mut quota = ReadQuota::new(rates(100, 0));
    quota.charge_keys(10_000, at(0));
    quota.admit(100, at(0)).expect("nobody has asked here");
    // While three seconds' worth are queued, 23 parts in 24 are for routers and one part is for us. After that, everything
    // is for us.
    let refused = quota.admit(50, at(0)).unwrap_err();
    assert_eq!(refused.retry_after.as_millis(), 3_500, "72/23 s, and then the rest of half a second");
    assert!(quota.clone().admit(50, at(3_499)).is_err());
    quota.admit(50, at(3_501)).unwrap();
    let mut unlimited = ReadQuota::new(rates(0, 0));
    unlimited.charge_keys(u64::MAX, at(0));
    unlimited.admit(u64::MAX, at(0)).unwrap();
}

#[test]
fn bytes_that_routers_let_in_leave_no_debt() {
    let mut quota = ReadQuota::new(rates(0, 100));
    quota.charge_bytes(1_000_000, AdmittedBy::Router, at(0));
    quota.admit(1, at(0)).unwrap();
    quota.charge_bytes(150, AdmittedBy::Here, at(0));
    assert!(quota.admit(1, at(0)).unwrap_err().retry_after < Duration::from_secs(4));
    quota.admit(1, at(4_000)).unwrap();
}

fn id(client: u64, id: u64) -> ReservationId {
    ReservationId { client, id }
}

#[test]
fn what_is_reserved_is_kept_and_what_is_given_back_was_never_taken() {
    let mut quota = ReadQuota::new(rates(100, 0));
    assert_eq!(quota.reserve(id(1, 1), 80, at(0)), Ok(GrantedReservation::Held));
    assert!(quota.is_tight(at(0)));
    assert_eq!(quota.admit(50, at(0)).unwrap_err().retry_after, Duration::from_millis(300));
    assert_eq!(quota.reserve(id(2, 1), 50, at(0)).unwrap_err().retry_after, Duration::from_millis(300));
    quota.give_back(id(2, 1), at(0));
    assert!(quota.admit(50, at(0)).is_err(), "of somebody else");
    quota.give_back(id(1, 1), at(0));
    assert!(!quota.is_tight(at(0)));
    quota.admit(100, at(0)).unwrap();
    quota.admit(1, at(0)).unwrap_err();
}

#[test]
fn what_was_reserved_is_read_once_and_for_no_more_keys() {
    let mut quota = ReadQuota::new(rates(100, 0));
    quota.reserve(id(1, 1), 60, at(0)).unwrap();
    quota.redeem(id(1, 1), 50, at(0)).expect("reserved");
    quota.admit(50, at(0)).expect("the ten that were too many came back");
    quota.redeem(id(1, 1), 50, at(0)).expect_err("it was used");
    quota.reserve(id(1, 2), 10, at(100)).unwrap();
    quota.redeem(id(1, 2), 11, at(100)).expect_err("more than was reserved");
    quota.admit(10, at(100)).expect("and what was reserved is free again");
}

#[test]
fn reservations_end_by_themselves_and_are_bounded() {
    let mut quota = ReadQuota::new(rates(1_000_000, 0));
    let held =
        (0..1_000).filter(|n| quota.reserve(id(1, *n), 1, at(0)) == Ok(GrantedReservation::Held)).count();
    assert_eq!(held, 64, "of one client");
    let held =
        (2..10_000).filter(|n| quota.reserve(id(*n, 1), 1, at(0)) == Ok(GrantedReservation::Held)).count();
    assert_eq!(held, 1_024 - 64, "of all");
    quota.admit(1_000_000 - 1_024, at(0)).expect("they hold no more than they say");
    quota.admit(1_024, at(499)).expect("what passed meanwhile");
    let mut quota = ReadQuota::new(rates(100, 0));
    quota.reserve(id(1, 1), 100, at(0)).unwrap();
    quota.admit(100, at(499)).unwrap_err();
    quota.admit(100, at(500)).expect("it was never read");
}
