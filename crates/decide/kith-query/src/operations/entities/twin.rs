//! The operations `entities` and `members` by their definition.

use crate::{
    EntitiesQuery, GraphAnswer, MembersQuery, OperationError,
    operations::twin::{CASES, cases, ends, not_found, sorted},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn entities_and_members_are_two_sides_of_the_same_edges(case in cases(), (a, _) in ends()) {
        let kind = || "school".to_owned();
        let (cluster, twin) = (case.cluster(), case.entity_twin());
        let got = cluster.query(&case.query(EntitiesQuery { id: a, kind: kind() }));
        match twin.connections(a) {
            Some(ids) => prop_assert_eq!(got, Ok(GraphAnswer::Ids(sorted(ids)))),
            None => prop_assert!(not_found(&got, &twin, &[a]), "{:?}", got),
        }
        let got = cluster.query(&case.query(MembersQuery { kind: kind(), entity: a }));
        let members: BTreeSet<u64> = case.entities.iter().filter(|&&(_, e)| e == a).map(|&(m, _)| m).collect();
        if members.is_empty() {
            prop_assert_eq!(got, Err(OperationError::EntityNotFound { kind: kind(), entity: a }));
        } else {
            prop_assert_eq!(got, Ok(GraphAnswer::Ids(sorted(members))));
        }
    }
}
