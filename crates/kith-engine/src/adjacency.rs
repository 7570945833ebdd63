//! The value of an adjacency list: count, sorted ids, then one array per column.
//! Drawn in `docs/formats/adjacency.md`.

use kith_types::delta::{self, DecodeError, put_varint, take_varint};

/// Keep only the ids whose value in one column lies in a range, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnFilter {
    /// Index of the column.
    pub column: usize,
    /// Least value kept.
    pub low: u64,
    /// Greatest value kept.
    pub high: u64,
}

/// Appends the value of a list: `ids` sorted and distinct; each of `columns` as long as `ids`.
///
/// # Panics
/// If a column has another length.
pub fn encode(ids: &[u64], columns: &[&[u64]], out: &mut Vec<u8>) {
    put_varint(out, ids.len() as u64);
    delta::encode(ids, out);
    for column in columns {
        assert_eq!(column.len(), ids.len(), "a column has one value per id");
        let mut previous = 0u64;
        for &value in *column {
            put_varint(out, zigzag(value.wrapping_sub(previous)));
            previous = value;
        }
    }
}

/// Replaces `out` by the ids of a list, without those that the filter drops: sorted, distinct.
/// `column_count` is the component's. One pass over the bytes; no allocation beyond `out`.
///
/// # Errors
/// If the bytes are not one list with so many columns, whole and nothing more.
///
/// # Panics
/// If the filter names a column beyond `column_count`.
pub fn decode(
    mut bytes: &[u8],
    column_count: usize,
    filter: Option<ColumnFilter>,
    out: &mut Vec<u64>,
) -> Result<(), DecodeError> {
    out.clear();
    let count = usize::try_from(take_varint(&mut bytes)?).map_err(|_| DecodeError::Overflow)?;
    delta::decode(&mut bytes, count, out)?;
    let filtered = filter.map(|filter| {
        assert!(filter.column < column_count, "a filter names one of the columns");
        filter.column
    });
    // Columns are walked even when nobody asks for them: a list that does not end with them is damaged.
    for column in 0..column_count {
        if filtered == Some(column) {
            retain(&mut bytes, count, filter, out)?;
        } else {
            skip(&mut bytes, count)?;
        }
    }
    if bytes.is_empty() { Ok(()) } else { Err(DecodeError::Overflow) }
}

/// How many ids a list has, without reading them.
///
/// # Errors
/// If the bytes do not begin with a count.
pub fn count(mut bytes: &[u8]) -> Result<u64, DecodeError> {
    take_varint(&mut bytes)
}

fn retain(
    bytes: &mut &[u8],
    count: usize,
    filter: Option<ColumnFilter>,
    ids: &mut Vec<u64>,
) -> Result<(), DecodeError> {
    let Some(ColumnFilter { low, high, .. }) = filter else { return Ok(()) };
    let (mut value, mut kept) = (0u64, 0);
    for index in 0..count {
        value = value.wrapping_add(unzigzag(take_varint(bytes)?));
        if (low..=high).contains(&value) {
            ids[kept] = ids[index];
            kept += 1;
        }
    }
    ids.truncate(kept);
    Ok(())
}

fn skip(bytes: &mut &[u8], count: usize) -> Result<(), DecodeError> {
    for _ in 0..count {
        take_varint(bytes)?;
    }
    Ok(())
}

/// Maps small differences of either sign to small numbers.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (0u64.wrapping_sub(difference >> 63))
}

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ 0u64.wrapping_sub(value & 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lists() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Vec<u64>)> {
        prop::collection::btree_map(any::<u64>(), (any::<u64>(), 0u64..100), 0..200).prop_map(|map| {
            let ids = map.keys().copied().collect();
            let (first, second) = map.values().copied().unzip();
            (ids, first, second)
        })
    }

    proptest! {
        #[test]
        fn lists_come_back_filtered((ids, first, second) in lists(), low in 0u64..60, width in 0u64..60) {
            let mut bytes = Vec::new();
            encode(&ids, &[&first, &second], &mut bytes);
            let mut out = vec![1, 2, 3];
            decode(&bytes, 2, None, &mut out).unwrap();
            prop_assert_eq!(&out, &ids);
            let filter = ColumnFilter { column: 1, low, high: low + width };
            decode(&bytes, 2, Some(filter), &mut out).unwrap();
            let expected: Vec<u64> = ids.iter().zip(&second)
                .filter(|(_, value)| (low..=low + width).contains(value)).map(|(&id, _)| id).collect();
            prop_assert_eq!(out, expected);
            prop_assert_eq!(count(&bytes).unwrap(), ids.len() as u64);
        }

        #[test]
        fn cut_or_longer_values_are_errors((ids, first, second) in lists(), cut: prop::sample::Index) {
            let mut bytes = Vec::new();
            encode(&ids, &[&first, &second], &mut bytes);
            let mut out = Vec::new();
            prop_assert!(decode(&bytes[..cut.index(bytes.len())], 2, None, &mut out).is_err());
            bytes.push(0);
            prop_assert!(decode(&bytes, 2, None, &mut out).is_err());
        }

        #[test]
        fn hostile_bytes_end_in_bounded_work(bytes in prop::collection::vec(any::<u8>(), 0..300), columns in 0usize..4) {
            let mut out = Vec::new();
            let filter = (columns > 0).then(|| ColumnFilter { column: columns - 1, low: 0, high: u64::MAX / 2 });
            let _ = decode(&bytes, columns, filter, &mut out);
            prop_assert!(out.capacity() <= 2 * bytes.len() + 8);
        }
    }

    #[test]
    fn columns_are_differences_of_either_sign() {
        let mut bytes = Vec::new();
        encode(&[10, 20, 21], &[&[1_000, 999, 1_001]], &mut bytes);
        assert_eq!(bytes, [3, 10, 10, 1, 0xd0, 0x0f, 1, 4]);
    }
}
