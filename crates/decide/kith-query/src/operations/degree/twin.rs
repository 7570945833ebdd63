//! The operation by its definition.

use crate::{
    DegreeQuery, GraphAnswer,
    operations::twin::{CASES, Twin, cases, ends},
};
use proptest::collection::vec;
use proptest::prelude::*;

/// The number of connections of each member.
pub(crate) fn degrees(twin: &Twin, ids: &[u64]) -> Vec<Option<u64>> {
    ids.iter().map(|&id| twin.connections(id).map(|ids| ids.len() as u64)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn degrees_are_the_sizes_of_the_first_degree(case in cases(), ids in vec(ends(), 0..8)) {
        let ids: Vec<u64> = ids.into_iter().map(|(id, _)| id).collect();
        let got = case.cluster().query(&case.query(DegreeQuery { ids: ids.clone(), filter: None }));
        prop_assert_eq!(got, Ok(GraphAnswer::Degrees(degrees(&case.twin(), &ids))));
    }
}
