//! The union of the outgoing and the incoming list of one key.

/// Adds the ids of `other` to `ids`; both sorted and distinct, before and after.
pub(super) fn unite(ids: &mut Vec<u64>, other: Vec<u64>) {
    if ids.is_empty() {
        *ids = other;
        return;
    }
    if other.is_empty() {
        return;
    }
    // Two ascending runs: the stable sort finds and merges them in linear time.
    ids.extend_from_slice(&other);
    ids.sort();
    ids.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_is_sorted_and_distinct() {
        for (a, b, expected) in [
            (vec![], vec![], vec![]),
            (vec![], vec![3], vec![3]),
            (vec![1, 5, 9], vec![], vec![1, 5, 9]),
            (vec![1, 5, 9], vec![0, 5, 7, 12], vec![0, 1, 5, 7, 9, 12]),
        ] {
            let mut ids = a;
            unite(&mut ids, b);
            assert_eq!(ids, expected);
        }
    }
}
