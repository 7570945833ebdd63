//! The operation by its definition.

use crate::{
    ConnectionsQuery, GraphAnswer,
    operations::twin::{CASES, cases, ends, not_found, sorted},
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn connections_are_the_first_degree(case in cases(), (a, _) in ends()) {
        let (got, twin) = (case.cluster().query(&case.query(ConnectionsQuery { id: a })), case.twin());
        match twin.connections(a) {
            Some(ids) => prop_assert_eq!(got, Ok(GraphAnswer::Ids(sorted(ids)))),
            None => prop_assert!(not_found(&got, &twin, &[a]), "{:?}", got),
        }
    }
}
