//! The operation by its definition.

use crate::{
    GraphAnswer, PathQuery,
    operations::distance::twin::distances,
    operations::twin::{CASES, Twin, cases, ends, not_found},
};
use proptest::prelude::*;

/// The length of the shortest path, if it is at most `max`.
pub(crate) fn path_length(twin: &Twin, from: u64, to: u64, max: usize) -> Option<Option<usize>> {
    twin.known(&[from, to])?;
    Some(distances(twin, from).get(&to).copied().filter(|&length| length <= max))
}

/// Whether each hop is an edge.
pub(crate) fn is_path(twin: &Twin, members: &[u64]) -> bool {
    members.windows(2).all(|hop| twin.near(hop[0]).contains(&hop[1]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn paths_are_shortest_and_each_hop_is_an_edge(case in cases(), (from, to) in ends(), max in 0..=6u32) {
        let got = case.cluster().query(&case.query(PathQuery { from, to, max }));
        let twin = case.twin();
        let Some(length) = path_length(&twin, from, to, max as usize) else {
            prop_assert!(not_found(&got, &twin, &[from, to]), "{:?}", got);
            return Ok(());
        };
        let Ok(GraphAnswer::Path(path)) = got else { panic!("{got:?}") };
        prop_assert_eq!(path.members.len().checked_sub(1), length);
        if length.is_some() {
            prop_assert_eq!((path.members.first(), path.members.last()), (Some(&from), Some(&to)));
        }
        prop_assert!(is_path(&twin, &path.members), "{:?}", path);
    }
}
