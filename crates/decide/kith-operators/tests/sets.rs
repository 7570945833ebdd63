//! Compares the kernels with `BTreeSet` twins, with ids that are close together, far apart and at both ends of the range.

use kith_operators::{
    Scratch,
    sets::{PackedIds, difference, intersect, intersects, merge, merge_tallies, sort_distinct, tally, union},
};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Ids = BTreeSet<u64>;

/// The ids of one list: dense, spread over a few windows of the bitmap, sparse over 64 bits, or at the top of the range.
fn ids(most: usize) -> impl Strategy<Value = Ids> {
    prop_oneof![
        4 => btree_set(0..500u64, 0..=most),
        2 => btree_set(0..20_000_000u64, 0..=most),
        1 => btree_set(35_184_000_000_000..35_184_004_194_400u64, 0..=most),
        1 => btree_set(any::<u64>(), 0..=most),
        1 => btree_set(u64::MAX - 1_000..=u64::MAX, 0..=most),
    ]
}

fn sorted(ids: &Ids) -> Vec<u64> {
    ids.iter().copied().collect()
}

fn united(lists: &[Vec<u64>]) -> Vec<u64> {
    sorted(&lists.iter().flatten().copied().collect())
}

fn slices(lists: &[Vec<u64>]) -> Vec<&[u64]> {
    lists.iter().map(Vec::as_slice).collect()
}

/// Many lists of one range. Together they are long enough to leave the collecting phase.
fn wide_lists() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let base = prop_oneof![Just(0u64), Just(3_000_000), Just(1 << 40), Just(u64::MAX - 5_000_000)];
    let span = prop_oneof![Just(10_000u64), Just((1 << 22) - 1), Just(1 << 22), Just(4_999_999)];
    (base, span, any::<u64>(), 1..40usize).prop_map(|(base, span, seed, lists)| {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            base + state % (span + 1)
        };
        let list = |_| sorted(&(0..400).map(|_| next()).collect());
        (0..lists).map(list).collect()
    })
}

proptest! {
    #[test]
    fn union_and_merge_are_the_set_union(lists in vec(ids(60), 0..8)) {
        let lists: Vec<Vec<u64>> = lists.iter().map(sorted).collect();
        let (mut scratch, mut out) = (Scratch::new(), Vec::new());
        union(slices(&lists), &mut scratch, &mut out);
        prop_assert_eq!(&out, &united(&lists));
        out.clear();
        merge(&slices(&lists), &mut scratch, &mut out);
        prop_assert_eq!(&out, &united(&lists));
    }

    #[test]
    fn wide_unions_are_the_set_union_and_leave_the_scratch_clean(a in wide_lists(), b in wide_lists()) {
        let mut scratch = Scratch::new();
        for lists in [&a, &b, &a] {
            let mut out = Vec::new();
            union(slices(lists), &mut scratch, &mut out);
            prop_assert_eq!(&out, &united(lists));
            out.clear();
            merge(&slices(lists), &mut scratch, &mut out);
            prop_assert_eq!(&out, &united(lists));
        }
    }

    #[test]
    fn tallies_count_the_lists_that_hold_an_id(lists in vec(ids(60), 0..8), cut in 0..8usize) {
        let lists: Vec<Vec<u64>> = lists.iter().map(sorted).collect();
        let mut twin = BTreeMap::<u64, u32>::new();
        lists.iter().flatten().for_each(|&id| *twin.entry(id).or_default() += 1);
        let twin: (Vec<u64>, Vec<u32>) = twin.into_iter().unzip();
        let mut scratch = Scratch::new();
        prop_assert_eq!(&tally(slices(&lists), &mut scratch), &twin);
        let (left, right) = lists.split_at(cut.min(lists.len()));
        let (a, b) = (tally(slices(left), &mut scratch), tally(slices(right), &mut scratch));
        prop_assert_eq!(&merge_tallies(&[(&a.0, &a.1), (&b.0, &b.1)]), &twin);
    }

    #[test]
    fn intersection_and_difference_are_those_of_sets(a in ids(40), b in ids(900)) {
        let common = sorted(&a.intersection(&b).copied().collect());
        let (x, y) = (sorted(&a), sorted(&b));
        prop_assert_eq!(&intersect(&x, &y), &common);
        prop_assert_eq!(&intersect(&y, &x), &common);
        prop_assert_eq!(intersects(&x, &y), !common.is_empty());
        prop_assert_eq!(difference(&x, &y), sorted(&a.difference(&b).copied().collect()));
        prop_assert_eq!(difference(&y, &x), sorted(&b.difference(&a).copied().collect()));
    }

    #[test]
    fn sorting_is_sorting(mut ids in vec(prop_oneof![0..3_000u64, 0..1u64 << 30, any::<u64>()], 0..900)) {
        let twin = sorted(&ids.iter().copied().collect());
        sort_distinct(&mut ids, &mut Vec::new());
        prop_assert_eq!(ids, twin);
    }

    #[test]
    fn packed_ids_come_back_and_are_found(a in ids(900), b in ids(40)) {
        let packed = PackedIds::from_sorted(&sorted(&a));
        prop_assert_eq!((packed.len(), packed.is_empty()), (a.len(), a.is_empty()));
        prop_assert_eq!(packed.iter().collect::<Vec<_>>(), sorted(&a));
        prop_assert_eq!(packed.to_vec(), sorted(&a));
        for id in a.iter().chain(&b).flat_map(|&id| [id, id.wrapping_add(1), id.wrapping_sub(1)]) {
            prop_assert_eq!(packed.contains(id), a.contains(&id), "{}", id);
        }
        prop_assert_eq!(packed.first_common(&sorted(&b)), a.intersection(&b).next().copied());
        prop_assert_eq!(packed.intersects(&sorted(&b)), !a.is_disjoint(&b));
    }
}

#[test]
fn packed_ids_take_about_a_byte_each_when_dense() {
    let ids: Vec<u64> = (0..100_000).map(|i| 1_000_000 + 3 * i).collect();
    let packed = PackedIds::from_sorted(&ids);
    assert_eq!(
        packed.heap_bytes(),
        100_000 + 1_563 * (2 + 12),
        "one byte per gap, three per first id, twelve per block"
    );
}

#[test]
fn a_union_of_more_ids_than_are_kept_loose_is_bound_by_its_result() {
    let list: Vec<u64> = (0..100_000).map(|i| i * 1_000).collect();
    let mut out = Vec::new();
    union((0..40).map(|_| list.as_slice()), &mut Scratch::new(), &mut out);
    assert_eq!(out, list);
}

#[test]
fn a_window_is_as_wide_as_it_says() {
    const SPAN: u64 = 1 << 22;
    for base in [0, 1, SPAN - 1, SPAN, 10 * SPAN + 7, u64::MAX - SPAN, u64::MAX - SPAN + 1] {
        for width in [SPAN - 2, SPAN - 1, SPAN, SPAN + 1] {
            let Some(last) = base.checked_add(width) else { continue };
            // The ends come first, so that they are known when the window is opened.
            let ends = vec![base, last];
            let list = (0..20_000).map(|i| base + i * (SPAN / 20_001)).collect();
            let (low, high) = (vec![base.saturating_sub(1)], vec![last.saturating_add(1)]);
            let lists = [ends, list, low, high];
            let (mut scratch, mut out) = (Scratch::new(), Vec::new());
            union(slices(&lists), &mut scratch, &mut out);
            assert_eq!(out, united(&lists), "base {base} width {width}");
            out.clear();
            merge(&slices(&lists), &mut scratch, &mut out);
            assert_eq!(out, united(&lists), "base {base} width {width}");
        }
    }
}

#[test]
fn tallies_of_more_than_is_collected_at_once_add_up() {
    let every =
        |step: u64| -> Vec<u64> { (0..1_200_000).filter(|id: &u64| id.is_multiple_of(step)).collect() };
    let apart: Vec<u64> = (0..1_100_000u64).map(|id| id << 30).collect();
    let lists = [every(1), every(2), every(3), apart.clone(), every(2)];
    let (ids, counts) = tally(lists.iter().map(Vec::as_slice), &mut Scratch::new());
    assert!(ids.is_sorted_by(|a, b| a < b) && ids.len() == 1_200_000 + apart.len() - 1);
    let expected = |id: u64| match id {
        0 => 5,
        _ if 1_200_000 <= id => 1,
        _ => 1 + 2 * u32::from(id.is_multiple_of(2)) + u32::from(id.is_multiple_of(3)),
    };
    assert!(ids.iter().zip(counts).all(|(id, count)| count == expected(*id)));
}
