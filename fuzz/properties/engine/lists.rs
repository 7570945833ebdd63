//! Adjacency lists.

use crate::properties::{Seed, take};
use kith_engine::{ColumnFilter, decode_list, encode_list, list_count};

/// Input: the number of columns, two bytes for the range of a filter over the last column, and a list.
pub fn check(mut input: &[u8]) {
    let columns = usize::from(take(&mut input) % 4);
    let (low, width) = (take(&mut input), take(&mut input));
    let (low, high) = (u64::from(low), u64::from(low) + u64::from(width));
    let mut ids = vec![9];
    let decoded = decode_list(input, columns, None, &mut ids);
    assert!(ids.capacity() <= 2 * input.len() + 8, "no more room than the bytes can need");
    let mut kept = Vec::new();
    if let Some(column) = columns.checked_sub(1) {
        let filtered = decode_list(input, columns, Some(ColumnFilter { column, low, high }), &mut kept);
        assert_eq!(filtered, decoded);
    }
    if decoded.is_err() {
        return;
    }
    assert!(ids.is_sorted_by(|a, b| a < b));
    assert_eq!(list_count(input), Ok(ids.len() as u64));
    assert!(kept.iter().all(|id| ids.binary_search(id).is_ok()));
    assert!(kept.is_sorted_by(|a, b| a < b));
    if columns == 0 {
        let mut bytes = Vec::new();
        encode_list(&ids, &[], &mut bytes);
        assert!(bytes.len() <= input.len());
        let mut again = Vec::new();
        assert_eq!(decode_list(&bytes, 0, None, &mut again), Ok(()));
        assert_eq!(again, ids);
    }
}

pub fn seeds() -> Vec<Seed> {
    let of = |ids: &[u64], columns: &[&[u64]]| {
        let mut bytes = vec![columns.len() as u8, 10, 20];
        encode_list(ids, columns, &mut bytes);
        bytes
    };
    vec![
        ("ids", of(&[10, 20, u64::MAX], &[])),
        ("none", of(&[], &[])),
        ("column", of(&[10, 20, 21], &[&[1_000, 25, u64::MAX]])),
        ("two-columns", of(&[1, 2], &[&[5, 6], &[15, 300]])),
        ("bytes-behind-the-end", [&of(&[1], &[])[..], &[0]].concat()),
    ]
}
