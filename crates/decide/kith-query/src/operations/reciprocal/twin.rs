//! The operation by its definition.

use crate::{
    GraphAnswer, OperationError, ReciprocalAnswer, ReciprocalQuery,
    operations::twin::{CASES, Ids, Twin, cases, ends, not_found, sorted},
};
use kith_types::Direction;
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

/// The members that `id` follows and that follow it.
fn reciprocal(twin: &Twin, id: u64) -> Option<Ids> {
    let following = Twin { direction: Direction::Out, ..twin.clone() }.near(id);
    let followers = Twin { direction: Direction::In, ..twin.clone() }.near(id);
    twin.known(&[id]).map(|()| following.intersection(&followers).copied().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn reciprocal_members_are_in_both_lists(case in cases(), (a, _) in ends(), limit in 0..5u64) {
        let mut twin = case.twin();
        if !case.directed {
            twin.edges.extend(twin.edges.clone().into_iter().map(|(from, to)| (to, from)));
        }
        let limit = (limit != 0).then_some(limit);
        let got = case.cluster().query(&case.query(ReciprocalQuery { id: a, limit }));
        match reciprocal(&twin, a) {
            Some(ids) => {
                let mut ids = sorted(ids);
                let truncated = limit.is_some_and(|limit| limit < ids.len() as u64);
                ids.truncate(limit.map_or(ids.len(), |limit| limit as usize));
                prop_assert_eq!(got, Ok(GraphAnswer::Reciprocal(ReciprocalAnswer { ids, truncated })));
            }
            None => prop_assert!(not_found(&got, &twin, &[a]), "{:?}", got),
        }
    }
}

#[test]
fn a_limit_beyond_the_greatest_is_refused() {
    let mut runner = TestRunner::deterministic();
    let case = cases().new_tree(&mut runner).expect("there are cases").current();
    for limit in [0, 100_001] {
        let refused = case.cluster().query(&case.query(ReciprocalQuery { id: 1, limit: Some(limit) }));
        let range = "1 to 100000";
        assert_eq!(refused, Err(OperationError::OutOfRange { what: "limit", got: limit, range }));
    }
}
