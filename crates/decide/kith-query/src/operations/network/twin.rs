//! The operation by its definition.

use crate::{
    GraphAnswer, NetworkQuery, NetworkReturn,
    operations::twin::{CASES, Ids, Twin, cases, ends, not_found, sorted},
};
use proptest::prelude::*;

/// The first degree, the members at distance exactly 2, and the raw union of the first degree's lists.
pub(crate) fn network(twin: &Twin, id: u64) -> Option<(Ids, Ids, Ids)> {
    let first = twin.connections(id)?;
    let union: Ids = first.iter().flat_map(|&other| twin.near(other)).collect();
    let second = union.iter().copied().filter(|other| *other != id && !first.contains(other)).collect();
    Some((first, second, union))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn networks_hold_both_degrees_and_the_raw_union(case in cases(), (a, _) in ends()) {
        let got = case.cluster().query(&case.query(NetworkQuery { id: a, returns: NetworkReturn::Ids }));
        let twin = case.twin();
        let Some((first, second, union)) = network(&twin, a) else {
            prop_assert!(not_found(&got, &twin, &[a]), "{:?}", got);
            return Ok(());
        };
        let Ok(GraphAnswer::Network(answer)) = got else { panic!("{got:?}") };
        let network = answer.network.unwrap();
        let both = sorted(first.union(&second).copied().collect());
        let sizes = answer.sizes;
        prop_assert_eq!((sizes.first, sizes.second), (first.len() as u64, second.len() as u64));
        prop_assert_eq!((sizes.union, sizes.network()), (union.len() as u64, both.len() as u64));
        prop_assert_eq!(network.first(), sorted(first));
        prop_assert_eq!(network.second().collect::<Vec<_>>(), sorted(second));
        prop_assert_eq!(network.union().to_vec(), sorted(union));
        prop_assert_eq!(network.both().collect::<Vec<_>>(), both);
    }
}
