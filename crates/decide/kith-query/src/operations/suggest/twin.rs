//! The operation by its definition.

use crate::{
    GraphAnswer, SuggestQuery,
    operations::network::twin::network,
    operations::twin::{CASES, Twin, cases, ends, not_found},
};
use proptest::prelude::*;
use std::cmp::Reverse;

/// The people that a member may know, with the numbers of common connections.
pub(crate) fn suggest(twin: &Twin, id: u64, k: usize) -> Option<Vec<(u64, u32)>> {
    let (first, second, _) = network(twin, id)?;
    let common =
        |other: u64| first.iter().filter(|&&friend| twin.near(friend).contains(&other)).count() as u32;
    let mut ranked: Vec<(u64, u32)> = second.into_iter().map(|other| (other, common(other))).collect();
    ranked.sort_by_key(|&(other, count)| (Reverse(count), other));
    ranked.truncate(k);
    Some(ranked)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn suggestions_are_ranked_by_common_connections(case in cases(), (a, _) in ends(), k in 1..12u32) {
        let got = case.cluster().query(&case.query(SuggestQuery { id: a, k }));
        let twin = case.twin();
        match suggest(&twin, a, k as usize) {
            Some(ranked) => prop_assert_eq!(got, Ok(GraphAnswer::Suggestions(ranked))),
            None => prop_assert!(not_found(&got, &twin, &[a]), "{:?}", got),
        }
    }
}
