//! The operation by its definition.

use crate::{
    ColumnFilter, EdgesQuery, GraphAnswer, OperationError,
    operations::twin::{CASES, Twin, WEIGHT, cases, ends, weight},
};
use kith_schema::ColumnNumber;
use kith_types::Direction;
use proptest::prelude::*;
use std::cmp::Reverse;

/// The edges of a member with their `value`, ordered by value or by id, ties by ascending id.
pub(crate) fn edges(
    twin: &Twin,
    id: u64,
    value: impl Fn(u64, u64) -> u64,
    by_value: bool,
    descending: bool,
) -> Option<Vec<(u64, u64)>> {
    let value = |other| match twin.direction {
        Direction::In => value(other, id),
        _ if twin.edges.contains(&(id, other)) => value(id, other),
        _ => value(other, id),
    };
    let mut edges: Vec<_> = twin.connections(id)?.into_iter().map(|other| (other, value(other))).collect();
    match (by_value, descending) {
        (false, false) => {}
        (false, true) => edges.reverse(),
        (true, false) => edges.sort_by_key(|&(_, value)| value),
        (true, true) => edges.sort_by_key(|&(_, value)| Reverse(value)),
    }
    Some(edges)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn edges_are_sorted_filtered_and_cut_into_pages(
        case in cases(),
        (id, _) in ends(),
        by_value: bool,
        descending: bool,
        low in 0..3u64,
        limit in 1..6u64,
    ) {
        let cluster = case.cluster();
        let mut query = EdgesQuery {
            id,
            columns: None,
            order_by: by_value.then(|| WEIGHT.to_owned()),
            descending,
            filter: Some(ColumnFilter { column: WEIGHT.to_owned(), low: Some(ColumnNumber::U64(low)), high: None }),
            limit: Some(limit),
            after: None,
        };
        let mut got = Vec::new();
        let end = loop {
            match cluster.query(&case.query(query.clone())) {
                Ok(GraphAnswer::Edges(page)) => {
                    let numbers = &page.columns[0].numbers;
                    prop_assert!(page.ids.len() as u64 <= limit && numbers.len() == page.ids.len());
                    got.extend(page.ids.iter().copied().zip(numbers.iter().copied()));
                    match page.after {
                        None => break Ok(()),
                        after => query.after = after,
                    }
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) => break Err(error),
            }
        };
        let twin = case.twin();
        if case.directed && twin.direction == Direction::Both {
            prop_assert_eq!(end, Err(OperationError::BothDirections { name: "connection".to_owned() }));
        } else if let Some(mut expected) = edges(&twin, id, weight, by_value, descending) {
            expected.retain(|&(_, value)| low <= value);
            let expected: Vec<_> = expected.into_iter().map(|(id, value)| (id, ColumnNumber::U64(value))).collect();
            prop_assert_eq!((end, got), (Ok(()), expected));
        } else {
            prop_assert_eq!(end, Err(OperationError::MemberNotFound { id }));
        }
    }
}
