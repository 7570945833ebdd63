//! The operation by its definition.

use crate::{
    DistanceQuery, GraphAnswer,
    operations::twin::{CASES, Ids, Twin, cases, ends, not_found},
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The number of hops from `from` to every member that it reaches.
pub(crate) fn distances(twin: &Twin, from: u64) -> BTreeMap<u64, usize> {
    let mut distances = BTreeMap::from([(from, 0)]);
    let mut frontier = vec![from];
    for distance in 1.. {
        let reached: Ids = frontier.iter().flat_map(|&id| twin.near(id)).collect();
        frontier = reached.into_iter().filter(|id| !distances.contains_key(id)).collect();
        if frontier.is_empty() {
            break;
        }
        distances.extend(frontier.iter().map(|&id| (id, distance)));
    }
    distances
}

/// The distances of 0 to 3; `None` for members that are farther away.
pub(crate) fn distance(twin: &Twin, from: u64, to: &[u64]) -> Option<Vec<Option<u8>>> {
    twin.known(&[from])?;
    twin.known(to)?;
    let distances = distances(twin, from);
    let badge = |id| distances.get(id).filter(|&&distance| distance <= 3).map(|&distance| distance as u8);
    Some(to.iter().map(badge).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn distances_are_right_up_to_three(case in cases(), (from, _) in ends(), to in vec(ends(), 1..8)) {
        let to: Vec<u64> = to.into_iter().map(|(to, _)| to).collect();
        let got = case.cluster().query(&case.query(DistanceQuery { from, to: to.clone() }));
        let twin = case.twin();
        match distance(&twin, from, &to) {
            Some(badges) => prop_assert_eq!(got, Ok(GraphAnswer::Distances(badges))),
            None => {
                let named: Vec<u64> = to.into_iter().chain([from]).collect();
                prop_assert!(not_found(&got, &twin, &named), "{:?}", got);
            }
        }
    }
}
